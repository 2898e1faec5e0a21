// One trace through several limits: what each admits, and how close it comes to its bound.
#pragma once

#include "cli/replay/trace.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/limit.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::cli {

struct Contender {
  std::string name;  // the algorithm, and its variant after a space
  Limit limit;
  core::CompiledLimit compiled;
};

// All algorithms and variants at one rate. Options of `limit` reach those algorithms that know
// them; what cannot be enforced at this rate is left out, with the reason.
struct ComparedField {
  std::vector<Contender> contenders;
  std::vector<std::string> left_out;  // "sliding_log: why"
};
[[nodiscard]] ComparedField all_algorithms(const Limit& limit, bool trace_has_durations);

struct Admission {
  bool allowed = false;
  Nanos delay{0};
};

struct Lane {
  std::string name;
  Limit limit;
  Nanos window{0};                    // one period; 0 for concurrency
  std::vector<Admission> admissions;  // one per request of the trace
  std::uint64_t admitted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t most_in_window = 0;  // highest cost any key had admitted within any one period
  std::uint64_t promised = 0;        // the algorithm's bound on that, before refunds
};

struct Comparison {
  std::vector<TraceRequest> requests;
  std::vector<Lane> lanes;
};

[[nodiscard]] Comparison compare(std::vector<TraceRequest> requests,
                                 std::span<const Contender> contenders);

// A cost that was let through at some instant.
struct Passage {
  WallTime at;
  std::uint64_t cost = 0;
};

// The admitted requests of one key, by the time at which they were let through.
[[nodiscard]] std::vector<Passage> passages_of(const Comparison& comparison, const Lane& lane,
                                               const std::string& key);

}  // namespace sluice::cli
