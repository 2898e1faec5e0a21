// Standard output and standard error, as a person or a pipe sees them.
#pragma once

#include "cli/exit_code.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

// Standard output, buffered, remembering whether writing failed: a reader that went away (`| head`)
// or a full disk is reported once, at the end, by finish(). One thread.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { flush(); }

  void write(std::string_view text);
  void flush() noexcept;

  // Nothing that is written from now on can arrive; stop working for it.
  [[nodiscard]] bool failed() const noexcept { return error_ != 0; }

  // Flushes; the code given, or `failure` with a message when not everything could be written.
  [[nodiscard]] ExitCode finish(std::string_view command, ExitCode code);

  // Escape codes that make text bold, green, ... on a terminal and nothing elsewhere.
  [[nodiscard]] std::string_view style(std::string_view escape) const noexcept {
    return colour_ ? escape : std::string_view{};
  }

 private:
  std::string buffer_;
  int error_ = 0;
  bool colour_ = terminal_wants_colour();

  [[nodiscard]] static bool terminal_wants_colour() noexcept;
};

inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kDim = "\x1b[2m";
inline constexpr std::string_view kRed = "\x1b[31m";
inline constexpr std::string_view kGreen = "\x1b[32m";
inline constexpr std::string_view kPlain = "\x1b[0m";

// "sluice replay: message" on standard error.
void complain(std::string_view command, std::string_view message);

// A bar on standard error while something takes long; silent when that is not a terminal. One
// thread.
class Progress {
 public:
  explicit Progress(std::string_view label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // `share` runs from 0 to 1; redraws only when there is something new to see.
  void show(double share, std::string_view note = {});
  void clear();

 private:
  std::string label_;
  std::string drawn_;
  bool visible_;
};

// Columns that line up: right-aligned numbers, left-aligned words. Widths count UTF-8 characters.
class Table {
 public:
  enum class Side : unsigned char { left, right };

  struct Column {
    std::string title;
    Side side = Side::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text(const Output& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sluice::cli
