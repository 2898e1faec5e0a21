// What one decision costs, per algorithm, with its state in the first-level cache.
//
// Every benchmark feeds the state that a decision leaves into the next one and moves the clock, so
// that nothing can be computed ahead; and it counts the verdicts, so that a benchmark called
// "refused" fails unless every single request was refused. One iteration is one decision, except
// where the name says otherwise.

#include <sluice/core/compiled_limit.h>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::core {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonoTime kMono{hours{5}};
constexpr WallTime kWall{hours{24 * 365 * 52}};

// Benchmarks run a few billion decisions at most: time moves, but stays within minutes.
constexpr Nanos kTick{1};

enum class Expect : std::uint8_t { allowed, refused };

// Decides again and again; `decide(now)` returns the decision and keeps the state.
template <class Time, class Decide>
void run(benchmark::State& state, Time now, Nanos tick, Expect expected, Decide decide) {
  std::int64_t wrong = 0;
  const Verdict wanted = expected == Expect::allowed ? Verdict::allowed : Verdict::rejected;
  for (auto _ : state) {
    now += tick;
    benchmark::DoNotOptimize(now);
    Decision decision = decide(now);
    benchmark::DoNotOptimize(decision);
    wrong += decision.verdict == wanted ? 0 : 1;
  }
  if (wrong != 0) state.SkipWithError("a decision was not what the benchmark is about");
}

// For states that are small enough to be passed by value.
template <class Limit, class State, class Time>
auto stepping(Step<State> (*step)(const Limit&, State, Time, Cost) noexcept, const Limit& limit,
              State& state, Cost cost) {
  return [step, &limit, &state, cost](Time now) {
    Step<State> stepped = step(limit, state, now, cost);
    state = stepped.state;
    return stepped.decision;
  };
}

// ---- buckets
// -------------------------------------------------------------------------------------

GcraLimit bucket(GcraLimit::Numbers numbers) { return GcraLimit::from(numbers); }

void gcra(benchmark::State& state, const GcraLimit& limit, Nanos tick, Cost cost, Expect expected) {
  GcraState key = gcra_idle(limit, kMono);
  if (expected == Expect::refused) key = gcra_charge(limit, key, kMono, limit.meter.burst).state;
  run(state, kMono, tick, expected, stepping(&gcra_step, limit, key, cost));
}

// 100 a second, asked for every 10 ms.
void gcra_admitted(benchmark::State& state) {
  const GcraLimit limit = bucket({.amount = 100, .period = seconds{1}, .burst = 10});
  gcra(state, limit, milliseconds{10}, 1, Expect::allowed);
}
BENCHMARK(gcra_admitted);

// The bucket takes a year to drain, so it stays full however long the benchmark runs.
void gcra_refused(benchmark::State& state) {
  const GcraLimit limit = bucket({.amount = 1000, .period = hours{24 * 365}, .burst = 1000});
  gcra(state, limit, kTick, 1, Expect::refused);
}
BENCHMARK(gcra_refused);

void gcra_peek(benchmark::State& state) {
  const GcraLimit limit = bucket({.amount = 100, .period = seconds{1}, .burst = 10});
  gcra(state, limit, kTick, 0, Expect::allowed);
}
BENCHMARK(gcra_peek);

// A third of a second does not divide evenly: ticks are fractions of a nanosecond.
void gcra_uneven_interval_admitted(benchmark::State& state) {
  const GcraLimit limit = bucket({.amount = 3, .period = seconds{1}, .burst = 3});
  gcra(state, limit, milliseconds{334}, 1, Expect::allowed);
}
BENCHMARK(gcra_uneven_interval_admitted);

// Half of the queue is taken when the measuring starts: every request is admitted and held.
void leaky_bucket_queued(benchmark::State& state) {
  const GcraLimit limit =
      bucket({.amount = 100, .period = seconds{1}, .burst = 1, .max_delay = seconds{10}});
  GcraState key = gcra_idle(limit, kMono);
  for (int i = 0; i < 500; ++i) key = gcra_step(limit, key, kMono, 1).state;
  std::int64_t at_once = 0;
  run(state, kMono, milliseconds{10}, Expect::allowed, [&](MonoTime now) {
    const Step<GcraState> step = gcra_step(limit, key, now, 1);
    key = step.state;
    at_once += step.decision.delay == Nanos{0} ? 1 : 0;
    return step.decision;
  });
  if (at_once != 0) state.SkipWithError("a request did not have to queue");
}
BENCHMARK(leaky_bucket_queued);

