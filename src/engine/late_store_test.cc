// Stores that answer late, never, or after the client has gone.
#include "engine/decider.h"
#include "engine/engine_fixture.h"
#include "support/store_behind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::engine {
namespace {

using rules::OnFailure;
using store::Call;
using store::Completion;

// Answers when it is told to, by another store's truth.
class LateStore final : public sluice::testing::StoreBehind {
 public:
  using StoreBehind::StoreBehind;

  Completion decide_all(Call& call, Now now) noexcept override {
    asked_at_ = now;
    waiting_.push_back(&call);
    return Completion::later;
  }
  void cancel(Call& call) noexcept override {
    ++cancelled_;
    std::erase(waiting_, &call);
  }

  void answer_all() {
    for (Call* call : std::exchange(waiting_, {})) {
      (void)StoreBehind::decide_all(*call, asked_at_);
      call->completed(*call);
    }
  }
  void fail_all() {
    for (Call* call : std::exchange(waiting_, {})) {
      call->failed = true;
      call->completed(*call);
    }
  }
  std::size_t waiting() const { return waiting_.size(); }
  int cancelled() const { return cancelled_; }

 private:
  int cancelled_ = 0;
  std::vector<Call*> waiting_;
  Now asked_at_;
};

class LateEngine : public EngineFixture {
 protected:
  LateEngine() {
    far_table_ =
        store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, now_).value();
    far_ = std::make_unique<store::LocalAuthority>(*far_table_, 1);
    late_ = std::make_unique<LateStore>(*far_);
    worker_ = new_worker(*late_);
    op_.owner = this;
    op_.completed = [](Op& op) noexcept { ++static_cast<LateEngine*>(op.owner)->completed_; };
  }

  void use_one(OnFailure on_failure) { use_all({on_failure}); }
  // Rules a, b, ... of 2, 3, ... an hour.
  void use_all(const std::vector<OnFailure>& on_failure) {
    std::vector<rules::Rule> all;
    for (std::size_t i = 0; i < on_failure.size(); ++i) {
      all.push_back(rule(std::string(1, static_cast<char>('a' + i)),
                         {limit(std::to_string(2 + i) + "/1h")}, {per(rules::Per::Kind::ip)}));
      all.back().on_failure = on_failure[i];
    }
    auto snapshot = Snapshot::make({.rules = all}, *local_, now_);
    ASSERT_TRUE(snapshot);
    auto far = Snapshot::make({.rules = all}, *far_, now_);  // the same numbers over there
    ASSERT_TRUE(far);
    far_snapshot_ = *far;
    worker_->use(*snapshot);
  }
  // How many of some requests pass though nobody over there answers.
  int passed_unanswered(int requests) {
    int admitted = 0;
    for (int i = 0; i < requests; ++i) {
      EXPECT_EQ(decide(op_, {}), Completion::later);
      worker_->give_up_waiting(op_, now_);
      admitted += op_.action == Action::pass ? 1 : 0;
      worker_->settle(op_, nullptr, now_);
    }
    return admitted;
  }

  std::unique_ptr<store::LocalStore> far_table_;
  std::unique_ptr<store::LocalAuthority> far_;
  std::unique_ptr<LateStore> late_;
  std::shared_ptr<const Snapshot> far_snapshot_;
  int completed_ = 0;
};

TEST_F(LateEngine, CompletesWhenTheStoreAnswers) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  EXPECT_TRUE(op_.waiting());
  EXPECT_EQ(completed_, 0);
  late_->answer_all();
  EXPECT_EQ(completed_, 1);
  EXPECT_FALSE(op_.waiting());
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.decision.remaining, 1U);
}

TEST_F(LateEngine, RefusesWhenTheLateAnswerIsNo) {
  use_one(OnFailure::open);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(decide(op_, {}), Completion::later);
    late_->answer_all();
    EXPECT_EQ(op_.action, i < 2 ? Action::pass : Action::reject) << i;
    if (i < 2) worker_->settle(op_, nullptr, now_);
  }
  EXPECT_EQ(op_.reason, Reason::limited);
}

