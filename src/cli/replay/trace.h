// Recorded requests: time, key, cost and duration.
//
// Two forms, told apart by the first line that is neither blank nor a comment:
//
//   time[,key[,cost[,duration]]]   time in RFC 3339 or whole nanoseconds since 1970; the duration
//                                  is how long the request was in flight, for concurrency
//   N R                            the exercise: N requests, at most R per hour, then N times
//
// Lines that begin with '#' are comments.
#pragma once

#include "base/line_reader.h"
#include <sluice/core/step.h>
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

struct TraceRequest {
  WallTime at;
  std::string key;
  core::Cost cost = 1;
  std::optional<Nanos> duration;
};

// The first line of the exercise.
struct Exercise {
  std::uint64_t requests = 0;
  std::uint64_t per_hour = 0;
};

// One thread. Reads one request at a time, so a trace may be longer than memory.
class TraceReader {
 public:
  // "-" is standard input. Reads up to the first request, to know the form.
  [[nodiscard]] static Parsed<TraceReader> open(const std::string& path);

  [[nodiscard]] const std::optional<Exercise>& exercise() const noexcept { return exercise_; }

  // Whether the first request's time was a whole number, and thus nanoseconds.
  [[nodiscard]] bool whole_number_first() const noexcept { return whole_number_first_; }

  // Nothing at the end. A mistake names file, line and column, and the expected form.
  [[nodiscard]] Parsed<std::optional<TraceRequest>> next();

 private:
  explicit TraceReader(LineReader lines) : lines_(std::move(lines)) {}

  [[nodiscard]] Parsed<std::optional<std::string>> next_line();
  [[nodiscard]] Parsed<TraceRequest> parse(std::string_view line) const;
  [[nodiscard]] tl::unexpected<Diagnostic> at_column(std::size_t column,
                                                     const Diagnostic& mistake) const;

  LineReader lines_;
  std::optional<Exercise> exercise_;
  std::optional<std::string> ahead_;  // a line that open() had to read
  std::uint64_t requests_ = 0;
  bool whole_number_first_ = false;
};

[[nodiscard]] Parsed<std::vector<TraceRequest>> read_all(TraceReader& reader);

}  // namespace sluice::cli
