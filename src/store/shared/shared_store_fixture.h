// A shared store over a real table and an authority that follows a script.
#pragma once

#include "store/local/local_store.h"
#include "store/shared/scripted_authority_fixture.h"
#include "store/shared/shared_limits.h"
#include "store/shared/shared_store.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace sluice::store {

using namespace std::chrono_literals;

class SharedStoreTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kStart = std::int64_t{1'700'000'000} * 1'000'000'000;
  static constexpr std::uint32_t kNodes = 2;

  SharedStoreTest() { limits_.set_shared_secret({.first = 1, .second = 2}); }

  static Now after(Nanos passed) { return testing::at(kStart + passed.count()); }
  void pass(Nanos time) { now_ = after(now_.mono.time_since_epoch() - Nanos{kStart} + time); }

  static Limit window(std::uint64_t amount, Nanos period = 1h) {
    return {.algorithm = Algorithm::fixed_window, .amount = amount, .period = period};
  }
  LimitNumber shared(const Limit& limit, OnFailure on_failure = OnFailure::share) {
    return limits_.use(limit, {.mode = Mode::exact, .on_failure = on_failure}, now_).value();
  }
  LimitNumber local(const Limit& limit) { return limits_.use(limit, Sharing{}, now_).value(); }

  static Check check(LimitNumber limit, std::uint64_t key, Cost cost = 1) {
    return {.key = {.low = key * 0x9e3779b97f4a7c15ULL, .high = key},
            .salt = 0,
            .limit = limit,
            .cost = cost};
  }
  // A call of groups of one check each.
  struct Asking : Call {
    int completions = 0;
  };
  static void group(Asking& call, const Check& check) {
    call.checks[call.count++] = check;
    call.group_from(call.count - 1);
  }
  Completion decide(Asking& call) {
    call.completed = [](Call& done) noexcept { ++static_cast<Asking&>(done).completions; };
    return store_->decide_all(call, now_);
  }
  void advance(Nanos time = Nanos{0}) {
    pass(time);
    store_->advance(now_);
  }
  // Opens the breaker by failures of other keys.
  void open_breaker(LimitNumber limit) {
    authority_.is_connected = false;
    for (std::uint64_t i = 0; i < Breaker::kFailures; ++i) {
      Asking call;
      group(call, check(limit, 1000 + i));
      EXPECT_EQ(decide(call), Completion::now);
    }
    EXPECT_EQ(store_->shared_counts().breaker_opened, 1U);
    authority_.is_connected = true;
  }

  Now now_ = after(Nanos{0});
  std::unique_ptr<LocalStore> table_ =
      LocalStore::open({.mapping = {.memory = Mapping::kMemoryMin}}, now_).value();
  SharedLimits limits_{*table_, &compile_for_test, kNodes};
  ScriptedAuthority authority_;
  SharedStoreOptions options_{.budget = 20ms, .seed = 1};
  std::unique_ptr<SharedStore> store_ =
      std::make_unique<SharedStore>(*table_, limits_, authority_, options_);
};

}  // namespace sluice::store
