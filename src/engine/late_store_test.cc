// Stores that complete late, never, in any order, or after the client has left.
#include "engine/decider.h"
#include "engine/engine_fixture.h"
#include "support/awkward_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using store::Completion;
using store::Source;

// A worker whose shared limits are decided far away, by a table of their own.
class LateEngine : public EngineFixture {
 protected:
  LateEngine() {
    far_table_ =
        store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, now_).value();
    near_ = std::make_unique<store::LocalStores>(*table_);
    far_ = std::make_unique<store::LocalStores>(*far_table_);
    stores_ = std::make_unique<testing::AwkwardStores>(*near_, *far_);
    store_ = stores_->for_worker(1);
    worker_ = new_worker(*store_, &stores_->limits());
    op_.owner = this;
    op_.completed = [](Op& op) noexcept { ++static_cast<LateEngine*>(op.owner)->completed_; };
  }
  ~LateEngine() override { worker_ = nullptr; }

  [[nodiscard]] static rules::Rule shared(std::string name, std::string_view limit_text,
                                          OnFailure on_failure = OnFailure::closed) {
    // Refunds in any order give all of it back, which a bucket does not promise.
    rules::Rule made = rule(std::move(name), {limit(limit_text, Algorithm::fixed_window)},
                            {per(rules::Per::Kind::ip)});
    made.sharing = {.mode = Mode::exact, .on_failure = on_failure};
    return made;
  }
  [[nodiscard]] static rules::Rule local(std::string name, std::string_view limit_text) {
    rules::Rule made = shared(std::move(name), limit_text);
    made.sharing = {};
    return made;
  }
  void use(std::vector<rules::Rule> all) {
    auto made = Snapshot::make({.rules = std::move(all)}, stores_->limits(), now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  }
  void use_one(OnFailure on_failure) { use({shared("a", "2/1h", on_failure)}); }

  [[nodiscard]] testing::AwkwardStore& script() { return *stores_->workers().front(); }
  void answer_all() {
    script().answer_all(now_);
    store_->advance(now_);  // what no request waits for
  }
  // Nothing comes until the budget of the decision is over.
  void let_time_pass() {
    now_ = at(now_.mono - at(Nanos{0}).mono + 20ms);
    store_->advance(now_);
  }
  // How many of some requests pass though no reply ever comes.
  int passed_unanswered(int requests) {
    int admitted = 0;
    for (int i = 0; i < requests; ++i) {
      EXPECT_EQ(decide(op_, {}), Completion::later);
      let_time_pass();
      EXPECT_FALSE(op_.waiting());
      admitted += op_.action == Action::pass ? 1 : 0;
      worker_->settle(op_, nullptr, now_);
    }
    return admitted;
  }
  // What is left of a rule over there, as the next request finds it.
  std::uint64_t remaining() {
    Op op;
    EXPECT_EQ(decide(op, {}), Completion::later);
    answer_all();
    const std::uint64_t left = op.decision.remaining;
    worker_->abandon(op, now_);
    answer_all();
    return left;
  }

  std::unique_ptr<store::LocalStore> far_table_;
  std::unique_ptr<store::LocalStores> near_;
  std::unique_ptr<store::LocalStores> far_;
  std::unique_ptr<testing::AwkwardStores> stores_;
  std::unique_ptr<store::Store> store_;
  int completed_ = 0;
};

TEST_F(LateEngine, CompletesWhenTheStoreAnswers) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  EXPECT_TRUE(op_.waiting());
  EXPECT_EQ(completed_, 0);
  answer_all();
  EXPECT_EQ(completed_, 1);
  EXPECT_FALSE(op_.waiting());
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.decision.remaining, 1U);
  EXPECT_EQ(op_.source, Source::exact);
  worker_->settle(op_, nullptr, now_);
}

TEST_F(LateEngine, RejectsWhenTheLateAnswerIsNo) {
  use_one(OnFailure::open);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(decide(op_, {}), Completion::later);
    answer_all();
    EXPECT_EQ(op_.action, i < 2 ? Action::pass : Action::reject) << i;
    worker_->settle(op_, nullptr, now_);
  }
  EXPECT_EQ(op_.reason, Reason::limited);
}