void interval_bucket_admitted(benchmark::State& state) {
  const IntervalLimit limit =
      IntervalLimit::from({.amount = 100, .period = seconds{1}, .burst = 100});
  IntervalState key{};
  run(state, kWall, milliseconds{10}, Expect::allowed, stepping(&interval_step, limit, key, 1));
}
BENCHMARK(interval_bucket_admitted);

void interval_bucket_refused(benchmark::State& state) {
  const IntervalLimit limit =
      IntervalLimit::from({.amount = 1000, .period = hours{24 * 365}, .burst = 1000});
  IntervalState key = interval_charge(limit, {}, kWall, 1000).state;
  run(state, kWall, kTick, Expect::refused, stepping(&interval_step, limit, key, 1));
}
BENCHMARK(interval_bucket_refused);

// ---- windows
// -------------------------------------------------------------------------------------

void fixed_window_epoch_admitted(benchmark::State& state) {
  const WindowLimit limit{.amount = 100, .period = seconds{1}};
  WindowState key{};
  run(state, kWall, milliseconds{10}, Expect::allowed, stepping(&fixed_window_step, limit, key, 1));
}
BENCHMARK(fixed_window_epoch_admitted);

void fixed_window_epoch_refused(benchmark::State& state) {
  const WindowLimit limit{.amount = 100, .period = hours{24 * 365}};
  WindowState key = fixed_window_charge(limit, {}, kWall, 100).state;
  run(state, kWall, kTick, Expect::refused, stepping(&fixed_window_step, limit, key, 1));
}
BENCHMARK(fixed_window_epoch_refused);

// The amount outlasts any number of requests that a benchmark makes within one month.
void fixed_window_calendar_admitted(benchmark::State& state) {
  auto grid = CalendarGrid::build(CalendarUnit::month, "Europe/Berlin");
  if (!grid) return state.SkipWithError("no time zone database");
  const WindowLimit limit{.amount = 4'000'000'000,
                          .calendar = std::make_shared<const CalendarGrid>(*std::move(grid))};
  WindowState key{};
  run(state, kWall, microseconds{10}, Expect::allowed, stepping(&fixed_window_step, limit, key, 1));
}
BENCHMARK(fixed_window_calendar_admitted);

void fixed_window_first_request_admitted(benchmark::State& state) {
  const FirstRequestLimit limit{.amount = 101, .period = seconds{1}};
  WindowState key{};
  run(state, kMono, milliseconds{10}, Expect::allowed,
      stepping(&first_request_step, limit, key, 1));
}
BENCHMARK(fixed_window_first_request_admitted);

void fixed_window_first_request_refused(benchmark::State& state) {
  const FirstRequestLimit limit{.amount = 100, .period = hours{24 * 365}};
  WindowState key = first_request_charge(limit, {}, kMono, 100).state;
  run(state, kMono, kTick, Expect::refused, stepping(&first_request_step, limit, key, 1));
}
BENCHMARK(fixed_window_first_request_refused);

void sliding_counter_admitted(benchmark::State& state) {
  const CounterLimit limit{.amount = 201, .period = seconds{1}};
  CounterState key{};
  run(state, kWall, milliseconds{5}, Expect::allowed,
      stepping(&sliding_counter_step, limit, key, 1));
}
BENCHMARK(sliding_counter_admitted);

void sliding_counter_refused(benchmark::State& state) {
  const CounterLimit limit{.amount = 100, .period = hours{24 * 365}};
  CounterState key = sliding_counter_charge(limit, {}, kWall, 100).state;
  run(state, kWall, kTick, Expect::refused, stepping(&sliding_counter_step, limit, key, 1));
}
BENCHMARK(sliding_counter_refused);

// ---- states in the caller's memory
// ---------------------------------------------------------------

