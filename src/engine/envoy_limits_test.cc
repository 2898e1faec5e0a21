// What limits do to each other and to the whole: replaces, limits brought along, shared wildcards,
// shadow and quota modes. And the golden cases, from descriptor to status.
#include "engine/envoy_fixture.h"
#include "rules/envoy_golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using rules::EnvoyUnit;
using ::testing::Each;

constexpr auto kOk = EnvoyCode::ok;
constexpr auto kOver = EnvoyCode::over_limit;

const EnvoyStatus kNothing{};

class EnvoyLimits : public EnvoyFixture, public ::testing::Test {};

// ---- replaces -----------------------------------------------------------------------------------

constexpr std::string_view kReplacing = R"(
domain: d
descriptors:
  - {key: all, rate_limit: {unit: day, requests_per_unit: 1, name: general}}
  - {key: vip, rate_limit: {unit: day, requests_per_unit: 9, replaces: [{name: general}]}}
  - {key: free, rate_limit: {unlimited: true, replaces: [{name: general}]}}
  - {key: open, rate_limit: {unlimited: true, name: general}}
  - {key: x, rate_limit: {unit: day, requests_per_unit: 1, name: x, replaces: [{name: y}]}}
  - {key: y, rate_limit: {unit: day, requests_per_unit: 1, name: y, replaces: [{name: x}]}}
)";

TEST_F(EnvoyLimits, AReplacedLimitIsNoLimitAndIsNotCounted) {
  use(kReplacing);
  for (int i = 0; i < 3; ++i) {
    const Answered answered = ask({with("all"), with("vip")});
    EXPECT_EQ(answered.statuses[0], kNothing);
    EXPECT_EQ(answered.statuses[1].limit_remaining, 8U - static_cast<unsigned>(i));
  }
  EXPECT_EQ(ask("all", "v").limit_remaining, 0U);
  EXPECT_EQ(ask("all", "v").code, kOver) << "without the other one it holds";
}

// The order of descriptors makes no difference.
TEST_F(EnvoyLimits, ALimitReplacesThoseAfterItToo) {
  use(kReplacing);
  EXPECT_EQ(ask({with("vip"), with("all")}).statuses[1], kNothing);
}

TEST_F(EnvoyLimits, WhatIsUnlimitedReplacesToo) {
  use(kReplacing);
  const Answered answered = ask({with("all"), with("free")});
  EXPECT_EQ(answered.statuses[0], kNothing);
  EXPECT_EQ(answered.statuses[1].limit_remaining, kEnvoyUnlimited);
}

TEST_F(EnvoyLimits, WhatIsUnlimitedStaysSoWhenReplaced) {
  use(kReplacing);
  EXPECT_EQ(ask({with("open"), with("vip")}).statuses[0].limit_remaining, kEnvoyUnlimited);
}

// A limit that is replaced still replaces.
TEST_F(EnvoyLimits, LimitsThatReplaceEachOtherBothGo) {
  use(kReplacing);
  EXPECT_THAT(ask({with("x"), with("y")}).statuses, Each(kNothing));
}

// ---- limits brought along -----------------------------------------------------------------------

TEST_F(EnvoyLimits, ALimitBroughtAlongTakesThePlaceOfTheRules) {
  use_keys({{"a", per("hour", 1) + ", shadow_mode: true, quota_mode: true"}});
  const EnvoyOverride limit{.requests_per_unit = 2, .unit = EnvoyUnit::minute};
  EXPECT_EQ(ask({brought("a", limit)}).statuses[0].current_limit,
            (EnvoyCurrentLimit{2, EnvoyUnit::minute, ""}));
  EXPECT_EQ(ask({brought("a", limit)}).overall, kOk);
  EXPECT_EQ(ask({brought("a", limit)}).overall, kOver) << "neither shadow nor quota";
  EXPECT_EQ(ask({brought("unheard-of", limit)}).statuses[0].limit_remaining, 1U);
}

