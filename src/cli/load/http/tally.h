// What became of the requests of a run. Each has exactly one ending, so the parts add up.
#pragma once

#include "cli/load/http/policies.h"
#include "metrics/histogram.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::cli {

// Spelled alike in code and JSON.
enum class LoadError : std::uint8_t {
  connect,       // no connection, or no TLS on it
  timeout,       // no whole answer in time
  closed,        // the connection ended before the response did
  bad_response,  // not a response of HTTP/1.1
};
inline constexpr std::array kLoadErrors{LoadError::connect, LoadError::timeout, LoadError::closed,
                                        LoadError::bad_response};
[[nodiscard]] std::string_view to_string(LoadError error) noexcept;

enum class AnswerClass : std::uint8_t { admitted, rejected, other };

[[nodiscard]] constexpr AnswerClass class_of(std::uint16_t status) noexcept {
  if (status == 429) return AnswerClass::rejected;
  return status >= 200 && status < 400 ? AnswerClass::admitted : AnswerClass::other;
}

// How a request that was sent ended.
struct Ending {
  std::uint16_t status = 0;  // 0: an error
  LoadError error{};

  [[nodiscard]] static constexpr Ending answered(std::uint16_t status) noexcept {
    return {.status = status};
  }
  [[nodiscard]] static constexpr Ending failed(LoadError error) noexcept {
    return {.error = error};
  }
};

// When a request was wanted, sent and over; all after the beginning of the run.
struct RequestTimes {
  Nanos due{0};
  Nanos sent{0};
  Nanos over{0};
};

// One stretch of the run, for the plot: answers stand where they came.
struct SeriesPoint {
  std::uint64_t offered = 0;
  std::uint64_t admitted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t other = 0;  // other statuses, errors, and requests not sent
  Histogram latency;        // of all responses, from the scheduled start
};

struct Tally {
  Tally(Nanos width_of_points, std::uint64_t clients)
      : point_width(width_of_points), admitted_by_client(clients) {}

  void count_offered(Nanos due);
  void count_not_sent(Nanos due, Nanos now);
  void count_unfinished(Nanos due, Nanos now);
  void count_ending(const RequestTimes& times, std::uint64_t client, const Ending& ending);
  void note_retry_after(std::uint64_t seconds) noexcept;
  // That of another thread of the same run.
  void add(const Tally& other);

  [[nodiscard]] std::uint64_t admitted() const noexcept { return count(AnswerClass::admitted); }
  [[nodiscard]] std::uint64_t rejected() const noexcept { return count(AnswerClass::rejected); }
  [[nodiscard]] std::uint64_t answered() const noexcept;
  [[nodiscard]] std::uint64_t failed() const noexcept;

  std::uint64_t offered = 0;
  std::uint64_t not_sent = 0;    // no connection became free for it in time
  std::uint64_t unfinished = 0;  // in flight when the run was stopped
  std::array<std::uint64_t, 600> by_status{};
  std::array<std::uint64_t, kLoadErrors.size()> by_error{};

  // From the scheduled start.
  Histogram admitted_latency;
  Histogram rejected_latency;
  Histogram whole_latency;  // of everything that was offered, however it ended, or has not yet
  // From sending.
  Histogram admitted_service;
  Histogram rejected_service;
  // Between the instant at which a request could have been sent and the one at which it was.
  Histogram lateness;

  Nanos first_sent{Nanos::max()};
  Nanos last_over{0};
  std::uint64_t retry_after_least = ~std::uint64_t{0};
  std::uint64_t retry_after_most = 0;  // 0: none was stated
  PolicyBook policies;

  Nanos point_width;
  std::vector<SeriesPoint> series;
  std::vector<std::uint32_t> admitted_by_client;

 private:
  [[nodiscard]] std::uint64_t count(AnswerClass wanted) const noexcept;
  [[nodiscard]] SeriesPoint& point_at(Nanos at);
};

// A width that gives a run of this length at most sixty points, but never finer than the eye.
[[nodiscard]] Nanos point_width_for(Nanos duration) noexcept;

}  // namespace sluice::cli