// The request after a failed one may have no limits at all: it does not fail for that.
TEST_F(LateEngine, ForgetsThatTheStoreFailedWithTheNextRequest) {
  rules::Rule limited = rule("a", {limit("2/1h")}, {per(rules::Per::Kind::ip)});
  limited.match.methods = {"GET"};
  limited.on_failure = OnFailure::open;
  rules::Rule shadow = rule("b", {limit("1/1h")}, {per(rules::Per::Kind::ip)});
  shadow.action.kind = rules::Action::Kind::shadow;
  worker_->use(Snapshot::make({.rules = {limited, shadow}}, *local_, now_).value());
  ASSERT_EQ(decide(op_, {}), Completion::later);
  late_->fail_all();
  EXPECT_EQ(op_.reason, Reason::store_failed);
  worker_->settle(op_, nullptr, now_);
  EXPECT_EQ(decide(op_, {.method = "POST"}), Completion::now);
  EXPECT_EQ(op_.reason, Reason::allowed);
  EXPECT_EQ(op_.source, "local");
  EXPECT_EQ(worker_->counters().store_failures, 1U);
}

// Nothing of the request is looked at once decide() has returned.
TEST_F(LateEngine, NeedsNothingOfTheRequestAfterwards) {
  use_one(OnFailure::closed);
  {
    std::string target = "/some/path";
    const Sent sent{.target = target};
    ASSERT_EQ(decide(op_, sent), Completion::later);
    std::fill(target.begin(), target.end(), 'x');
  }
  late_->answer_all();
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.rule->name, "a");
}

TEST_F(LateEngine, RejectsWhenTheStoreNeverAnswersAndTheRuleIsClosed) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  worker_->give_up_waiting(op_, now_);
  EXPECT_EQ(op_.action, Action::reject);
  EXPECT_EQ(op_.reason, Reason::store_failed);
  EXPECT_EQ(op_.status, 503);
  EXPECT_EQ(op_.rule->name, "a");
  EXPECT_EQ(late_->waiting(), 0U) << "it was called off";
  EXPECT_EQ(worker_->counters().store_failures, 1U);
}

TEST_F(LateEngine, PassesWhenTheStoreNeverAnswersAndTheRuleIsOpen) {
  use_one(OnFailure::open);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(decide(op_, {}), Completion::later);
    worker_->give_up_waiting(op_, now_);
    EXPECT_EQ(op_.action, Action::pass);
  }
}

// Its own counts stand in for those it cannot reach.
TEST_F(LateEngine, CountsByItselfWhenTheStoreNeverAnswers) {
  use_one(OnFailure::share);
  int admitted = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(decide(op_, {}), Completion::later);
    worker_->give_up_waiting(op_, now_);
    admitted += op_.action == Action::pass ? 1 : 0;
    EXPECT_EQ(op_.source, "fallback");
  }
  EXPECT_EQ(admitted, 2);
}

TEST_F(LateEngine, TakesAFailureForNoAnswer) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  late_->fail_all();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.reason, Reason::store_failed);
  EXPECT_EQ(late_->cancelled(), 0) << "it is over already";
}

// The strictest of the rules that are concerned prevails.
TEST_F(LateEngine, RejectsIfOneRuleOfSeveralIsClosed) {
  for (const auto& all : {std::vector{OnFailure::open, OnFailure::closed, OnFailure::share},
                          std::vector{OnFailure::closed, OnFailure::open},
                          std::vector{OnFailure::share, OnFailure::closed}}) {
    use_all(all);
    EXPECT_EQ(passed_unanswered(2), 0);
    EXPECT_EQ(op_.reason, Reason::store_failed);
    EXPECT_EQ(op_.rule->on_failure, OnFailure::closed);
  }
}

TEST_F(LateEngine, CountsByItselfIfOneRuleOfSeveralSharesAndNoneIsClosed) {
  use_all({OnFailure::open, OnFailure::share, OnFailure::open});
  EXPECT_EQ(passed_unanswered(9), 3) << "of rule b; a would have two";
  EXPECT_EQ(op_.rule->name, "b");
  EXPECT_EQ(op_.limits().size(), 1U) << "the open ones have no say";
}

TEST_F(LateEngine, PassesIfAllRulesAreOpen) {
  use_all({OnFailure::open, OnFailure::open});
  EXPECT_EQ(passed_unanswered(9), 9);
  EXPECT_EQ(op_.reason, Reason::store_failed);
}