// The request after a failed one may have no limits at all: it does not fail for that.
TEST_F(LateEngine, ForgetsThatTheStoreFailedWithTheNextRequest) {
  rules::Rule limited = shared("a", "2/1h", OnFailure::open);
  limited.match.methods = {"GET"};
  rules::Rule shadow = local("b", "1/1h");
  shadow.action.kind = rules::Action::Kind::shadow;
  use({limited, shadow});
  ASSERT_EQ(decide(op_, {}), Completion::later);
  let_time_pass();
  EXPECT_EQ(op_.reason, Reason::store_failed);
  EXPECT_EQ(op_.source, Source::open);
  worker_->settle(op_, nullptr, now_);
  EXPECT_EQ(decide(op_, {.method = "POST"}), Completion::now);
  EXPECT_EQ(op_.reason, Reason::allowed);
  EXPECT_EQ(op_.source, Source::local);
  EXPECT_EQ(worker_->counters().store_failures, 1U);
  worker_->settle(op_, nullptr, now_);
}

TEST_F(LateEngine, NeedsNothingOfTheRequestAfterwards) {
  use_one(OnFailure::closed);
  {
    std::string target = "/some/path";
    const Sent sent{.target = target};
    ASSERT_EQ(decide(op_, sent), Completion::later);
    std::fill(target.begin(), target.end(), 'x');
  }
  answer_all();
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.rule->name, "a");
  worker_->settle(op_, nullptr, now_);
}

// ---- when no answer comes -----------------------------------------------------------------------

TEST_F(LateEngine, RejectsWhenTheStoreNeverAnswersAndTheRuleIsClosed) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  let_time_pass();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.action, Action::reject);
  EXPECT_EQ(op_.reason, Reason::store_failed);
  EXPECT_EQ(op_.status, 503);
  EXPECT_EQ(op_.rule->name, "a");
  EXPECT_EQ(op_.source, Source::closed);
  EXPECT_TRUE(op_.limits().empty()) << "it says nothing of a limit";
  EXPECT_EQ(worker_->counters().store_failures, 1U);
}

TEST_F(LateEngine, PassesWhenTheStoreNeverAnswersAndTheRuleIsOpen) {
  use_one(OnFailure::open);
  EXPECT_EQ(passed_unanswered(5), 5);
  EXPECT_EQ(op_.reason, Reason::store_failed);
}

// One of two nodes.
TEST_F(LateEngine, SpendsItsShareWhenTheStoreNeverAnswers) {
  use({shared("a", "6/1h", OnFailure::share)});
  EXPECT_EQ(passed_unanswered(9), 3);
  EXPECT_EQ(op_.source, Source::share);
  EXPECT_EQ(op_.reason, Reason::limited);
}

// One rule that is closed is enough, and the others keep what they had.
TEST_F(LateEngine, RejectsIfOneRuleOfSeveralIsClosed) {
  use({shared("open", "9/1h", OnFailure::open), shared("share", "8/1h", OnFailure::share),
       shared("closed", "7/1h", OnFailure::closed)});
  EXPECT_EQ(passed_unanswered(3), 0);
  EXPECT_EQ(op_.reason, Reason::store_failed);
  EXPECT_EQ(op_.rule->name, "closed");
  answer_all();  // too late: what was admitted there is refunded
  ASSERT_EQ(decide(op_, {}), Completion::later);
  answer_all();
  for (const LimitOutcome& one : op_.limits()) {
    EXPECT_EQ(one.decision.remaining + 1, one.decision.limit) << one.rule->name;
  }
  worker_->settle(op_, nullptr, now_);
}

TEST_F(LateEngine, LeavesOutRulesThatAreOpen) {
  use({shared("a", "9/1h", OnFailure::open), shared("b", "6/1h", OnFailure::share),
       shared("c", "9/1h", OnFailure::open)});
  EXPECT_EQ(passed_unanswered(9), 3) << "the share of rule b";
  EXPECT_EQ(op_.rule->name, "b");
  EXPECT_EQ(op_.limits().size(), 1U);
}

// Some answer, others do not: each group is decided by itself.
TEST_F(LateEngine, DecidesEachRuleByItsOwnAnswer) {
  use({shared("a", "5/1h", OnFailure::open), shared("b", "6/1h", OnFailure::open)});
  ASSERT_EQ(decide(op_, {}), Completion::later);
  script().answer(0, 1, now_);
  EXPECT_TRUE(op_.waiting());
  let_time_pass();
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.reason, Reason::allowed);
  ASSERT_EQ(op_.limits().size(), 1U);
  EXPECT_EQ(op_.limits()[0].rule->name, "b");
  EXPECT_EQ(op_.rule->name, "b");
  EXPECT_EQ(op_.decision.remaining, 5U);
  EXPECT_EQ(op_.source, Source::exact);
  worker_->settle(op_, nullptr, now_);
}

