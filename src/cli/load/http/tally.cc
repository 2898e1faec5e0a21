#include "cli/load/http/tally.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace sluice::cli {

std::string_view to_string(LoadError error) noexcept {
  switch (error) {
    case LoadError::connect: return "connect";
    case LoadError::timeout: return "timeout";
    case LoadError::closed: return "closed";
    case LoadError::bad_response: return "bad_response";
  }
  return "";
}

Nanos point_width_for(Nanos duration) noexcept {
  using namespace std::chrono_literals;
  constexpr std::int64_t kMost = 60;
  constexpr std::array<Nanos, 12> kWidths{250ms, 500ms, 1s,   2s,    5s, 10s,
                                          30s,   1min,  5min, 15min, 1h, 6h};
  const auto* const fits =
      std::ranges::find_if(kWidths, [&](Nanos width) { return width * kMost >= duration; });
  return fits != kWidths.end() ? *fits : duration / kMost;
}

SeriesPoint& Tally::point_at(Nanos at) {
  const auto place = static_cast<std::size_t>(std::max(at, Nanos{0}) / point_width);
  if (series.size() <= place) series.resize(place + 1);
  return series[place];
}

void Tally::count_offered(Nanos due) {
  ++offered;
  ++point_at(due).offered;
}

void Tally::count_not_sent(Nanos due, Nanos now) {
  ++not_sent;
  ++point_at(now).other;
  whole_latency.record(now - due);
}

// It would have taken longer still, but so long it did take. Without it a server that hangs would
// look fast.
void Tally::count_unfinished(Nanos due, Nanos now) {
  ++unfinished;
  whole_latency.record(now - due);
}

void Tally::count_ending(const RequestTimes& times, std::uint64_t client, const Ending& ending) {
  first_sent = std::min(first_sent, times.sent);
  last_over = std::max(last_over, times.over);
  const Nanos latency = times.over - times.due;
  whole_latency.record(latency);
  SeriesPoint& point = point_at(times.over);
  if (ending.status == 0) {
    ++by_error[static_cast<std::size_t>(ending.error)];
    ++point.other;
    return;
  }
  ++by_status[ending.status];
  point.latency.record(latency);
  switch (class_of(ending.status)) {
    case AnswerClass::admitted:
      ++point.admitted;
      ++admitted_by_client[client];
      admitted_latency.record(latency);
      admitted_service.record(times.over - times.sent);
      break;
    case AnswerClass::rejected:
      ++point.rejected;
      rejected_latency.record(latency);
      rejected_service.record(times.over - times.sent);
      break;
    case AnswerClass::other: ++point.other; break;
  }
}

void Tally::note_retry_after(std::uint64_t seconds) noexcept {
  retry_after_least = std::min(retry_after_least, seconds);
  retry_after_most = std::max(retry_after_most, seconds);
}

std::uint64_t Tally::count(AnswerClass wanted) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t status = 0; status < by_status.size(); ++status) {
    if (class_of(static_cast<std::uint16_t>(status)) == wanted) sum += by_status[status];
  }
  return sum;
}

std::uint64_t Tally::answered() const noexcept {
  return std::accumulate(by_status.begin(), by_status.end(), std::uint64_t{0});
}

std::uint64_t Tally::failed() const noexcept {
  return std::accumulate(by_error.begin(), by_error.end(), std::uint64_t{0});
}

void Tally::add(const Tally& other) {
  offered += other.offered;
  not_sent += other.not_sent;
  unfinished += other.unfinished;
  const auto add_each = [](auto& to, const auto& from) {
    std::ranges::transform(to, from, to.begin(), std::plus<>{});
  };
  add_each(by_status, other.by_status);
  add_each(by_error, other.by_error);
  add_each(admitted_by_client, other.admitted_by_client);
  admitted_latency.add(other.admitted_latency);
  rejected_latency.add(other.rejected_latency);
  whole_latency.add(other.whole_latency);
  admitted_service.add(other.admitted_service);
  rejected_service.add(other.rejected_service);
  lateness.add(other.lateness);
  first_sent = std::min(first_sent, other.first_sent);
  last_over = std::max(last_over, other.last_over);
  retry_after_least = std::min(retry_after_least, other.retry_after_least);
  retry_after_most = std::max(retry_after_most, other.retry_after_most);
  policies.add(other.policies);
  if (series.size() < other.series.size()) series.resize(other.series.size());
  for (std::size_t i = 0; i < other.series.size(); ++i) {
    series[i].offered += other.series[i].offered;
    series[i].admitted += other.series[i].admitted;
    series[i].rejected += other.series[i].rejected;
    series[i].other += other.series[i].other;
    series[i].latency.add(other.series[i].latency);
  }
}

}  // namespace sluice::cli
