#include "engine/envoy_decider.h"

#include "engine/envoy_fixture.h"
#include "support/store_behind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using rules::EnvoyUnit;

constexpr auto kOk = EnvoyCode::ok;
constexpr auto kOver = EnvoyCode::over_limit;

const EnvoyStatus kNothing{};

class Envoy : public EnvoyFixture, public ::testing::Test {};

// ---- what cannot be answered --------------------------------------------------------------------

TEST_F(Envoy, AnEmptyDomainIsAnError) {
  use_keys({{"a", per("day", 1)}});
  const Result<void> asked = try_to_ask({with("a")}, 0, "");
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Errc::invalid_argument);
  EXPECT_STREQ(asked.error().where, "the domain is empty");
}

TEST_F(Envoy, AnEmptyListOfDescriptorsIsAnError) {
  use_keys({{"a", per("day", 1)}});
  const Result<void> asked = try_to_ask({});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Errc::invalid_argument);
  EXPECT_EQ(worker.counters().bad_requests, 1U);
}

// A retry may succeed: rules may have come by then.
TEST_F(Envoy, NoRulesAtAllIsAnError) {
  const Result<void> asked = try_to_ask({with("a")});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Errc::not_found);
  EXPECT_TRUE(asked.error().transient);
}

// Nothing is counted of a request that is refused as a whole.
TEST_F(Envoy, MoreDescriptorsThanThereIsRoomForAreAnError) {
  use_keys({{"a", per("day", 100)}});
  const std::vector<Asked> most(kEnvoyDescriptorsMax, with("a"));
  EXPECT_EQ(ask(most).statuses.back().limit_remaining, 100 - kEnvoyDescriptorsMax);
  std::vector<Asked> more = most;
  more.push_back(with("a"));
  const Result<void> asked = try_to_ask(more);
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Errc::unsupported);
  EXPECT_EQ(ask("a", "v").limit_remaining, 100 - kEnvoyDescriptorsMax - 1);
}

TEST_F(Envoy, ALimitBroughtAlongWithoutAUnitIsAnError) {
  use_keys({{"a", per("day", 1)}});
  for (const auto unit : {EnvoyUnit::unknown, static_cast<EnvoyUnit>(8)}) {
    const Result<void> asked = try_to_ask({with("a"), brought("b", {5, unit})});
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().code, Errc::invalid_argument);
  }
  EXPECT_EQ(ask("a", "v").code, kOk) << "nothing was counted";
}

// ---- what is not limited ------------------------------------------------------------------------

TEST_F(Envoy, AnUnknownDomainLimitsNothingNotEvenByLimitsBroughtAlong) {
  use_keys({{"a", per("day", 0)}});
  const Answered answered = ask({with("a"), brought("a", {0, EnvoyUnit::day})}, 5, "elsewhere");
  EXPECT_EQ(answered.overall, kOk);
  EXPECT_THAT(answered.statuses, ::testing::ElementsAre(kNothing, kNothing));
  EXPECT_EQ(worker.counters().unknown_domains, 1U);
}

TEST_F(Envoy, WhatNoLimitMatchesIsOkWithNothingElse) {
  use_keys({{"a", per("day", 1)}});
  EXPECT_EQ(ask("b", "v"), kNothing);
  EXPECT_EQ(ask({{.entries = {}, .limit = {}, .hits = {}}}).statuses.at(0), kNothing);
}

