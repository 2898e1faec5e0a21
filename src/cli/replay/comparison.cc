#include "cli/replay/comparison.h"

#include "cli/replay/replayer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::cli {
namespace {

// The limit as one algorithm would have it, without the options that only others know.
Limit as_algorithm(const Limit& limit, Algorithm algorithm) {
  const auto only_for = [&](bool knows, const auto& option) {
    return knows ? option : std::decay_t<decltype(option)>{};
  };
  Limit adapted{.algorithm = algorithm, .amount = limit.amount, .period = limit.period};
  adapted.unit = limit.unit;
  adapted.burst = only_for(core::is_bucket(algorithm), limit.burst);
  adapted.bucket_width = only_for(algorithm == Algorithm::sliding_buckets, limit.bucket_width);
  adapted.max_delay = only_for(algorithm == Algorithm::leaky_bucket, limit.max_delay);
  adapted.timezone = only_for(algorithm == Algorithm::fixed_window, limit.timezone);
  adapted.count_rejected = limit.count_rejected;
  if (limit.unit && algorithm == Algorithm::fixed_window) adapted.align = Align::calendar;
  if (algorithm == Algorithm::concurrency) {
    adapted.period = Nanos{0};
    adapted.slot_ttl = limit.slot_ttl;
    adapted.count_rejected = false;
  }
  return adapted;
}

// Windows of a calendar unit differ in length; the promise holds for the shortest.
Nanos shortest_window(const Contender& contender) noexcept {
  const auto* window = std::get_if<core::WindowLimit>(&contender.compiled);
  if (window != nullptr && window->calendar) return window->calendar->shortest();
  return contender.limit.period;
}

// The highest sum in any half-open window (t - width, t]; passages come in order of time.
std::uint64_t most_within(std::span<const Passage> passages, Nanos width) noexcept {
  std::uint64_t most = 0;
  std::uint64_t sum = 0;
  std::size_t oldest = 0;
  for (const Passage& passage : passages) {
    sum += passage.cost;
    while (passage.at - passages[oldest].at >= width) sum -= passages[oldest++].cost;
    most = std::max(most, sum);
  }
  return most;
}

// The admitted requests of each key, by the time at which they were let through.
std::map<std::string_view, std::vector<Passage>> passages_by_key(
    std::span<const TraceRequest> requests, const Lane& lane) {
  std::map<std::string_view, std::vector<Passage>> by_key;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Admission& admission = lane.admissions[i];
    if (!admission.allowed) continue;
    by_key[requests[i].key].push_back(
        {.at = requests[i].at + admission.delay, .cost = requests[i].cost});
  }
  for (auto& [key, passages] : by_key) std::ranges::sort(passages, {}, &Passage::at);
  return by_key;
}

std::uint64_t most_of_any_key(std::span<const TraceRequest> requests, const Lane& lane) {
  std::uint64_t most = 0;
  for (const auto& [key, passages] : passages_by_key(requests, lane)) {
    most = std::max(most, most_within(passages, lane.window));
  }
  return most;
}

Lane run(std::span<const TraceRequest> requests, const Contender& contender) {
  Lane lane{.name = contender.name,
            .limit = contender.limit,
            .window = shortest_window(contender),
            .promised = core::most_admitted(contender.limit)};
  lane.admissions.reserve(requests.size());
  Replayer replayer{contender.compiled};
  for (const TraceRequest& request : requests) {
    const Decision decision = replayer.decide(request);
    lane.admissions.push_back({.allowed = decision.allowed(), .delay = decision.delay});
    ++(decision.allowed() ? lane.admitted : lane.rejected);
  }
  if (lane.window > Nanos{0}) lane.most_in_window = most_of_any_key(requests, lane);
  return lane;
}

}  // namespace

ComparedField all_algorithms(const Limit& limit, bool trace_has_durations) {
  ComparedField field;
  const auto enter = [&](std::string name, const Limit& adapted) {
    Parsed<core::CompiledLimit> compiled = core::compile(adapted);
    if (compiled) {
      field.contenders.push_back({std::move(name), adapted, *std::move(compiled)});
    } else {
      field.left_out.push_back(fmt::format("{}: {}", name, compiled.error().text()));
    }
  };

  if (limit.unit) {
    enter("fixed_window", as_algorithm(limit, Algorithm::fixed_window));
    field.left_out.push_back(fmt::format("all others: only fixed_window counts per calendar {}",
                                         to_string(*limit.unit)));
    return field;
  }
  for (const Algorithm algorithm : kAlgorithms) {
    const std::string name{to_string(algorithm)};
    if (algorithm == Algorithm::concurrency && !trace_has_durations) {
      field.left_out.push_back(name + ": no request of the trace carries a duration");
      continue;
    }
    const Limit adapted = as_algorithm(limit, algorithm);
    enter(name, adapted);
    if (algorithm == Algorithm::token_bucket) {
      Limit interval = adapted;
      interval.refill = Refill::interval;
      enter(name + " interval", interval);
    }
    if (algorithm == Algorithm::fixed_window) {
      Limit first_request = adapted;
      first_request.align = Align::first_request;
      enter(name + " first_request", first_request);
    }
  }
  return field;
}

Comparison compare(std::vector<TraceRequest> requests, std::span<const Contender> contenders) {
  Comparison comparison{.requests = std::move(requests), .lanes = {}};
  for (const Contender& contender : contenders) {
    comparison.lanes.push_back(run(comparison.requests, contender));
  }
  return comparison;
}

std::vector<Passage> passages_of(const Comparison& comparison, const Lane& lane,
                                 const std::string& key) {
  return passages_by_key(comparison.requests, lane)[key];
}

}  // namespace sluice::cli
