// What `sluice check` promises, beside what a worker admits to somebody who takes all he can get.
#include "cli/check/bound.h"

#include "engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using engine::Claims;

struct Case {
  const char* name;
  const char* rate;
  Algorithm algorithm = Algorithm::token_bucket;
  std::optional<std::uint64_t> burst;
  bool brings = false;               // ten, in a claim, which is the most that is taken
  const char* multiplier = nullptr;  // of an override
  std::uint64_t most = 0;
};

class Bounds : public engine::EngineFixture, public ::testing::WithParamInterface<Case> {
 protected:
  // In the first hour, by somebody who asks each second as long as it is admitted.
  std::uint64_t admitted(const identity::Identity& client) {
    const RequestView request{
        .method = "GET", .host = "a", .target = "/", .headers = {}, .peer = {}};
    std::uint64_t count = 0;
    for (Nanos time = 0s; time < 1h; time += 1s) {
      now_ = at(time);
      do {
        (void)worker_->decide(op_, request, client, now_);
        worker_->settle(op_, nullptr, now_);
        if (op_.action == engine::Action::pass) ++count;
      } while (op_.action == engine::Action::pass);
    }
    return count;
  }
};

TEST_P(Bounds, AreReachedAndNotPassed) {
  const Case& one = GetParam();
  rules::RuleLimit limit = engine::limit(one.rate, one.algorithm);
  limit.limit.burst = one.burst;
  if (one.brings) limit.from = {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 10};
  const rules::Rule rule = engine::rule("r", {limit}, {engine::per(rules::Per::Kind::user)});
  std::vector<engine::Override> overrides;
  if (one.multiplier != nullptr) {
    overrides.push_back({.subject = engine::Subject::parse("user=ann").value(),
                         .permille = engine::parse_multiplier(one.multiplier).value(),
                         .expires = std::nullopt,
                         .note = {}});
  }
  const engine::Override* const by = most_generous(rule, overrides, now_.wall());
  const Bound bound = bound_of(rule, limit, by == nullptr ? 1000 : by->permille);
  ASSERT_EQ(bound.most, one.most);

  auto made = engine::Snapshot::make(
      std::make_shared<const rules::RuleSet>(rules::RuleList{.rules = {rule}}), overrides, *limits_,
      now_);
  ASSERT_TRUE(made) << made.error().text();
  worker_->use(*made);
  const Claims claims{{{"quota", "10"}}};
  EXPECT_EQ(admitted({.user = "ann", .claims = &claims}), one.most);
}

// An override for one client does not change what all others get.
TEST(Bound, OfARuleStaysThatOfTheRuleWhoeverHasAnOverride) {
  const rules::RuleLimit limit = engine::limit("5/1h", Algorithm::token_bucket);
  const rules::Rule rule = engine::rule("r", {limit}, {engine::per(rules::Per::Kind::user)});
  const auto override_of = [](const char* who, std::uint32_t permille) {
    return engine::Override{.subject = engine::Subject::parse(who).value(),
                            .permille = permille,
                            .expires = std::nullopt,
                            .note = {}};
  };
  const std::vector<engine::Override> overrides{
      override_of("user=half", 500), override_of("user=ann", 2000), override_of("user=eve", 10'000),
      override_of("tenant=acme", 20'000)};
  EXPECT_EQ(bound_of(rule, limit).most, 9U);
  const engine::Override* const by = most_generous(rule, overrides, WallTime{});
  ASSERT_NE(by, nullptr);
  EXPECT_EQ(by->subject.written(), "user=eve");
  EXPECT_EQ(bound_of(rule, limit, by->permille).most, 99U);
  EXPECT_EQ(most_generous(rule, std::span{overrides}.first(1), WallTime{}), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Bounds,
    ::testing::Values(
        Case{.name = "AsWritten", .rate = "5/1h", .most = 9},
        Case{.name = "WithBurst", .rate = "5/1h", .burst = 20, .most = 24},
        Case{.name = "Brought", .rate = "5/1h", .brings = true, .most = 19},
        Case{.name = "BroughtWithBurst", .rate = "5/1h", .burst = 20, .brings = true, .most = 29},
        Case{.name = "Multiplied", .rate = "5/1h", .burst = 20, .multiplier = "10", .most = 249},
        Case{.name = "BroughtAndMultiplied",
             .rate = "5/1h",
             .brings = true,
             .multiplier = "10",
             .most = 199},
        Case{.name = "BroughtWithBurstAndMultiplied",
             .rate = "5/1h",
             .burst = 20,
             .brings = true,
             .multiplier = "10",
             .most = 299},
        Case{.name = "BroughtWithBurstAndMultipliedGcra",
             .rate = "5/1h",
             .algorithm = Algorithm::gcra,
             .burst = 20,
             .brings = true,
             .multiplier = "10",
             .most = 299},
        Case{.name = "BroughtAndMultipliedLog",
             .rate = "5/1h",
             .algorithm = Algorithm::sliding_log,
             .brings = true,
             .multiplier = "2",
             .most = 20}),
    [](const auto& one) { return std::string{one.param.name}; });

}  // namespace
}  // namespace sluice::cli
