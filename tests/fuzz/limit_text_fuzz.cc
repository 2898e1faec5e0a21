// Lengths of time and limits as people write them.
//
// A length of time that is read is written so that it reads back as itself. A limit that compiles
// admits its capacity at once, not one more, whichever algorithm it is for.

#include "base/duration.h"
#include "fuzz.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace {

using sluice::Now;
using sluice::Verdict;
using sluice::core::Cell;
using sluice::core::CompiledLimit;
using sluice::core::Cost;
using sluice::fuzz::expect;

constexpr Now kNow{.mono = sluice::MonoTime{std::chrono::hours{5}},
                   .wall_offset = std::chrono::hours{24 * 365 * 52}};

void check_duration(std::string_view text) {
  const auto duration = sluice::parse_duration(text);
  if (!duration) {
    expect(!duration.error().message.empty(), "a rejected duration comes with a reason");
    return;
  }
  expect(*duration >= sluice::Nanos{0}, "no duration is negative");
  const auto again = sluice::parse_duration(sluice::format_duration(*duration));
  expect(again && *again == *duration, "a duration survives format and parse");
}

void admits_capacity_in_one(const CompiledLimit& limit, Cost capacity) {
  Cell cell;
  expect(cell.decide(limit, kNow, capacity + 1).decision.verdict == Verdict::never,
         "a cost above the capacity can never pass");
  expect(cell.decide(limit, kNow, capacity).decision.allowed(), "the whole capacity passes idle");
  expect(cell.decide(limit, kNow, 1).decision.verdict == Verdict::rejected,
         "nothing passes on top of the whole capacity");
}

void admits_capacity_in_ones(const CompiledLimit& limit, Cost capacity) {
  constexpr Cost kTries = 64;
  Cell cell;
  Cost admitted = 0;
  for (Cost i = 0; i < kTries; ++i) {
    if (cell.decide(limit, kNow, 1).decision.allowed()) ++admitted;
  }
  expect(admitted == std::min(capacity, kTries), "as many pass one by one as the capacity says");
}

void check_rate_text(const sluice::Limit& limit) {
  const auto again = sluice::core::parse_limit(sluice::core::rate_text(limit), limit.algorithm);
  expect(again && again->amount == limit.amount && again->period == limit.period &&
             again->unit == limit.unit,
         "a limit that can be kept survives being written and read");
}

// A calendar's grid takes milliseconds to build, which would leave the fuzzer with little to do.
// The grid does not depend on the text beyond its unit, so one in 256 inputs is enough.
bool is_worth_compiling(const sluice::Limit& limit) {
  return !limit.unit || limit.amount % 256 == 1;
}

void check_limit(std::string_view text, std::optional<sluice::Algorithm> algorithm) {
  const auto limit = sluice::core::parse_limit(text, algorithm);
  if (!limit) {
    expect(!limit.error().message.empty(), "a rejected limit comes with a reason");
    return;
  }
  if (!is_worth_compiling(*limit)) return;
  const auto compiled = sluice::core::compile(*limit);
  if (!compiled) {
    expect(!compiled.error().message.empty(), "a limit that cannot be kept comes with a reason");
    return;
  }
  check_rate_text(*limit);
  const auto capacity = static_cast<Cost>(sluice::core::capacity(*limit));
  admits_capacity_in_one(*compiled, capacity);
  admits_capacity_in_ones(*compiled, capacity);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{data, data + size};
  check_duration(text);
  check_limit(text, std::nullopt);
  for (const sluice::Algorithm algorithm : sluice::kAlgorithms) check_limit(text, algorithm);
  return 0;
}