// A log as full as it gets: each request comes as the oldest entry leaves.
void sliding_log_admitted(benchmark::State& state) {
  const auto amount = static_cast<Cost>(state.range(0));
  const LogLimit limit{.amount = amount, .period = milliseconds{1} * amount};
  LogHeader header{};
  std::vector<LogEntry> ring(amount);
  MonoTime now = kMono;
  for (Cost i = 0; i < amount; ++i) {
    now += milliseconds{1};
    const Outcome filled = sliding_log_step(limit, {&header, ring}, now, 1);
    if (!filled.decision.allowed()) return state.SkipWithError("the log could not be filled");
  }
  run(state, now, milliseconds{1}, Expect::allowed,
      [&](MonoTime at) { return sliding_log_step(limit, {&header, ring}, at, 1).decision; });
}
BENCHMARK(sliding_log_admitted)->ArgName("amount")->Arg(10)->Arg(4096);

// A full log of one-unit entries, none of which expires while the benchmark runs.
void sliding_log_refused(benchmark::State& state) {
  const auto amount = static_cast<Cost>(state.range(0));
  const LogLimit limit{.amount = amount, .period = hours{24 * 365}};
  LogHeader header{};
  std::vector<LogEntry> ring(amount);
  MonoTime now = kMono;
  for (Cost i = 0; i < amount; ++i) {
    now += milliseconds{1};
    const Outcome filled = sliding_log_step(limit, {&header, ring}, now, 1);
    if (!filled.decision.allowed()) return state.SkipWithError("the log could not be filled");
  }
  run(state, now, kTick, Expect::refused,
      [&](MonoTime at) { return sliding_log_step(limit, {&header, ring}, at, 1).decision; });
}
BENCHMARK(sliding_log_refused)->ArgName("amount")->Arg(10)->Arg(4096);

BucketsLimit sliced(std::int64_t slices, Cost amount, Nanos width) {
  return {.amount = amount, .period = width * slices, .width = width, .slices = slices};
}

// One request in each slice, so that every request opens a slice and drops one.
void sliding_buckets_admitted(benchmark::State& state) {
  const BucketsLimit limit =
      sliced(state.range(0), static_cast<Cost>(state.range(0)) + 1, milliseconds{1});
  BucketsHeader header{};
  std::vector<Cost> counters(static_cast<std::size_t>(limit.slices) + 1);
  run(state, kWall, milliseconds{1}, Expect::allowed, [&](WallTime now) {
    return sliding_buckets_step(limit, {&header, counters}, now, 1).decision;
  });
}
BENCHMARK(sliding_buckets_admitted)->ArgName("slices")->Arg(8)->Arg(4096);

// All was used in the newest slice, the last one to which the search for the wait comes.
void sliding_buckets_refused(benchmark::State& state) {
  const BucketsLimit limit = sliced(state.range(0), 100, hours{1});
  BucketsHeader header{};
  std::vector<Cost> counters(static_cast<std::size_t>(limit.slices) + 1);
  const Outcome filled = sliding_buckets_charge(limit, {&header, counters}, kWall, 100);
  if (filled.decision.remaining != 0) return state.SkipWithError("the window is not full");
  run(state, kWall, kTick, Expect::refused, [&](WallTime now) {
    return sliding_buckets_step(limit, {&header, counters}, now, 1).decision;
  });
}
BENCHMARK(sliding_buckets_refused)->ArgName("slices")->Arg(8)->Arg(4096);

// ---- concurrency
// ---------------------------------------------------------------------------------

void concurrency_take_and_release(benchmark::State& state) {
  const ConcurrencyLimit limit{.amount = 100, .slot_ttl = seconds{60}};
  ConcurrencyState key{};
  run(state, kMono, microseconds{10}, Expect::allowed, [&](MonoTime now) {
    const Step<ConcurrencyState> taken = concurrency_step(limit, key, now, 1);
    key = concurrency_release(limit, taken.state, now + Nanos{100}, taken.receipt, 1);
    return taken.decision;
  });
}
BENCHMARK(concurrency_take_and_release);

void concurrency_refused(benchmark::State& state) {
  const ConcurrencyLimit limit{.amount = 100, .slot_ttl = hours{24 * 365}};
  ConcurrencyState key = concurrency_charge(limit, {}, kMono, 100).state;
  run(state, kMono, kTick, Expect::refused, stepping(&concurrency_step, limit, key, 1));
}
BENCHMARK(concurrency_refused);

}  // namespace
}  // namespace sluice::core