// They are charged for what was admitted, by whomever.
TEST_F(LateEngine, TellsShadowsOfWhatPassesUnanswered) {
  rules::Rule real = rule("real", {limit("2/1h")});
  real.on_failure = OnFailure::open;
  rules::Rule shadow = rule("shadow", {limit("3/1h")});
  shadow.action.kind = rules::Action::Kind::shadow;
  use({real, shadow});
  EXPECT_EQ(passed_unanswered(5), 5);
  EXPECT_EQ(worker_->counters().would_refuse, 2U);
}

// The client left; the op is used for somebody else before the store would have answered.
TEST_F(LateEngine, MayBeUsedAgainAfterTheClientLeft) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.1"}), Completion::later);
  worker_->abandon(op_, now_);
  EXPECT_EQ(late_->waiting(), 0U);
  late_->answer_all();
  EXPECT_EQ(completed_, 0);
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.2"}), Completion::later);
  late_->answer_all();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.decision.remaining, 1U);
}

// Decides at once, over there; the answer is on its way until it is delivered. What belongs to a
// call that was cancelled is thrown away on arrival, as store.h wants it.
class SlowPost final : public sluice::testing::StoreBehind {
 public:
  using StoreBehind::StoreBehind;

  Completion decide_all(Call& call, Now now) noexcept override {
    Letter letter{.to = &call, .content = std::make_unique<Call>(call)};
    (void)StoreBehind::decide_all(*letter.content, now);
    letters_.push_back(std::move(letter));
    return Completion::later;
  }
  void cancel(Call& call) noexcept override {
    for (Letter& letter : letters_) {
      if (letter.to == &call) letter.to = nullptr;
    }
  }
  // Those that were sent first arrive first.
  void deliver() {
    Letter letter = std::move(letters_.front());
    letters_.erase(letters_.begin());
    if (letter.to == nullptr) return;
    *letter.to = *letter.content;
    letter.to->completed(*letter.to);
  }
  std::size_t under_way() const { return letters_.size(); }

 private:
  struct Letter {
    Call* to;
    std::unique_ptr<Call> content;
  };
  std::vector<Letter> letters_;
};

class LateAnswers : public LateEngine {
 protected:
  LateAnswers() {
    post_ = std::make_unique<SlowPost>(*far_);
    worker_ = new_worker(*post_);
  }
  std::unique_ptr<SlowPost> post_;
};

// The client left, the op serves somebody else, and then the answer for the first one arrives.
TEST_F(LateAnswers, AreNotTakenForThoseOfSomebodyElse) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.1"}), Completion::later);
  worker_->abandon(op_, now_);
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.2"}), Completion::later);
  ASSERT_EQ(post_->under_way(), 2U);
  post_->deliver();
  EXPECT_EQ(completed_, 0);
  EXPECT_TRUE(op_.waiting());
  post_->deliver();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.decision.remaining, 1U);
  worker_->settle(op_, nullptr, now_);

  // What was charged over there for the one who left stays.
  ASSERT_EQ(decide(op_, {.ip = "192.0.2.1"}), Completion::later);
  post_->deliver();
  EXPECT_EQ(op_.decision.remaining, 0U);
  worker_->settle(op_, nullptr, now_);
}

// The op that asked is gone when the answer arrives.
TEST_F(LateAnswers, MayComeWhenNobodyIsThere) {
  use_one(OnFailure::closed);
  {
    Op op;
    ASSERT_EQ(decide(op, {}), Completion::later);
    worker_->abandon(op, now_);
  }
  post_->deliver();
  EXPECT_EQ(completed_, 0);
}

// The rule has decided by itself in the meantime, and its word stands.
TEST_F(LateAnswers, ChangeNothingThatIsDecided) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  worker_->give_up_waiting(op_, now_);
  ASSERT_EQ(op_.action, Action::reject);
  post_->deliver();
  EXPECT_EQ(completed_, 0);
  EXPECT_EQ(op_.action, Action::reject);
  EXPECT_EQ(op_.reason, Reason::store_failed);
  worker_->settle(op_, nullptr, now_);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  post_->deliver();
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(op_.decision.remaining, 0U) << "the first one was charged over there";
}

// What was charged over there is given back over there.
TEST_F(LateEngine, RefundsWhereItWasCharged) {
  use_one(OnFailure::closed);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  late_->answer_all();
  worker_->abandon(op_, now_);
  ASSERT_EQ(decide(op_, {}), Completion::later);
  late_->answer_all();
  EXPECT_EQ(op_.decision.remaining, 1U);
}

}  // namespace
}  // namespace sluice::engine
