#include "frontend/responses/limit_view.h"

#include "engine/overrides.h"
#include "support/frontend_fixture.h"
#include "support/property.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>
#include <sluice/int128.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using namespace std::chrono_literals;
using engine::limit;
using engine::per;
using engine::rule;
using PerKind = rules::Per::Kind;

class LimitViewTest : public fixture::FrontendFixture {
 protected:
  static std::vector<LimitView> views(const engine::Op& op, bool with_shadows = false) {
    std::vector<LimitView> all;
    LimitViews{op, with_shadows}.for_each([&](const LimitView& view) { all.push_back(view); });
    return all;
  }
  static std::string name(const LimitView& view) {
    std::array<char, 256> room;
    std::array<char, 256> other_room;
    TextWriter writer{room};
    write_name(writer, view);
    EXPECT_EQ(name_of(view, other_room), writer.text());
    return std::string{writer.text()};
  }

  int cases_ = 0;
};

Policy policy(const Limit& limit) { return policy_of(limit, limit.amount, core::capacity(limit)); }

Limit made(std::string_view text, std::optional<Algorithm> algorithm = std::nullopt) {
  return core::parse_limit(text, algorithm).value();
}

// ---- policies ---------------------------------------------------------------------------------

TEST(PolicyOf, StatesAmountAndPeriodAsTheyAreWritten) {
  for (const Algorithm algorithm :
       {Algorithm::token_bucket, Algorithm::gcra, Algorithm::fixed_window, Algorithm::sliding_log,
        Algorithm::sliding_counter, Algorithm::sliding_buckets, Algorithm::leaky_bucket}) {
    EXPECT_EQ(policy(made("100/1m", algorithm)), (Policy{100, 60})) << to_string(algorithm);
  }
}

