#include "frontend/metrics/decision_counters.h"

#include "support/frontend_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using engine::limit;
using engine::per;
using engine::rule;

class DecisionCountersTest : public fixture::FrontendFixture {
 protected:
  void use(std::vector<rules::Rule> all, rules::Unmatched unmatched = rules::Unmatched::allow) {
    auto made =
        engine::Snapshot::make({.rules = std::move(all), .unmatched = unmatched}, *limits_, now_);
    ASSERT_TRUE(made);
    worker_->use(*made);
    counters_ = std::make_unique<DecisionCounters>(registry_, (*made)->shared_rules());
  }
  double value(std::string_view name, const std::vector<std::string>& values) const {
    for (const metrics::FamilyReading& family : registry_.read()) {
      if (family.name != name) continue;
      for (const metrics::SeriesReading& series : family.series) {
        if (series.values == values) return series.value;
      }
    }
    return -1;
  }
  double said(const std::string& rule, const std::string& word) const {
    return value("sluice_decisions_total", {rule.empty() ? "" : "default", rule, word});
  }
  double refused(const std::string& reason) const {
    return value("sluice_rejections_total", {reason});
  }

  metrics::Registry registry_{2};
  std::unique_ptr<DecisionCounters> counters_;
};

// Units, whether a rule granted them or not, and once for all its limits.
TEST_F(DecisionCountersTest, CountWhatRulesWereAskedFor) {
  rules::Rule dear = rule("dear", {limit("5/1h"), limit("100/1d")});
  dear.cost.constant = 3;
  use({dear, rule("cheap", {limit("100/1h")})});
  for (std::size_t i = 0; i < 4; ++i) counters_->count(i % 2, decided());
  EXPECT_EQ(said("dear", "allowed"), 1);
  EXPECT_EQ(value("sluice_hits_total", {"default", "dear"}), 12);
  EXPECT_EQ(value("sluice_hits_total", {"default", "cheap"}), 4);
}

// A rule is counted by what it said itself, shadows included.
TEST_F(DecisionCountersTest, CountWhatEveryRuleSaid) {
  rules::Rule shadow = rule("shadow", {limit("1/1h")});
  shadow.action.kind = rules::Action::Kind::shadow;
  use({rule("two-limits", {limit("3/1h"), limit("100/1d")}), rule("wide", {limit("100/1h")}),
       shadow});
  for (std::size_t i = 0; i < 4; ++i) counters_->count(i % 2, decided());
  EXPECT_EQ(said("two-limits", "allowed"), 3) << "a rule is one, however many limits it has";
  EXPECT_EQ(said("two-limits", "rejected"), 1);
  EXPECT_EQ(said("wide", "allowed"), 4);
  EXPECT_EQ(said("shadow", "allowed"), 1);
  EXPECT_EQ(said("shadow", "shadow_rejected"), 2) << "not asked about what is refused";
  EXPECT_EQ(refused("limited"), 1);
  EXPECT_EQ(refused("allowed"), -1) << "no reason to refuse";
}

TEST_F(DecisionCountersTest, CountWhatNoRuleConcerns) {
  use({});
  counters_->count(0, decided());
  EXPECT_EQ(said("", "allowed"), 1);
  use({}, rules::Unmatched::reject);
  counters_->count(0, decided());
  EXPECT_EQ(said("", "rejected"), 1);
  EXPECT_EQ(refused("no_rule"), 1);
}

TEST_F(DecisionCountersTest, CountWhatIsAmbiguous) {
  use({rule("api", {limit("10/1h")}, {per(rules::Per::Kind::header, "x-user")})});
  counters_->count(0, decided({.headers = {{"x-api-key", "a"}, {"x-api-key", "b"}}}));
  EXPECT_EQ(said("", "rejected"), 1);
  EXPECT_EQ(refused("ambiguous_credentials"), 1);
  settle();
  counters_->count(0, decided({.headers = {{"x-user", "a"}, {"x-user", "b"}}}));
  EXPECT_EQ(said("api", "rejected"), 1);
  EXPECT_EQ(refused("ambiguous_value"), 1);
}

TEST_F(DecisionCountersTest, CountBlocksForTheirRule) {
  rules::Rule blocking = rule("login", {limit("1/1h")});
  blocking.block = rules::Block{.duration = std::chrono::minutes{15}, .threshold = 1};
  use({blocking});
  for (int i = 0; i < 3; ++i) counters_->count(0, decided());
  EXPECT_EQ(said("login", "allowed"), 1);
  EXPECT_EQ(said("login", "rejected"), 2);
  EXPECT_EQ(refused("blocked"), 1);
}

// Limits that want no proof are asked before a block refuses that depends on who is asking.
TEST_F(DecisionCountersTest, CountARefusalForItsRuleWhateverWasAskedBefore) {
  rules::Rule early = rule("early", {limit("100/1h")});
  early.before_auth = true;
  rules::Rule blocking = rule("login", {limit("1/1h")}, {per(rules::Per::Kind::user)});
  blocking.block = rules::Block{.duration = std::chrono::minutes{15}, .threshold = 1};
  use({early, blocking});
  for (int i = 0; i < 3; ++i) counters_->count(0, decided());
  EXPECT_EQ(said("early", "allowed"), 3);
  EXPECT_EQ(said("login", "rejected"), 2);
  EXPECT_EQ(said("", "rejected"), 0);
}

// A rule that keeps its name keeps its counts; a request of old rules is not mistaken for another.
TEST_F(DecisionCountersTest, GoOnAfterAReload) {
  use({rule("api", {limit("10/1h")})});
  counters_->count(0, decided());
  const std::unique_ptr<DecisionCounters> old = std::move(counters_);
  settle();
  use({rule("new", {limit("10/1h")}), rule("api", {limit("20/1h")})});
  counters_->count(0, decided());
  EXPECT_EQ(said("api", "allowed"), 2);
  old->count(0, op_);
  EXPECT_EQ(value("sluice_decisions_total", {"_other", "_other", "allowed"}), 2);
}

}  // namespace
}  // namespace sluice::frontend