// They are charged for what was admitted, whatever admitted it.
TEST_F(LateEngine, TellsShadowsOfWhatPassesUnanswered) {
  rules::Rule shadow = local("shadow", "3/1h");
  shadow.action.kind = rules::Action::Kind::shadow;
  use({shared("real", "2/1h", OnFailure::open), shadow});
  EXPECT_EQ(passed_unanswered(5), 5);
  EXPECT_EQ(worker_->counters().would_refuse, 2U);
}

// ---- clients that leave -------------------------------------------------------------------------

// The op is used for another request before the store would have answered.
TEST_F(LateEngine, MayBeUsedAgainAfterTheClientLeft) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.1"}), Completion::later);
  script().arrive(0, 0, now_);
  worker_->abandon(op_, now_);
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.2"}), Completion::later);
  script().reply(0, 0, now_);
  EXPECT_EQ(completed_, 0);
  EXPECT_TRUE(op_.waiting()) << "the answer was for the request before";
  answer_all();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.decision.remaining, 1U);
  worker_->settle(op_, nullptr, now_);
  EXPECT_EQ(remaining(), 1U) << "what the first one was charged came back";
}

TEST_F(LateEngine, MayBeGoneWhenTheAnswerComes) {
  use_one(OnFailure::closed);
  {
    Op op;
    ASSERT_EQ(decide(op, {}), Completion::later);
    script().arrive(0, 0, now_);
    worker_->abandon(op, now_);
  }
  answer_all();
  EXPECT_EQ(completed_, 0);
  EXPECT_EQ(remaining(), 1U);
}

// The rule has decided by itself in the meantime, and that stands.
TEST_F(LateEngine, ChangesNothingThatIsDecided) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  script().arrive(0, 0, now_);
  let_time_pass();
  ASSERT_EQ(op_.action, Action::reject);
  script().reply(0, 0, now_);
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.action, Action::reject);
  EXPECT_EQ(op_.reason, Reason::store_failed);
  worker_->settle(op_, nullptr, now_);
  answer_all();
  EXPECT_EQ(remaining(), 1U) << "a rejected request is not charged";
}

TEST_F(LateEngine, RefundsWhereItWasCharged) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  answer_all();
  worker_->abandon(op_, now_);
  answer_all();
  EXPECT_EQ(remaining(), 1U);
}

// ---- rules of all kinds on one request ----------------------------------------------------------

class MixedRules : public LateEngine {
 protected:
  // A local rule, two shared ones, a shadow rule of each kind and one before authentication.
  void SetUp() override {
    rules::Rule early = shared("early", "9/1h");  // and local yet
    early.before_auth = true;
    rules::Rule near_shadow = local("near", "1/1h");
    near_shadow.action.kind = rules::Action::Kind::shadow;
    rules::Rule far_shadow = shared("far", "1/1h");
    far_shadow.action.kind = rules::Action::Kind::shadow;
    use({local("local", "9/1h"), early, shared("b", "8/1h"), shared("c", "7/1h"), near_shadow,
         far_shadow});
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const LimitOutcome& one : op_.limits()) all.push_back(one.rule->name);
    std::ranges::sort(all);
    return all;
  }
};

TEST_F(MixedRules, AreDecidedInEveryOrderOfCompletion) {
  std::size_t call = 0;
  for (const auto& order : {std::pair{0U, 1U}, std::pair{1U, 0U}}) {
    for (const bool split : {false, true}) {
      ASSERT_EQ(decide(op_, {}), Completion::later);
      if (split) {
        script().arrive(call, order.first, now_);
        script().arrive(call, order.second, now_);
      }
      // Group 0 is local.
      script().answer(call, 1 + order.first, now_);
      EXPECT_TRUE(op_.waiting());
      script().answer(call, 1 + order.second, now_);
      EXPECT_FALSE(op_.waiting());
      ++call;
      EXPECT_EQ(op_.action, Action::pass);
      EXPECT_EQ(names(), (std::vector<std::string>{"b", "c", "early", "local", "near"}))
          << "nothing waits for the shared shadow rule";
      answer_all();  // the shadow's
      ++call;
      EXPECT_EQ(names(), (std::vector<std::string>{"b", "c", "early", "far", "local", "near"}));
      worker_->settle(op_, nullptr, now_);
    }
  }
  EXPECT_EQ(op_.decision.remaining, 3U);
  EXPECT_EQ(worker_->counters().would_refuse, 2U * 3U) << "both shadow rules, but for the first";
}