TEST(PolicyOf, StatesCalendarWindowsByTheLongestOfThem) {
  EXPECT_EQ(policy(made("7/day")), (Policy{7, 86'400}));
  EXPECT_EQ(policy(made("7/week")), (Policy{7, 604'800}));
  EXPECT_EQ(policy(made("7/month")), (Policy{7, 2'678'400}));
  EXPECT_EQ(policy(made("7/year")), (Policy{7, 31'622'400}));
}

TEST(PolicyOf, StatesACapacityAboveTheAmountWithTheTimeItTakesToComeBack) {
  Limit limit = made("100/1s");
  limit.burst = 250;
  EXPECT_EQ(policy(limit), (Policy{250, 3}));
  limit.burst = 5;
  EXPECT_EQ(policy(limit), (Policy{100, 1}));
}

TEST(PolicyOf, StatesPeriodsBelowASecondAsARatePerSecond) {
  EXPECT_EQ(policy(made("5/100ms")), (Policy{50, 1}));
  EXPECT_EQ(policy(made("1/300ms")), (Policy{3, 1}));
  EXPECT_EQ(policy(made("10/1500ms")), (Policy{10, 2}));
}

TEST(PolicyOf, LosesWhatComesAtOnceAndFindsNoRoom) {
  Limit limit = made("10/1m");
  limit.refill = Refill::interval;
  limit.burst = 3;
  EXPECT_EQ(policy(limit), (Policy{3, 60}));
}

TEST(PolicyOf, HasNoWindowForRequestsInFlight) {
  EXPECT_EQ(policy({.algorithm = Algorithm::concurrency, .amount = 8}), (Policy{8, 0}));
}

// One in 27 s, and 688 million at once: all of them are back in 585 years.
TEST(PolicyOf, HasWindowsOfCenturies) {
  Limit limit{.algorithm = Algorithm::token_bucket, .amount = 1, .period = 26'795'406'162ns};
  limit.burst = 688'429'351;
  EXPECT_EQ(policy(limit), (Policy{688'429'351, 18'446'744'074}));
}

// Whatever the numbers, nobody is promised a higher rate than is enforced, and what is left is
// never more than the quota.
TEST(PolicyOf, NeverPromisesMoreThanIsEnforced) {
  testing::check_property(300, [] {
    Limit limit{
        .algorithm = *rc::gen::elementOf(std::vector<Algorithm>{
            Algorithm::token_bucket, Algorithm::gcra, Algorithm::fixed_window}),
        .amount = *rc::gen::inRange<std::uint64_t>(1, 1'000'000'000),
        .period = Nanos{*rc::gen::inRange<std::int64_t>(1'000'000, 31'622'400'000'000'000)}};
    if (limit.algorithm != Algorithm::fixed_window && *rc::gen::arbitrary<bool>()) {
      limit.burst = *rc::gen::inRange<std::uint64_t>(1, 1'000'000'000);
    }
    const std::uint64_t capacity = core::capacity(limit);
    const Policy stated = policy_of(limit, limit.amount, capacity);
    RC_ASSERT(stated.window_s > 0U);
    RC_ASSERT(stated.quota >= std::min(capacity, limit.amount));
    RC_ASSERT(capacity <= limit.amount || stated.quota >= capacity);
    const auto period = static_cast<std::uint64_t>(limit.period.count());
    RC_ASSERT(Uint128{stated.quota} * period <=
              Uint128{limit.amount} * stated.window_s * 1'000'000'000U);
  });
}

TEST(SecondsRoundedUp, NeverRoundsDown) {
  EXPECT_EQ(seconds_rounded_up(0ns), 0U);
  EXPECT_EQ(seconds_rounded_up(-5s), 0U);
  EXPECT_EQ(seconds_rounded_up(1ns), 1U);
  EXPECT_EQ(seconds_rounded_up(1s), 1U);
  EXPECT_EQ(seconds_rounded_up(1s + 1ns), 2U);
  EXPECT_EQ(seconds_rounded_up(Nanos::max()), 9'223'372'037U);
}

// ---- views ------------------------------------------------------------------------------------

TEST_F(LimitViewTest, NamesLimitsByTheirRule) {
  rules::RuleLimit named = limit("1000/1h");
  named.name = "hourly";
  use({rule("one", {limit("9/1s")}), rule("two", {limit("10/1s"), named, limit("5000/1d")})});
  const std::vector<LimitView> all = views(decided());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(name(all[0]), "one");
  EXPECT_EQ(name(all[1]), "two.1");
  EXPECT_EQ(name(all[2]), "two.hourly");
  EXPECT_EQ(name(all[3]), "two.3");
}

// A name without room is cut between its parts, never in the middle of one.
TEST_F(LimitViewTest, CutsNamesWithoutRoom) {
  std::array<char, 5> room;
  EXPECT_EQ(name_of({.rule = "abcde"}, room), "abcde");
  EXPECT_EQ(name_of({.rule = "abcdef"}, room), "");
  EXPECT_EQ(name_of({.rule = "abc", .limit = "d"}, room), "abc.d");
  EXPECT_EQ(name_of({.rule = "abc", .limit = "de"}, room), "abc.");
  EXPECT_EQ(name_of({.rule = "abcd", .number = 12}, room), "abcd.");
}

// The view that is kept is the one that was asked for, whatever was looked at before.
TEST_F(LimitViewTest, GivesTheSameViewsAgainAndAgain) {
  use({rule("wide", {limit("100/1s")}), rule("narrow", {limit("2/1h"), limit("50/1h")})});
  LimitViews again{decided()};
  for (int i = 0; i < 3; ++i) {
    std::vector<std::string> names;
    again.for_each([&](const LimitView& view) { names.push_back(name(view)); });
    EXPECT_EQ(names, (std::vector<std::string>{"wide", "narrow.1", "narrow.2"}));
    EXPECT_EQ(name(*again.tightest()), "narrow.1");
  }
}

TEST_F(LimitViewTest, LeavesShadowsOutUnlessAsked) {
  rules::Rule shadow = rule("shadow", {limit("1/1h")});
  shadow.action.kind = rules::Action::Kind::shadow;
  use({rule("real", {limit("10/1h")}), shadow});
  EXPECT_EQ(views(decided()).size(), 1U);
  EXPECT_EQ(views(decided(), true).size(), 2U);
}

// What a client may do until then is what counts, so the least that is left wins.
TEST_F(LimitViewTest, FindsTheTightest) {
  use({rule("wide", {limit("100/1s")}), rule("narrow", {limit("2/1h")})});
  EXPECT_EQ(LimitViews{decided()}.tightest()->rule, "narrow");
  const engine::Op& refused = decided_after(1);
  EXPECT_EQ(refused.action, engine::Action::reject);
  EXPECT_EQ(LimitViews{refused}.tightest()->rule, "narrow");
  EXPECT_EQ(LimitViews{refused}.tightest()->verdict, Verdict::rejected);
}

// A bucket that was just emptied has something again soon, not only when it is full again.
TEST_F(LimitViewTest, TellsWhenAnEmptyBucketHasSomethingAgain) {
  use({rule("r", {limit("2/1h")})});
  const LimitView last = *LimitViews{decided_after(1)}.tightest();
  EXPECT_EQ(last.remaining, 0U);
  EXPECT_EQ(last.available_in, 30min);
}

TEST_F(LimitViewTest, StatesTheAmountThatIsInForce) {
  using engine::Override;
  const std::vector<rules::Rule> all{
      rule("r", {limit("10/1s", Algorithm::leaky_bucket)}, {per(PerKind::ip)})};
  const std::vector<Override> twice{{.subject = engine::Subject::parse("ip=192.0.2.1").value(),
                                     .permille = 2000,
                                     .expires = std::nullopt,
                                     .note = {}}};
  auto snapshot = engine::Snapshot::make(
      std::make_shared<const rules::RuleSet>(rules::RuleList{.rules = all}), twice, *limits_, now_);
  ASSERT_TRUE(snapshot);
  worker_->use(*snapshot);
  EXPECT_EQ(LimitViews{decided()}.tightest()->policy, (Policy{20, 1}));
  EXPECT_EQ(LimitViews{decided({.ip = "192.0.2.2"})}.tightest()->policy, (Policy{10, 1}));
}

TEST_F(LimitViewTest, HasOneForABlockAlone) {
  rules::Rule blocking = rule("login", {limit("1/1h")}, {per(PerKind::ip)});
  blocking.block = rules::Block{.duration = 15min, .threshold = 1};
  use({blocking});
  const engine::Op& op = decided_after(2);
  ASSERT_EQ(op.reason, engine::Reason::blocked);
  const std::vector<LimitView> all = views(op);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].has_policy);
  EXPECT_EQ(all[0].remaining, 0U);
  EXPECT_EQ(all[0].available_in, 15min);
  EXPECT_EQ(retry_after_s(op), 900U);
}

// Who comes back when the limit would have room is refused by the block.
TEST_F(LimitViewTest, WaitsForTheBlockThatBegan) {
  rules::Rule blocking = rule("login", {limit("2/1s"), limit("4/1m")}, {per(PerKind::ip)});
  blocking.block = rules::Block{.duration = 15min, .threshold = 2};
  use({blocking});
  const engine::Op& first = decided_after(2);
  ASSERT_EQ(first.reason, engine::Reason::limited);
  EXPECT_EQ(views(first)[0].available_in, 500ms) << "one more is heard";
  const engine::Op& last = decided();
  ASSERT_EQ(last.reason, engine::Reason::limited);
  ASSERT_EQ(retry_after_s(last), 900U);
  EXPECT_EQ(views(last)[0].available_in, 15min);
}

// ---- when to come back ------------------------------------------------------------------------

TEST_F(LimitViewTest, SaysNothingAboutComingBackWhereItDoesNotHelp) {
  use({rule("r", {limit("2/1s")})});
  EXPECT_EQ(retry_after_s(decided()), std::nullopt) << "it passes";
  rules::Rule costly = rule("c", {limit("2/1s")});
  costly.cost.constant = 3;
  use({costly});
  EXPECT_EQ(retry_after_s(decided()), std::nullopt) << "it never passes";
}

TEST_F(LimitViewTest, TellsTheShortestWaitWhereNobodyKnows) {
  rules::RuleLimit one;
  one.limit = {.algorithm = Algorithm::concurrency, .amount = 1};
  use({rule("r", {one})});
  (void)decided();
  engine::Op second;
  ASSERT_EQ(decide(second, {}), store::Completion::now);
  EXPECT_EQ(second.action, engine::Action::reject);
  EXPECT_EQ(retry_after_s(second), 1U);
  worker_->settle(second, nullptr, now_);
}

// Whoever waits as long as told is admitted: for every algorithm, whatever came before. And no
// limit that is used up says in its header to wait longer than that.
TEST_F(LimitViewTest, NeverTellsToComeBackTooEarly) {
  testing::check_property(100, [this] {
    const Algorithm algorithm = *rc::gen::elementOf(std::vector<Algorithm>{
        Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::gcra, Algorithm::fixed_window,
        Algorithm::sliding_log, Algorithm::sliding_counter, Algorithm::sliding_buckets});
    rules::RuleLimit first;
    first.limit = {.algorithm = algorithm,
                   .amount = *rc::gen::inRange<std::uint64_t>(1, 8),
                   .period = Nanos{*rc::gen::inRange<std::int64_t>(10'000'000, 20'000'000'000)}};
    // A name of its own, so that no count of an earlier case is found.
    use({rule("case" + std::to_string(++cases_), {first, limit("20/1m")}, {per(PerKind::ip)})});
    for (int i = 0; i < 40; ++i) {
      now_.mono += Nanos{*rc::gen::inRange<std::int64_t>(0, 3'000'000'000)};
      const engine::Op& op = decided();
      if (op.action == engine::Action::pass) continue;
      const std::optional<std::uint64_t> wait_s = retry_after_s(op);
      RC_ASSERT(wait_s.has_value());
      RC_ASSERT(*wait_s >= 1U);
      for (const LimitView& view : views(op)) {
        if (view.verdict == Verdict::allowed && view.remaining > 0) continue;
        RC_ASSERT(seconds_rounded_up(view.available_in) <= *wait_s);
      }
      now_.mono += std::chrono::seconds{*wait_s};
      RC_ASSERT(decided().action == engine::Action::pass);
    }
  });
}

}  // namespace
}  // namespace sluice::frontend
