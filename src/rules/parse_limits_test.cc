#include "rules/parse_limits.h"

#include "rules/parse_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::rules {
namespace {

std::string identity_of(const std::string& limit) {
  config::Diagnostics diagnostics;
  const RuleList list =
      parse_rules_text("rules: [{name: r, limit: " + limit + "}]", "f", diagnostics);
  EXPECT_EQ(diagnostics.text(), "");
  if (list.rules.empty() || list.rules.front().limits.empty()) return limit;
  return limit_identity(list.rules.front().limits.front());
}

TEST(LimitIdentity, LeavesOutAmountAndBurst) {
  EXPECT_EQ(identity_of("100/1s"), identity_of("200/1s"));
  EXPECT_EQ(identity_of("100/1s"), identity_of("{rate: 100/1s, burst: 7}"));
  EXPECT_EQ(identity_of("{max_concurrent: 5}"), identity_of("{max_concurrent: 6, slot_ttl: 5s}"));
}

TEST(LimitIdentity, IsTheSameForADefaultThatIsWrittenOut) {
  EXPECT_EQ(identity_of("5/1h"),
            identity_of("{rate: 5/1h, algorithm: token_bucket, refill: continuous}"));
  EXPECT_EQ(identity_of("{rate: 5/1h, algorithm: fixed_window}"),
            identity_of("{rate: 5/60m, algorithm: fixed_window, align: epoch}"));
  EXPECT_EQ(identity_of("5/day"), identity_of("{rate: 5/day, timezone: UTC, align: calendar}"));
  EXPECT_EQ(identity_of("{rate: 5/8s, algorithm: sliding_buckets}"),
            identity_of("{rate: 5/8s, algorithm: sliding_buckets, bucket_width: 1s}"));
}

TEST(LimitIdentity, HoldsWhateverElseMakesACounter) {
  EXPECT_NE(identity_of("5/1s"), identity_of("5/2s"));
  EXPECT_NE(identity_of("5/1s"), identity_of("{rate: 5/1s, algorithm: gcra}"));
  EXPECT_NE(identity_of("5/1s"), identity_of("{rate: 5/1s, refill: interval}"));
  EXPECT_NE(identity_of("{rate: 5/1h, algorithm: fixed_window}"),
            identity_of("{rate: 5/1h, algorithm: fixed_window, align: first_request}"));
  EXPECT_NE(identity_of("5/day"), identity_of("5/week"));
  EXPECT_NE(identity_of("5/day"), identity_of("{rate: 5/1d, algorithm: fixed_window}"));
  EXPECT_NE(identity_of("5/day"), identity_of("{rate: 5/day, timezone: Europe/Berlin}"));
  EXPECT_NE(identity_of("{rate: 5/8s, algorithm: sliding_buckets}"),
            identity_of("{rate: 5/8s, algorithm: sliding_buckets, bucket_width: 2s}"));
}

TEST(LimitIdentity, OfANamedLimitIsItsName) {
  EXPECT_EQ(identity_of("{rate: 5/1s, name: a}"), identity_of("{rate: 9/1h, name: a}"));
  EXPECT_NE(identity_of("{rate: 5/1s, name: a}"), identity_of("{rate: 5/1s, name: b}"));
  EXPECT_NE(identity_of("{rate: 5/1s, name: a}"), identity_of("5/1s"));
}

// Each calendar is compiled once; what differs from a good one must still be found.
TEST(LimitProver, FindsABadCalendarAfterAGoodOne) {
  config::Diagnostics diagnostics;
  (void)parse_rules_text(
      "rules:\n"
      "- {name: a, limit: 5/month}\n"
      "- {name: b, limit: 6/month}\n"
      "- {name: c, limit: {rate: 5/month, timezone: Mars/Olympus}}\n"
      "- {name: d, limit: {rate: 6/month, timezone: Mars/Olympus}}\n"
      "- {name: e, limit: {rate: 5/month, burst: 3}}\n"
      "- {name: f, limit: 0/month}\n",
      "f", diagnostics);
  const auto mistakes = diagnostics.sorted();
  ASSERT_EQ(mistakes.size(), 4U) << diagnostics.text();
  EXPECT_EQ(mistakes[0].place.line, 4U);
  EXPECT_EQ(mistakes[1].place.line, 5U);
  EXPECT_EQ(mistakes[2].place.line, 6U);
  EXPECT_EQ(mistakes[3].place.line, 7U);
}

}  // namespace
}  // namespace sluice::rules
