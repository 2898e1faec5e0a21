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
      error == EISDIR ? "a file is needed, not a folder" : "check the path and who may read it");
}

}  // namespace

Parsed<LineReader> LineReader::open(const std::string& path) {
  if (path == "-") return LineReader{STDIN_FILENO, kStandardInput};
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_mistake(path, errno);
  return LineReader{descriptor, path};
}

LineReader::LineReader(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), buffer_(4 * kLineMax) {}

LineReader::LineReader(LineReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      end_(other.end_),
      line_number_(other.line_number_),
      is_cut_off_(other.is_cut_off_) {}

LineReader::~LineReader() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

Parsed<bool> LineReader::fill() {
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= std::exchange(begin_, 0);
  while (true) {
    const ssize_t got = ::read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_mistake(name_, errno);
    end_ += static_cast<std::size_t>(got);
    return got > 0;
  }
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
