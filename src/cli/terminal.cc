#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace sluice::cli {
namespace {

constexpr std::size_t kFlushAt = 65536;

std::size_t shown_width(std::string_view text) noexcept {
  const auto starts_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
  };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

}  // namespace

bool Output::terminal_wants_colour() noexcept {
  const char* no_colour = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): at start only
  const char* term = std::getenv("TERM");           // NOLINT(concurrency-mt-unsafe)
  const bool dumb = term == nullptr || std::string_view{term} == "dumb";
  return ::isatty(STDOUT_FILENO) == 1 && !dumb && (no_colour == nullptr || *no_colour == '\0');
}

void Output::write(std::string_view text) {
  if (failed()) return;
  buffer_ += text;
  if (buffer_.size() >= kFlushAt) flush();
}

void Output::flush() noexcept {
  std::string_view rest = buffer_;
  while (!rest.empty() && !failed()) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = errno;
    } else {
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  buffer_.clear();
}

ExitCode Output::finish(std::string_view command, ExitCode code) {
  flush();
  if (!failed()) return code;
  if (error_ == EPIPE) {
    complain(command, "the reader closed the output early (broken pipe)");
  } else {
    complain(command, fmt::format("cannot write the output: {}", std::strerror(error_)));
  }
  return ExitCode::failure;
}

void complain(std::string_view command, std::string_view message) {
  fmt::print(stderr, "sluice {}: {}\n", command, message);
}

Progress::Progress(std::string_view label)
    : label_(label), visible_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::show(double share, std::string_view note) {
  if (!visible_) return;
  constexpr int kWidth = 30;
  const int filled = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "█" : "░";
  std::string line =
      fmt::format("\r{} {} {:3}% {}\x1b[K", label_, bar, static_cast<int>(share * 100), note);
  if (line == drawn_) return;
  drawn_ = std::move(line);
  fmt::print(stderr, "{}", drawn_);
}

void Progress::clear() {
  if (drawn_.empty()) return;
  fmt::print(stderr, "\r\x1b[K");
  drawn_.clear();
}

std::string Table::text(const Output& style) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const Column& column : columns_) widths.push_back(shown_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], shown_width(row[i]));
    }
  }

  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_at(i);
      const std::string padding(widths[i] - shown_width(cell), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].side == Side::right ? padding + cell : cell + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };

  const auto title = [&](std::size_t i) -> const std::string& { return columns_[i].title; };
  std::string text = fmt::format("{}{}{}\n", style.style(kBold), line(title), style.style(kPlain));
  for (const auto& row : rows_) {
    text += line([&](std::size_t i) -> const std::string& { return row[i]; });
    text += '\n';
  }
  return text;
}

}  // namespace sluice::cli