// One counter, two amounts: it goes on past the smaller one.
TEST_F(EnvoyLimits, ALimitBroughtAlongSharesTheCounterOfItsUnit) {
  use_keys({{"a", per("hour", 2)}});
  const auto ten = brought("a", {.requests_per_unit = 10, .unit = EnvoyUnit::hour});
  EXPECT_EQ(ask({ten}).statuses[0].limit_remaining, 9U);
  EXPECT_EQ(ask("a", "v").limit_remaining, 0U);
  EXPECT_EQ(ask("a", "v").code, kOver);
  EXPECT_EQ(ask({ten}).statuses[0].limit_remaining, 6U);
  const auto daily = brought("a", {.requests_per_unit = 10, .unit = EnvoyUnit::day});
  EXPECT_EQ(ask({daily}).statuses[0].limit_remaining, 9U) << "another unit, another counter";
}

TEST_F(EnvoyLimits, ALimitBroughtAlongIsNeitherReplacedNorReplaces) {
  use(kReplacing);
  const EnvoyOverride limit{.requests_per_unit = 5, .unit = EnvoyUnit::day};
  const Answered answered = ask({brought("all", limit), with("vip")});
  EXPECT_EQ(answered.statuses[0].limit_remaining, 4U);
  EXPECT_EQ(ask({brought("vip", limit), with("all")}).statuses[1].limit_remaining, 0U);
}

// ---- share_threshold ----------------------------------------------------------------------------

