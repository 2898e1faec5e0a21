// One key's bare state under one limit: what a store keeps, comparable bit by bit.
//
// core::Cell hides its state; a test that wants to see that nothing was written uses this.
#pragma once

#include <sluice/core/compiled_limit.h>
#include <sluice/core/step.h>
#include <sluice/time.h>

#include <vector>

namespace sluice::testing {

template <class Limit>
class RawKey;

// States that are copied in and out of a step function.
#define SLUICE_RAW_KEY(LIMIT, STATE, IDLE, BASE, STEP, CHARGE, REFUND)                             \
  template <>                                                                                      \
  class RawKey<core::LIMIT> {                                                                      \
   public:                                                                                         \
    RawKey(core::LIMIT limit, [[maybe_unused]] Now now) : limit_(std::move(limit)), state_ IDLE {} \
    core::Outcome decide(Now now, core::Cost cost) {                                               \
      return kept(core::STEP(limit_, state_, now.BASE, cost));                                     \
    }                                                                                              \
    core::Outcome charge(Now now, core::Cost cost) {                                               \
      return kept(core::CHARGE(limit_, state_, now.BASE, cost));                                   \
    }                                                                                              \
    void refund([[maybe_unused]] Now now, core::Receipt receipt, core::Cost amount) {              \
      state_ = core::REFUND;                                                                       \
    }                                                                                              \
    friend bool operator==(const RawKey& a, const RawKey& b) { return a.state_ == b.state_; }      \
    [[nodiscard]] const core::STATE& state() const { return state_; }                              \
                                                                                                   \
   private:                                                                                        \
    core::Outcome kept(const core::Step<core::STATE>& step) {                                      \
      state_ = step.state;                                                                         \
      return {.decision = step.decision, .receipt = step.receipt};                                 \
    }                                                                                              \
    core::LIMIT limit_;                                                                            \
    core::STATE state_;                                                                            \
  }

SLUICE_RAW_KEY(GcraLimit, GcraState, (core::gcra_idle(limit_, now.mono)), mono, gcra_step,
               gcra_charge, gcra_refund(limit_, state_, now.mono, receipt, amount));
SLUICE_RAW_KEY(IntervalLimit, IntervalState, {}, wall(), interval_step, interval_charge,
               interval_refund(limit_, state_, now.wall(), receipt, amount));
SLUICE_RAW_KEY(WindowLimit, WindowState, {}, wall(), fixed_window_step, fixed_window_charge,
               window_refund(state_, receipt, amount));
SLUICE_RAW_KEY(FirstRequestLimit, WindowState, {}, mono, first_request_step, first_request_charge,
               window_refund(state_, receipt, amount));
SLUICE_RAW_KEY(CounterLimit, CounterState, {}, wall(), sliding_counter_step, sliding_counter_charge,
               sliding_counter_refund(state_, receipt, amount));
SLUICE_RAW_KEY(ConcurrencyLimit, ConcurrencyState, {}, mono, concurrency_step, concurrency_charge,
               concurrency_release(limit_, state_, now.mono, receipt, amount));

#undef SLUICE_RAW_KEY

template <>
class RawKey<core::LogLimit> {
 public:
  RawKey(const core::LogLimit& limit, Now /*now*/) : limit_(limit), ring_(limit.amount) {}

  core::Outcome decide(Now now, core::Cost cost) {
    return core::sliding_log_step(limit_, view(), now.mono, cost);
  }
  core::Outcome charge(Now now, core::Cost cost) {
    return core::sliding_log_charge(limit_, view(), now.mono, cost);
  }
  void refund(Now /*now*/, core::Receipt receipt, core::Cost amount) {
    core::sliding_log_refund(view(), receipt, amount);
  }
  friend bool operator==(const RawKey& a, const RawKey& b) {
    return a.header_ == b.header_ && a.ring_ == b.ring_;
  }

 private:
  core::LogView view() { return {.header = &header_, .ring = ring_}; }

  core::LogLimit limit_;
  core::LogHeader header_;
  std::vector<core::LogEntry> ring_;
};

template <>
class RawKey<core::BucketsLimit> {
 public:
  RawKey(const core::BucketsLimit& limit, Now /*now*/)
      : limit_(limit), counters_(static_cast<std::size_t>(limit.slices) + 1) {}

  core::Outcome decide(Now now, core::Cost cost) {
    return core::sliding_buckets_step(limit_, view(), now.wall(), cost);
  }
  core::Outcome charge(Now now, core::Cost cost) {
    return core::sliding_buckets_charge(limit_, view(), now.wall(), cost);
  }
  void refund(Now /*now*/, core::Receipt receipt, core::Cost amount) {
    core::sliding_buckets_refund(view(), receipt, amount);
  }
  friend bool operator==(const RawKey& a, const RawKey& b) {
    return a.header_ == b.header_ && a.counters_ == b.counters_;
  }

 private:
  core::BucketsView view() { return {.header = &header_, .counters = counters_}; }

  core::BucketsLimit limit_;
  core::BucketsHeader header_;
  std::vector<core::Cost> counters_;
};

// Calls `use` with a fresh key of whichever kind the limit is.
template <class Use>
void with_raw_key(const core::CompiledLimit& limit, Now now, Use&& use) {
  std::visit([&]<class Limit>(const Limit& numbers) { use(RawKey<Limit>{numbers, now}); }, limit);
}

}  // namespace sluice::testing