TEST_F(MixedRules, AreAllGivenBackIfOneRejects) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(decide(op_, {}), Completion::later);
    answer_all();
    EXPECT_EQ(op_.action, Action::pass);
    worker_->settle(op_, nullptr, now_);
    answer_all();
  }
  ASSERT_EQ(decide(op_, {}), Completion::later);
  answer_all();
  EXPECT_EQ(op_.action, Action::reject);
  EXPECT_EQ(op_.rule->name, "c");
  worker_->settle(op_, nullptr, now_);
  answer_all();
  use({local("local", "9/1h"), shared("b", "8/1h")});
  ASSERT_EQ(decide(op_, {}), Completion::later);
  answer_all();
  for (const LimitOutcome& one : op_.limits()) {
    EXPECT_EQ(one.decision.remaining, one.rule->name == "local" ? 1U : 0U) << one.rule->name;
  }
  worker_->settle(op_, nullptr, now_);
}

// ---- shared shadow rules ------------------------------------------------------------------------

class LateShadows : public LateEngine {
 protected:
  void use_shadow(bool counts_failures) {
    rules::Rule shadow = shared("shadow", "3/1h");
    shadow.action.kind = rules::Action::Kind::shadow;
    if (counts_failures) shadow.count = rules::Count{.statuses = {{500, 599}}};
    use({shadow});
  }
  void settle(std::uint16_t status) {
    const ResponseView response{.status = status};
    worker_->settle(op_, &response, now_);
  }
  // What is left over there, by a rule of the same name that is no shadow.
  std::uint64_t left() {
    answer_all();
    rules::Rule plain = shared("shadow", "3/1h");
    use({plain});
    const std::uint64_t found = remaining() + 1;
    return found;
  }
};

TEST_F(LateShadows, KeepNobodyWaiting) {
  use_shadow(false);
  EXPECT_EQ(decide(op_, {}), Completion::now);
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_TRUE(op_.limits().empty());
  settle(200);
  EXPECT_EQ(left(), 2U);
}

TEST_F(LateShadows, AreRefundedWhereTheResponseDoesNotCount) {
  for (const bool answered_first : {true, false}) {
    use_shadow(true);
    ASSERT_EQ(decide(op_, {}), Completion::now);
    if (answered_first) answer_all();
    settle(200);
    EXPECT_EQ(left(), 3U) << answered_first;
  }
}

TEST_F(LateShadows, AreChargedWhereItCounts) {
  use_shadow(true);
  ASSERT_EQ(decide(op_, {}), Completion::now);
  settle(500);
  EXPECT_EQ(left(), 2U);
}

TEST_F(LateShadows, AreRefundedWhenTheClientLeaves) {
  use_shadow(false);
  ASSERT_EQ(decide(op_, {}), Completion::now);
  worker_->abandon(op_, now_);
  EXPECT_EQ(left(), 3U);
}

// A slot is returned when the request ends, also if it was taken only afterwards.
TEST_F(LateShadows, ReturnTheirSlots) {
  for (const bool answered_first : {true, false}) {
    rules::Rule shadow = shared("slots", "1/1h");
    shadow.limits = {limit("3", Algorithm::concurrency)};
    rules::Rule plain = shadow;
    shadow.action.kind = rules::Action::Kind::shadow;
    use({shadow});
    ASSERT_EQ(decide(op_, {}), Completion::now);
    if (answered_first) answer_all();
    settle(200);
    answer_all();
    use({plain});
    EXPECT_EQ(remaining(), 2U) << answered_first;
  }
}

// Rules that are replaced live until the last shadow is decided, and a decider may go before that.
TEST_F(LateShadows, OutliveTheirRules) {
  use_shadow(false);
  ASSERT_EQ(decide(op_, {}), Completion::now);
  settle(200);
  use({shared("other", "3/1h")});
  answer_all();
  use_shadow(false);
  ASSERT_EQ(decide(op_, {}), Completion::now);
  settle(200);
}

}  // namespace
}  // namespace sluice::engine