constexpr std::string_view kShared = R"(
domain: d
descriptors:
  - key: path
    value: /api/*
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 10}
    descriptors:
      - {key: user, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: host, value: '*.org', rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: file, value: 'a*b', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 10}}
)";

TEST_F(EnvoyLimits, ASharedWildcardCountsAllItsValuesAsOne) {
  use(kShared);
  EXPECT_EQ(ask("path", "/api/a").limit_remaining, 9U);
  EXPECT_EQ(ask("path", "/api/b").limit_remaining, 8U);
  EXPECT_EQ(ask("path", "/api/*").limit_remaining, 7U) << "spelled like the pattern";
  EXPECT_EQ(ask("host", "a.org").limit_remaining, 9U);
  EXPECT_EQ(ask("host", "b.org").limit_remaining, 9U) << "not shared";
}

TEST_F(EnvoyLimits, ASharedWildcardCountsAsOneInTheMiddleOfTheWay) {
  use(kShared);
  const auto left = [&](std::string_view path, std::string_view user) {
    return ask({{.entries = {{"path", path}, {"user", user}}, .limit = {}, .hits = {}}})
        .statuses[0]
        .limit_remaining;
  };
  EXPECT_EQ(left("/api/a", "ann"), 9U);
  EXPECT_EQ(left("/api/b", "ann"), 8U);
  EXPECT_EQ(left("/api/b", "bob"), 9U);
}

// The key alone is spelled like the pattern, so the node is found; no wildcard was matched.
TEST_F(EnvoyLimits, AKeySpelledLikeASharedWildcardSharesNothing) {
  use(kShared);
  EXPECT_EQ(ask("file_a*b", "c").limit_remaining, 9U);
  EXPECT_EQ(ask("file_a*b", "d").limit_remaining, 9U);
}

// ---- shadow and quota ---------------------------------------------------------------------------

TEST_F(EnvoyLimits, AShadowLimitIsCountedAndNeverOver) {
  use_keys({{"a", per("hour", 1) + ", shadow_mode: true"}});
  EXPECT_EQ(ask("a", "v").limit_remaining, 0U);
  const EnvoyStatus status = ask("a", "v");
  EXPECT_EQ(status.code, kOk);
  EXPECT_EQ(status.limit_remaining, 0U);
  EXPECT_TRUE(status.current_limit);
  EXPECT_EQ(op.response.overall_code(), kOk);
  use_keys({{"a", per("hour", 5)}});
  EXPECT_EQ(ask("a", "v").limit_remaining, 2U) << "both were counted";
}

TEST_F(EnvoyLimits, TheGlobalShadowModeChangesOnlyTheWhole) {
  use_keys({{"a", per("hour", 0)}}, {.shadow_mode = true});
  const Answered answered = ask({with("a")});
  EXPECT_EQ(answered.overall, kOk);
  EXPECT_EQ(answered.statuses[0].code, kOver);
  EXPECT_EQ(worker.counters().over_limit, 0U);
}

constexpr const char* kQuota = ", quota_mode: true";

TEST_F(EnvoyLimits, AQuotaThatIsUsedUpFailsNothingWhileAnotherIsLeft) {
  use_keys({{"a", per("hour", 0) + kQuota}, {"b", per("hour", 1) + kQuota}});
  const Answered first = ask({with("a"), with("b")});
  EXPECT_EQ(first.statuses[0].code, kOver);
  EXPECT_EQ(first.overall, kOk);
  EXPECT_EQ(ask({with("a"), with("b")}).overall, kOver) << "now both are used up";
}

TEST_F(EnvoyLimits, OneOrdinaryLimitThatIsOverFailsTheRequestWhateverQuotasSay) {
  use_keys({{"a", per("hour", 9) + kQuota}, {"b", per("hour", 0)}});
  EXPECT_EQ(ask({with("a"), with("b")}).overall, kOver);
}

// An ordinary limit that admits does not stand in for a quota.
TEST_F(EnvoyLimits, OrdinaryLimitsAndUnmatchedDescriptorsAreNoQuotas) {
  use_keys({{"a", per("hour", 0) + kQuota}, {"b", per("hour", 9)}});
  EXPECT_EQ(ask({with("a"), with("b"), with("unheard-of")}).overall, kOver);
}

TEST_F(EnvoyLimits, AShadowedQuotaIsNeverUsedUp) {
  use_keys(
      {{"a", per("hour", 0) + kQuota}, {"b", per("hour", 0) + kQuota + ", shadow_mode: true"}});
  EXPECT_EQ(ask({with("a"), with("b")}).overall, kOk);
}

TEST_F(EnvoyLimits, UnderTheGlobalQuotaModeAllAreQuotasButWhatIsUnlimited) {
  use_keys({{"a", per("hour", 0)}, {"b", per("hour", 1)}, {"u", "rate_limit: {unlimited: true}"}},
           {.quota_mode = true});
  EXPECT_EQ(ask({with("a")}).overall, kOver);
  EXPECT_EQ(ask({with("a"), with("b")}).overall, kOk);
  EXPECT_EQ(ask({with("a"), with("b")}).overall, kOver);
  EXPECT_EQ(ask({with("a"), with("u")}).overall, kOver);
  EXPECT_EQ(ask({with("a"), with("unheard-of")}).overall, kOk) << "a quota without an end";
  EXPECT_EQ(ask({with("u")}).overall, kOk);
}

// ---- golden cases -------------------------------------------------------------------------------

class EnvoyGoldenAnswers : public EnvoyFixture,
                           public ::testing::TestWithParam<rules::EnvoyGoldenCase> {};

// The limit that is found is the one that is counted: so many requests pass, and the next does not.
TEST_P(EnvoyGoldenAnswers, AdmitAsMuchAsTheLimitSays) {
  use(rules::kEnvoyGolden);
  const std::vector<Asked> asked{{.entries = GetParam().entries, .limit = {}, .hits = {}}};
  if (std::string_view{GetParam().limit} == "none") {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(ask(asked).statuses.at(0), kNothing);
    return;
  }
  const auto amount = static_cast<std::uint32_t>(GetParam().limit[0] - 'A' + 1);
  for (std::uint32_t left = amount; left > 0; --left) {
    const EnvoyStatus status = ask(asked).statuses.at(0);
    EXPECT_EQ(status.code, kOk);
    EXPECT_EQ(status.limit_remaining, left - 1);
    EXPECT_EQ(status.current_limit->name, GetParam().limit);
    EXPECT_EQ(status.current_limit->requests_per_unit, amount);
  }
  EXPECT_EQ(ask(asked).overall, kOver);
}

INSTANTIATE_TEST_SUITE_P(Table, EnvoyGoldenAnswers, ::testing::ValuesIn(rules::kEnvoyGoldenCases),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace sluice::engine
