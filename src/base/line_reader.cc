#include "base/line_reader.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

constexpr const char* kStandardInput = "standard input";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Standard input is no path, and has no quotes.
tl::unexpected<Diagnostic> system_mistake(const std::string& name, int error) {
  return mistake(
      fmt::format("cannot read {}: {}", name == kStandardInput ? name : quoted(name),
                  std::strerror(error)),
      error == EISDIR ? "a file is needed, not a folder" : "check the path and its permissions");
}

// How people call it.
std::string name_of(const std::string& path) { return path == "-" ? kStandardInput : path; }

class DescriptorBytes final : public ByteSource {
 public:
  DescriptorBytes(int descriptor, std::string name)
      : descriptor_(descriptor), name_(std::move(name)) {}
  DescriptorBytes(const DescriptorBytes&) = delete;
  DescriptorBytes& operator=(const DescriptorBytes&) = delete;
  ~DescriptorBytes() override {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }

  [[nodiscard]] Parsed<std::size_t> read(std::span<char> into) override {
    while (true) {
      const ssize_t got = ::read(descriptor_, into.data(), into.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return system_mistake(name_, errno);
    }
  }

 private:
  int descriptor_;
  std::string name_;
};

}  // namespace

Parsed<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  const bool is_input = path == "-";
  const int descriptor = is_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_mistake(path, errno);
  return std::make_unique<DescriptorBytes>(descriptor, name_of(path));
}

Parsed<LineReader> LineReader::open(const std::string& path) {
  auto source = open_bytes(path);
  if (!source) return tl::unexpected(std::move(source.error()));
  return LineReader{*std::move(source), name_of(path)};
}

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)), buffer_(4 * kLineMax) {}

Parsed<bool> LineReader::fill() {
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= std::exchange(begin_, 0);
  const Parsed<std::size_t> got = source_->read(std::span{buffer_}.subspan(end_));
  if (!got) return tl::unexpected(got.error());
  end_ += *got;
  return *got > 0;
}

std::string_view LineReader::take_line(std::size_t length, std::size_t with_break) {
  std::string_view line{buffer_.data() + begin_, length};
  begin_ += with_break;
  is_cut_off_ = with_break == length;
  ++line_number_;
  if (line_number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Parsed<std::optional<std::string_view>> LineReader::next() {
  while (true) {
    const std::string_view held{buffer_.data() + begin_, end_ - begin_};
    const std::size_t line_break = held.find('\n');  // beyond any line when there is none
    if (line_break <= kLineMax) {
      return take_line(line_break, line_break + 1);
    }
    if (held.size() > kLineMax) {
      return mistake(
          fmt::format("{}:{}: the line is longer than {} bytes", name_, line_number_ + 1, kLineMax),
          "is this a text file?");
    }
    const Parsed<bool> more = fill();
    if (!more) return tl::unexpected(more.error());
    if (*more) continue;
    if (begin_ == end_) return std::nullopt;
    return take_line(end_ - begin_, end_ - begin_);
  }
}

}  // namespace sluice
