// Lines from a file or standard input, with the system's own words when reading fails.
#pragma once

#include <sluice/diagnostic.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Where the bytes of lines come from. One thread.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  // At least one byte; 0 at the end.
  [[nodiscard]] virtual Parsed<std::size_t> read(std::span<char> into) = 0;
};

// A file, or standard input for "-", which is not closed.
[[nodiscard]] Parsed<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);

// One thread.
class LineReader {
 public:
  static constexpr std::size_t kLineMax = 65536;

  // "-" is standard input.
  [[nodiscard]] static Parsed<LineReader> open(const std::string& path);
  // The name is for messages.
  LineReader(std::unique_ptr<ByteSource> source, std::string name);

  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  LineReader(LineReader&& other) noexcept = default;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader() = default;

  // The next line without its line break (LF or CRLF), valid until the next call; nothing at the
  // end. A byte order mark at the very front is skipped.
  [[nodiscard]] Parsed<std::optional<std::string_view>> next();

  [[nodiscard]] std::size_t line_number() const noexcept {
    return line_number_;
  }  // of the last line
  // The last line has no line break: the writer of the file may be in the middle of it.
  [[nodiscard]] bool is_cut_off() const noexcept { return is_cut_off_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] Parsed<bool> fill();  // false at the end of the input
  [[nodiscard]] std::string_view take_line(std::size_t length, std::size_t with_break);

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // what has been read but not yet taken: [begin_, end_)
  std::size_t end_ = 0;
  std::size_t line_number_ = 0;
  bool is_cut_off_ = false;
};

}  // namespace sluice
