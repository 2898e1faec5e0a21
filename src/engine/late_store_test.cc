// Stores that answer late, never, or after the client has gone.
#include "engine/engine_fixture.h"
#include "engine/worker.h"
#include "support/store_behind.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  void cancel(Call& call) noexcept override { std::erase(waiting_, &call); }

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

 private:
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

  void use_one(OnFailure on_failure) {
    rules::Rule made = rule("a", {limit("2/1h")}, {per(rules::Per::Kind::ip)});
    made.on_failure = on_failure;
    auto snapshot = Snapshot::make({.rules = {made}}, *local_, now_);
    ASSERT_TRUE(snapshot);
    auto far = Snapshot::make({.rules = {made}}, *far_, now_);  // the same numbers over there
    ASSERT_TRUE(far);
    far_snapshot_ = *far;
    worker_->use(*snapshot);
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
