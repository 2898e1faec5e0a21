// Who sends, what a server states, and what a limit allows.

#include "cli/load/http/client_spread.h"
#include "cli/load/http/expectation.h"
#include "cli/load/http/policies.h"
#include "support/property.h"
#include <sluice/core/cell.h>

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

// ---- clients ----------------------------------------------------------------------------------

TEST(ClientShares, EvenIsEachInTurn) {
  const ClientShares shares{Spread::even, 3};
  Random random{1};
  for (std::uint64_t n = 0; n < 9; ++n) EXPECT_EQ(shares.client_of(n, random), n % 3);
}

// Of 1/1 + 1/2 + 1/3 + 1/4 = 25/12 the first has 48 %, the last 12 %.
TEST(ClientShares, ZipfIsInProportionToTheRank) {
  constexpr int kDraws = 100'000;
  const ClientShares shares{Spread::zipf, 4};
  Random random{7};
  std::vector<int> counts(4);
  for (int n = 0; n < kDraws; ++n) {
    ++counts.at(shares.client_of(static_cast<std::uint64_t>(n), random));
  }
  for (int k = 0; k < 4; ++k) {
    EXPECT_NEAR(counts[static_cast<std::size_t>(k)], kDraws * 12.0 / 25 / (k + 1), 800) << k;
  }
}

TEST(ClientShares, ASeedRepeatsTheDraws) {
  const ClientShares shares{Spread::zipf, 1000};
  Random one{3};
  Random other{3};
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(shares.client_of(n, one), shares.client_of(n, other));
  }
}

// ---- policies ---------------------------------------------------------------------------------

TEST(Policies, AreReadAsTheGatewayWritesThem) {
  const auto policies = parse_policies(R"("api";q=5;w=60, "daily";q=1000;w=86400)");
  ASSERT_EQ(policies.size(), 2U);
  EXPECT_EQ(policies[0].name, "api");
  EXPECT_EQ(policies[0].quota, 5U);
  EXPECT_EQ(policies[0].window_seconds, 60U);
  EXPECT_EQ(policies[1].name, "daily");
  EXPECT_DOUBLE_EQ(policies[1].per_second(), 1000.0 / 86400);
}

TEST(Policies, NamesMayHoldWhatSeparatesItems) {
  const auto policies = parse_policies(R"("a,b;w=9 \"c\"" ; q=1 ; w=2;qu="x;w=3" , tok;w=4)");
  ASSERT_EQ(policies.size(), 2U);
  EXPECT_EQ(policies[0].name, R"(a,b;w=9 "c")");
  EXPECT_EQ(policies[0].window_seconds, 2U);
  EXPECT_EQ(policies[1].name, "tok");
}

// Limits on requests in flight have no window, and nothing can be said of them over time.
TEST(Policies, WithoutAWindowAreLeftOut) {
  EXPECT_TRUE(parse_policies(R"("inflight";q=20;qu="concurrent-requests")").empty());
  EXPECT_TRUE(parse_policies(R"("a";q=1;w=0)").empty());
}

// A server may send anything; nothing of it is read as a policy that is none.
TEST(Policies, SurviveAnyBytes) {
  testing::check_property(300, [] {
    for (const StatedPolicy& policy : parse_policies(*rc::gen::string<std::string>())) {
      RC_ASSERT(!policy.name.empty());
      RC_ASSERT(policy.window_seconds > 0U);
    }
  });
  for (const char* const value :
       {"\"", "\"\\", "\"a\\", ";;w=1", ",,,", "\"a\";w=99999999999999999999"}) {
    EXPECT_TRUE(parse_policies(value).empty()) << value;
  }
}

TEST(PolicyBook, CountsTheAnswersThatStateAPolicy) {
  PolicyBook book;
  book.note(R"("a";q=1;w=1)");
  book.note(R"("a";q=1;w=1)");
  book.note(R"("a";q=2;w=1, "b";q=1;w=1)");
  book.note(R"("a";q=1;w=1)");
  PolicyBook all;
  all.add(book);
  all.add(book);
  ASSERT_EQ(all.policies().size(), 3U);
  EXPECT_EQ(all.policies()[0].answers, 6U);
  EXPECT_EQ(all.policies()[1].quota, 2U);
  EXPECT_EQ(all.policies()[1].answers, 2U);
}

// A server that names its policies anew in every answer does not fill the memory.
TEST(PolicyBook, KeepsABoundedNumber) {
  PolicyBook book;
  for (int i = 0; i < 1000; ++i) book.note("\"" + std::to_string(i) + "\";q=1;w=1");
  EXPECT_EQ(book.policies().size(), PolicyBook::kMost);
}

// ---- expectations -----------------------------------------------------------------------------

TEST(Expectation, OfABucketIsItsBurstAndWhatFlowsIn) {
  const Expectation expect{
      .amount = 50, .period = 1s, .burst = 70, .algorithm = Algorithm::token_bucket};
  EXPECT_EQ(expect.most_in(0s), 70U);
  EXPECT_EQ(expect.most_in(4s), 270U);
  EXPECT_EQ(expect.most_in(4019ms), 270U);
  EXPECT_EQ(expect.most_in(4020ms), 271U);
}

TEST(Expectation, OfALogIsTheAmountInEachPeriod) {
  const Expectation expect{
      .amount = 5, .period = 1h, .burst = {}, .algorithm = Algorithm::sliding_log};
  EXPECT_EQ(expect.most_in(10s), 5U);
  EXPECT_EQ(expect.most_in(1h), 10U);
}

// A limit that works is never accused, whichever it is and however requests come.
TEST(Expectation, IsNeverExceededByALimitThatWorks) {
  testing::check_property(500, [] {
    const auto algorithm = *rc::gen::elementOf(std::vector<Algorithm>{
        Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::gcra, Algorithm::fixed_window,
        Algorithm::sliding_log, Algorithm::sliding_counter, Algorithm::sliding_buckets});
    const Limit limit{
        .algorithm = algorithm, .amount = *rc::gen::inRange<std::uint64_t>(1, 20), .period = 1s};
    const core::CompiledLimit compiled = core::compile(limit).value();
    core::Cell cell;
    const auto gaps = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
        rc::gen::inRange<std::int64_t>(0, *rc::gen::element(1'000, 20'000'000, 400'000'000))));
    MonoTime at{std::chrono::hours{1} + Nanos{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000)}};
    std::optional<MonoTime> first;
    MonoTime last = at;
    std::uint64_t admitted = 0;
    for (const std::int64_t gap : gaps) {
      at += Nanos{gap};
      if (!first) first = at;
      last = at;
      if (cell.decide(compiled, Now{.mono = at}, 1).decision.allowed()) ++admitted;
    }
    Expectation expect{
        .amount = limit.amount, .period = limit.period, .burst = {}, .algorithm = algorithm};
    RC_ASSERT(admitted <= expect.most_in(last - *first));
    expect.algorithm.reset();
    RC_ASSERT(admitted <= expect.most_in(last - *first));
  });
}

}  // namespace
}  // namespace sluice::cli