TEST_F(Envoy, WhatIsUnlimitedHasAllThatCanBeWrittenLeft) {
  use_keys({{"a", "rate_limit: {unlimited: true}"}});
  const EnvoyStatus status = ask("a", "v", 1'000'000'000);
  EXPECT_EQ(status.code, kOk);
  EXPECT_EQ(status.limit_remaining, 4294967295U);
  EXPECT_FALSE(status.current_limit);
  EXPECT_EQ(status.duration_until_reset, 0s);
}

// ---- hits ---------------------------------------------------------------------------------------

TEST_F(Envoy, ARequestWithoutHitsCountsAsOne) {
  use_keys({{"a", per("day", 10)}});
  EXPECT_EQ(ask("a", "v", 0).limit_remaining, 9U);
  EXPECT_EQ(ask("a", "v", 1).limit_remaining, 8U);
  EXPECT_EQ(ask("a", "v", 5).limit_remaining, 3U);
}

TEST_F(Envoy, ADescriptorsHitsTakeThePlaceOfTheRequests) {
  use_keys({{"a", per("day", 10)}, {"b", per("day", 10)}});
  const Answered answered = ask({hitting("a", 4), with("b")}, 2);
  EXPECT_EQ(answered.statuses[0].limit_remaining, 6U);
  EXPECT_EQ(answered.statuses[1].limit_remaining, 8U);
}

// It tells whether the window is over, which it is not before somebody went too far.
TEST_F(Envoy, ADescriptorOfNoHitsOnlyLooks) {
  use_keys({{"a", per("day", 2)}});
  EXPECT_EQ(ask({hitting("a", 0)}, 7).statuses[0].limit_remaining, 2U);
  EXPECT_EQ(ask("a", "v", 2).limit_remaining, 0U);
  EXPECT_EQ(ask({hitting("a", 0)}).overall, kOk) << "all used, and nobody refused";
  EXPECT_EQ(ask("a", "v").code, kOver);
  EXPECT_EQ(ask({hitting("a", 0)}).overall, kOver);
}

TEST_F(Envoy, HitsOfAnySizeAreCounted) {
  use_keys({{"a", per("day", 10)}});
  EXPECT_EQ(ask({hitting("a", ~std::uint64_t{0})}).overall, kOver);
  EXPECT_EQ(ask("a", "v", ~std::uint32_t{0}).code, kOver);
}

// ---- counting -----------------------------------------------------------------------------------

TEST_F(Envoy, IsOverWhenTheCountAfterwardsIsMoreThanTheLimit) {
  use_keys({{"a", per("hour", 2)}});
  const EnvoyStatus first = ask("a", "v");
  EXPECT_EQ(first.code, kOk);
  EXPECT_EQ(first.current_limit, (EnvoyCurrentLimit{2, EnvoyUnit::hour, ""}));
  EXPECT_EQ(first.limit_remaining, 1U);
  EXPECT_EQ(ask("a", "v").limit_remaining, 0U);
  const EnvoyStatus third = ask("a", "v");
  EXPECT_EQ(third.code, kOver);
  EXPECT_EQ(third.current_limit, first.current_limit);
  EXPECT_EQ(third.limit_remaining, 0U);
  EXPECT_EQ(op.response.overall_code(), kOver);
  EXPECT_EQ(worker.counters().over_limit, 1U);
  EXPECT_EQ(worker.counters().decided, 3U);
}

// Six of ten are left, seven are asked for: they are denied, and yet they are used.
TEST_F(Envoy, DeniedHitsAreCounted) {
  use_keys({{"a", per("hour", 10)}});
  EXPECT_EQ(ask("a", "v", 4).limit_remaining, 6U);
  EXPECT_EQ(ask("a", "v", 7).code, kOver);
  EXPECT_EQ(ask("a", "v", 1).code, kOver);
}

TEST_F(Envoy, AllDescriptorsAreCountedAlsoAfterOneThatIsOver) {
  use_keys({{"a", per("hour", 0)}, {"b", per("hour", 5)}});
  for (std::uint32_t left = 4; left > 0; --left) {
    const Answered answered = ask({with("a"), with("b"), with("a")});
    EXPECT_EQ(answered.overall, kOver);
    EXPECT_EQ(answered.statuses[1].code, kOk);
    EXPECT_EQ(answered.statuses[1].limit_remaining, left);
  }
}

TEST_F(Envoy, AnAmountOfZeroIsAlwaysOver) {
  use_keys({{"a", per("day", 0)}});
  EXPECT_EQ(ask("a", "v").code, kOver);
  EXPECT_EQ(ask("a", "w").current_limit->requests_per_unit, 0U);
  EXPECT_EQ(ask({hitting("a", 0)}).overall, kOver);
}

// The table counts up to a billion. Limits above that are never reached, and say what is left.
TEST_F(Envoy, AnAmountAboveWhatCanBeCountedIsNeverReached) {
  use("domain: d\ndescriptors:\n"
      "- {key: a, rate_limit: {unit: second, requests_per_unit: 4294967295}}\n");
  EXPECT_EQ(ask("a", "v").limit_remaining, 4294967294U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ask("a", "v", 1'000'000'000).code, kOk);
  EXPECT_EQ(ask("a", "v").limit_remaining, 3294967295U);
}

TEST_F(Envoy, TheSameDescriptorTwiceIsCountedTwice) {
  use_keys({{"a", per("hour", 1)}});
  const Answered answered = ask({with("a"), with("a")});
  EXPECT_EQ(answered.statuses[0].code, kOk);
  EXPECT_EQ(answered.statuses[1].code, kOver);
}

TEST_F(Envoy, EveryValueHasItsOwnCounter) {
  use("domain: d\ndescriptors:\n- key: a\n  descriptors: [{key: b, " + per("hour", 1) + "}]\n");
  const auto both = [](std::string_view a, std::string_view b) {
    return std::vector<Asked>{{.entries = {{"a", a}, {"b", b}}, .limit = {}, .hits = {}}};
  };
  EXPECT_EQ(ask(both("x", "yz")).overall, kOk);
  EXPECT_EQ(ask(both("xy", "z")).overall, kOk);
  EXPECT_EQ(ask(both("xy", "")).overall, kOk);
  EXPECT_EQ(ask(both("x", "yz")).overall, kOver);
}

TEST_F(Envoy, DomainsDoNotShareCounters) {
  config::Diagnostics diagnostics;
  const std::vector<rules::EnvoyFile> files{
      {"1", "domain: d\ndescriptors: [{key: a, " + per("hour", 1) + "}]\n"},
      {"2", "domain: e\ndescriptors: [{key: a, " + per("hour", 1) + "}]\n"}};
  worker.use(EnvoySnapshot::make(std::make_shared<const rules::EnvoyRules>(
                                     rules::load_envoy_rules(files, diagnostics)),
                                 {}, *limits, now)
                 .value());
  EXPECT_EQ(ask({with("a")}, 0, "d").overall, kOk);
  EXPECT_EQ(ask({with("a")}, 0, "e").overall, kOk);
  EXPECT_EQ(ask({with("a")}, 0, "d").overall, kOver);
}

// An edited amount keeps what was counted, also what went beyond it.
TEST_F(Envoy, ANewAmountIsComparedWithTheSameCount) {
  use_keys({{"a", per("hour", 2)}});
  for (int i = 0; i < 4; ++i) (void)ask("a", "v");
  use_keys({{"a", per("hour", 6)}});
  EXPECT_EQ(ask("a", "v").limit_remaining, 1U);
}

// ---- windows ------------------------------------------------------------------------------------

struct Window {
  const char* unit;
  std::chrono::seconds length;
};

class EnvoyWindow : public EnvoyFixture, public ::testing::TestWithParam<Window> {};

// A window begins at a multiple of its length since 1970, and what was counted ends with it.
TEST_P(EnvoyWindow, IsAlignedToTheEpoch) {
  const auto& [unit, length] = GetParam();
  use("domain: d\ndescriptors: [{key: a, rate_limit: {unit: " + std::string{unit} +
      ", requests_per_unit: 1}}]\n");
  const std::chrono::seconds start = 1'700'000'000s / length * length;
  now = at(start);
  EXPECT_EQ(ask("a", "v").duration_until_reset, length);
  now = at(start + length - 1ns);
  const EnvoyStatus last = ask("a", "v");
  EXPECT_EQ(last.code, kOver);
  EXPECT_EQ(last.duration_until_reset, 1s);
  now = at(start + length);
  EXPECT_EQ(ask("a", "v").code, kOk);
}

INSTANTIATE_TEST_SUITE_P(Units, EnvoyWindow,
                         ::testing::Values(Window{"second", 1s}, Window{"minute", 60s},
                                           Window{"hour", 1h}, Window{"day", 24h},
                                           Window{"week", 7 * 24h}, Window{"month", 30 * 24h},
                                           Window{"year", 365 * 24h}),
                         [](const auto& one) { return one.param.unit; });

// As that service counts seconds: a part of one is not over yet.
TEST_F(Envoy, TheTimeUntilResetIsInWholeSeconds) {
  use_keys({{"a", per("minute", 1)}});
  now = at(1'700'000'000s / 60s * 60s + 17s + 900ms);
  EXPECT_EQ(ask("a", "v").duration_until_reset, 43s);
}

// ---- the store ----------------------------------------------------------------------------------

// Cannot reach what it counts in, or completes later.
class SlowStore final : public sluice::testing::StoreBehind {
 public:
  SlowStore(store::Store& behind, store::Completion completion)
      : StoreBehind(behind), completion_(completion) {}

  store::Completion decide_all(store::Call& call, Now now) noexcept override {
    if (completion_ == store::Completion::now) {
      fail(call);
      return completion_;
    }
    waiting = &call;
    asked_at_ = now;
    return completion_;
  }
  void cancel(store::Call& call, Now /*now*/) noexcept override {
    EXPECT_EQ(&call, waiting);
    waiting = nullptr;
    ++cancelled;
  }
  static void fail(store::Call& call) noexcept {
    call.admitted = false;
    for (store::Group& group : call.all_groups()) group.verdict = store::GroupVerdict::closed;
  }
  void complete() {
    store::Call& call = *std::exchange(waiting, nullptr);
    (void)StoreBehind::decide_all(call, asked_at_);
    call.completed(call);
  }
  void complete_failed() {
    store::Call& call = *std::exchange(waiting, nullptr);
    fail(call);
    call.completed(call);
  }

  store::Call* waiting = nullptr;
  int cancelled = 0;

 private:
  store::Completion completion_;
  Now asked_at_;
};

class SlowEnvoy : public Envoy {
 protected:
  SlowEnvoy() {
    op.owner = this;
    op.completed = [](EnvoyOp& one) noexcept { ++static_cast<SlowEnvoy*>(one.owner)->completed_; };
  }
  std::shared_ptr<const EnvoySnapshot> snapshot() {
    config::Diagnostics diagnostics;
    const std::vector<rules::EnvoyFile> files{
        {"f", "domain: d\ndescriptors: [{key: a, " + per("hour", 3) + "}]\n"}};
    auto rules =
        std::make_shared<const rules::EnvoyRules>(rules::load_envoy_rules(files, diagnostics));
    return EnvoySnapshot::make(std::move(rules), {}, *limits, now).value();
  }
  store::Completion ask(EnvoyDecider& decider) {
    const std::vector<DescriptorEntry> entries{{"a", "v"}};
    const EnvoyDescriptor descriptor{.entries = entries, .limit = {}, .hits_addend = {}};
    return decider.should_rate_limit(
        op, {.domain = "d", .descriptors = {&descriptor, 1}, .hits_addend = 1}, now);
  }

  int completed_ = 0;
};

// A retry may succeed.
TEST_F(SlowEnvoy, AStoreThatFailsIsAnError) {
  SlowStore store{*local, store::Completion::now};
  EnvoyDecider asking{store};
  asking.use(snapshot());
  EXPECT_EQ(ask(asking), store::Completion::now);
  ASSERT_FALSE(op.result);
  EXPECT_EQ(op.result.error().code, Errc::io);
  EXPECT_TRUE(op.result.error().transient);
  EXPECT_EQ(asking.counters().store_failures, 1U);
}

// The rules may be replaced meanwhile; the names in the response live until it was read.
TEST_F(SlowEnvoy, AStoreThatCompletesLaterIsWaitedFor) {
  SlowStore store{*local, store::Completion::later};
  EnvoyDecider asking{store};
  asking.use(snapshot());
  ASSERT_EQ(ask(asking), store::Completion::later);
  EXPECT_TRUE(op.waiting());
  asking.use(snapshot());
  store.complete();
  EXPECT_EQ(completed_, 1);
  EXPECT_FALSE(op.waiting());
  ASSERT_TRUE(op.result);
  ASSERT_EQ(op.response.statuses().size(), 1U);
  EXPECT_EQ(op.response.statuses()[0].limit_remaining, 2U);

  ASSERT_EQ(ask(asking), store::Completion::later);
  store.complete_failed();
  EXPECT_EQ(completed_, 2);
  EXPECT_FALSE(op.result);
  ASSERT_EQ(ask(asking), store::Completion::later);
  store.complete();
  EXPECT_EQ(op.response.statuses()[0].limit_remaining, 1U);
}

TEST_F(SlowEnvoy, ACallerThatLeavesIsNotAnswered) {
  SlowStore store{*local, store::Completion::later};
  EnvoyDecider asking{store};
  asking.use(snapshot());
  ASSERT_EQ(ask(asking), store::Completion::later);
  asking.abandon(op, now);
  EXPECT_EQ(store.cancelled, 1);
  EXPECT_FALSE(op.waiting());
  ASSERT_EQ(ask(asking), store::Completion::later);
  store.complete();
  EXPECT_EQ(completed_, 1);
}

// Rules that are replaced give their counters back, and the new ones go on with the same counts.
TEST_F(Envoy, SnapshotsGiveTheirCountersBack) {
  use_keys({{"a", per("hour", 2)}});
  const auto used = table->status().limits_used;
  EXPECT_EQ(ask("a", "v").limit_remaining, 1U);
  use_keys({{"a", per("hour", 2)}});
  EXPECT_EQ(table->status().limits_used, used);
  EXPECT_EQ(ask("a", "v").limit_remaining, 0U);
}

}  // namespace
}  // namespace sluice::engine
