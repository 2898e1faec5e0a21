// The awkward store itself: its script, and what it says about callers.
#include "support/awkward_store.h"

#include "contract/contract_fixture.h"
#include "store/local/local_authority.h"

#include <algorithm>

namespace sluice::contract {
namespace {

class AwkwardStoreTest : public ::testing::Test {
 protected:
  AwkwardStoreTest() {
    stores_->on_misuse = [this](const std::string& text) { misuses_.push_back(text); };
    store_ = make();
  }
  ~AwkwardStoreTest() override {
    store_.reset();
    EXPECT_EQ(misuses_.size(), expected_misuses_) << ::testing::PrintToString(misuses_);
  }

  std::unique_ptr<testing::AwkwardStore> make() {
    auto store = stores_->for_worker(1);
    return std::unique_ptr<testing::AwkwardStore>{
        static_cast<testing::AwkwardStore*>(store.release())};
  }
  static std::unique_ptr<store::LocalStore> new_table() {
    return store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, at(kStart))
        .value();
  }
  Check check(OnFailure on_failure, const std::string& name, std::uint64_t amount = 4) {
    const Limit limit{.algorithm = Algorithm::fixed_window, .amount = amount, .period = 1h};
    const Sharing terms{.mode = Mode::exact, .on_failure = on_failure};
    return {.key = KeyDigest{{}}.add(1, name).finish(),
            .limit = stores_->limits().use(limit, terms, now_).value()};
  }
  void ask(Request& request, std::initializer_list<std::initializer_list<Check>> groups) {
    request.of(groups);
    request.call.completed = [](Call& call) noexcept {
      ++static_cast<Request*>(call.owner)->completed;
    };
    request.completed = 0;
    request.completion = store_->decide_all(request.call, now_);
  }
  void expect_misuse(const std::string& part) {
    ++expected_misuses_;
    ASSERT_EQ(misuses_.size(), expected_misuses_) << ::testing::PrintToString(misuses_);
    EXPECT_NE(misuses_.back().find(part), std::string::npos) << misuses_.back();
  }

  Now now_ = at(kStart);
  std::vector<std::string> misuses_;
  std::size_t expected_misuses_ = 0;
  std::unique_ptr<store::LocalStore> local_ = new_table();
  std::unique_ptr<store::LocalStore> shared_ = new_table();
  store::LocalStores local_stores_{*local_};
  store::LocalStores shared_stores_{*shared_};
  std::unique_ptr<testing::AwkwardStores> stores_ =
      std::make_unique<testing::AwkwardStores>(local_stores_, shared_stores_);
  std::unique_ptr<testing::AwkwardStore> store_;
};

// ---- the script ---------------------------------------------------------------------------------

TEST_F(AwkwardStoreTest, AnswersGroupsInTheOrderOfTheScript) {
  const Check a = check(OnFailure::closed, "a");
  const Check b = check(OnFailure::closed, "b");
  Request first;
  Request second;
  ask(first, {{a}, {b}});
  ask(second, {{a}, {b}});
  EXPECT_EQ(store_->in_flight(), 2U);
  store_->answer(1, 1, now_);
  store_->answer(0, 0, now_);
  EXPECT_EQ(first.completed + second.completed, 0);
  store_->answer(1, 0, now_);
  EXPECT_EQ(second.completed, 1);
  EXPECT_TRUE(store_->is_waited_for(0));
  store_->arrive(0, 1, now_);
  EXPECT_EQ(first.completed, 0);
  store_->reply(0, 1, now_);
  EXPECT_EQ(first.completed, 1);
  EXPECT_EQ(first.decision(0).remaining, 3U);
  EXPECT_EQ(first.decision(1).remaining, 2U) << "decided after the second call's";
  EXPECT_EQ(second.decision(0).remaining, 2U);
}

TEST_F(AwkwardStoreTest, FailsGroupsByThemselves) {
  const Check open = check(OnFailure::open, "a");
  const Check share = check(OnFailure::share, "b");
  Request request;
  ask(request, {{open}, {share}});
  store_->fail(0, 0, now_);
  store_->answer(0, 1, now_);
  EXPECT_EQ(request.completed, 1);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::open);
  EXPECT_EQ(request.call.groups[1].source, Source::exact);
  EXPECT_EQ(store_->counts().late, 1U);
}

TEST_F(AwkwardStoreTest, HasAShareOfEachLimit) {
  const Check one = check(OnFailure::share, "a", 4);
  store_->set_reachable(false);
  int admitted = 0;
  for (int i = 0; i < 4; ++i) {
    Request request;
    ask(request, {{one}});
    EXPECT_EQ(request.completion, Completion::now);
    EXPECT_EQ(request.call.groups[0].source, Source::share);
    EXPECT_EQ(request.decision().limit, 2U);
    admitted += request.call.admitted ? 1 : 0;
  }
  EXPECT_EQ(admitted, 2);
}

TEST_F(AwkwardStoreTest, FollowsOnFailureUntilTheSecretIsKnown) {
  stores_->awkward_limits().know_shared_secret(false);
  EXPECT_FALSE(stores_->limits().shared_secret());
  Request request;
  ask(request, {{check(OnFailure::closed, "a")}});
  EXPECT_EQ(request.completion, Completion::now);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::closed);
}

TEST_F(AwkwardStoreTest, MayRejectBeforeAllGroupsAreDecided) {
  const Check full = check(OnFailure::closed, "full", 1);
  const Check free = check(OnFailure::closed, "free");
  store_->answer_at_once(true);
  Request taken;
  ask(taken, {{full}});
  ASSERT_EQ(taken.completion, Completion::now);
  store_->answer_at_once(false);
  store_->reject_early(true);
  Request request;
  ask(request, {{free}, {full}});
  store_->arrive(0, 0, now_);
  store_->answer(0, 1, now_);
  EXPECT_EQ(request.completed, 1);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::not_asked);
  store_->reply(0, 0, now_);
  Request peek;
  ask(peek, {{free}});
  store_->answer_all(now_);
  EXPECT_EQ(peek.decision().remaining, 3U) << "the late reply was given back";
}

TEST_F(AwkwardStoreTest, LetsTimePassForCallersWithoutALoop) {
  Request request;
  ask(request, {{check(OnFailure::open, "a")}});
  int turns = 0;
  while (request.completed == 0 && ++turns < 10) store_->wait();
  EXPECT_EQ(request.completed, 1);
  EXPECT_EQ(request.call.groups[0].verdict, GroupVerdict::open);
}

// One seed, one course of events.
TEST_F(AwkwardStoreTest, RepeatsASeed) {
  const Check one = check(OnFailure::share, "a", 100);
  const auto course = [&](std::uint64_t seed) {
    std::string text;
    store_ = make();
    store_->be_random(seed);
    const MonoTime began = now_.mono;
    for (int i = 0; i < 50; ++i) {
      Request request;
      ask(request, {{one}});
      while (request.completion == Completion::later && request.completed == 0) {
        now_.mono = std::max(now_.mono, store_->wake_at());
        store_->advance(now_);
      }
      text += std::string{to_string(request.call.groups[0].source)} + " " +
              std::to_string((now_.mono - began).count()) + "\n";
    }
    now_.mono += 48h;  // until nothing is used
    return text;
  };
  const std::string first = course(7);
  EXPECT_EQ(course(7), first);
  EXPECT_NE(course(8), first);
  EXPECT_NE(first.find("exact"), std::string::npos);
  EXPECT_NE(first.find("share"), std::string::npos) << "some are lost";
}

TEST_F(AwkwardStoreTest, GivesNumbersThatOnlyItKnows) {
  const Check one = check(OnFailure::share, "a");
  EXPECT_TRUE(store::is_shared(one.limit));
  EXPECT_EQ(check(OnFailure::share, "b").limit, one.limit);
  EXPECT_NE(check(OnFailure::closed, "a").limit, one.limit) << "other terms";
  testing::AwkwardStores others{local_stores_, shared_stores_};
  const Limit limit{.algorithm = Algorithm::fixed_window, .amount = 4, .period = 1h};
  const Sharing terms{.mode = Mode::exact, .on_failure = OnFailure::share};
  EXPECT_NE(others.limits().use(limit, terms, now_).value(), one.limit);
}

// ---- misuse -------------------------------------------------------------------------------------

TEST_F(AwkwardStoreTest, NoticesCallsThatAreReusedInFlight) {
  const Check one = check(OnFailure::closed, "a");
  Request request;
  ask(request, {{one}});
  ask(request, {{one}});
  expect_misuse("reused");
  store_->answer_all(now_);
}

TEST_F(AwkwardStoreTest, NoticesCallsThatAreChangedInFlight) {
  Request request;
  ask(request, {{check(OnFailure::closed, "a")}});
  request.call.checks[0].key.low ^= 1;
  store_->answer_all(now_);
  expect_misuse("changed");
}

TEST_F(AwkwardStoreTest, NoticesCallsThatAreCancelledAfterwards) {
  Request request;
  ask(request, {{check(OnFailure::closed, "a")}});
  store_->answer_all(now_);
  store_->cancel(request.call, now_);
  expect_misuse("not in flight");
  ask(request, {{check(OnFailure::closed, "a")}});
  store_->cancel(request.call, now_);
  store_->cancel(request.call, now_);
  expect_misuse("not in flight");
}

TEST_F(AwkwardStoreTest, NoticesCallsThatAreLeftAlone) {
  Request request;
  ask(request, {{check(OnFailure::closed, "a")}});
  store_.reset();
  expect_misuse("in flight when the store was destroyed");
  store_ = make();
}

TEST_F(AwkwardStoreTest, NoticesNumbersThatItDidNotGiveOut) {
  const Check one = check(OnFailure::closed, "a");
  for (const store::LimitNumber number :
       {store::LimitNumber{one.limit + 1}, store::LimitNumber{store::kLimitNumbers + 1},
        store::LimitNumber{0}, store::LimitNumber{77}}) {
    Check wrong = one;
    wrong.limit = number;
    Request request;
    ask(request, {{wrong}});
    expect_misuse("not in use");
    store_->charge(wrong, now_);
    expect_misuse("not in use");
  }
  stores_->limits().stop_using(one.limit);
  Request request;
  ask(request, {{one}});
  expect_misuse("not in use");
  stores_->limits().stop_using(one.limit);
  expect_misuse("had not begun");
}

TEST_F(AwkwardStoreTest, NoticesGroupsThatAreNotTheChecks) {
  const Check one = check(OnFailure::closed, "a");
  const Check other = check(OnFailure::open, "b");
  Request request;
  ask(request, {{one, other}});
  expect_misuse("mix");
  request.of({{one}, {other}});
  request.call.groups[1].first = 0;
  (void)store_->decide_all(request.call, now_);
  expect_misuse("groups");
  request.of({{one}});
  request.call.count = 2;
  (void)store_->decide_all(request.call, now_);
  expect_misuse("groups");
}

TEST_F(AwkwardStoreTest, NoticesHoldingsThatAreUsedTwice) {
  const Check one = check(OnFailure::closed, "a");
  Request request;
  ask(request, {{one}});
  store_->answer_all(now_);
  Holding holding = request.holding();
  Holding copy = holding;
  store_->refund(one, holding, now_);
  store_->refund(one, holding, now_);
  expect_misuse("void");
  store_->correct(one, copy, 2, now_);
  expect_misuse("over");
  store_->advance(now_);
  store_->renew(one, copy, now_);
  expect_misuse("over");
  store_->keep(holding);
  expect_misuse("void");
}

TEST_F(AwkwardStoreTest, NoticesHoldingsUnderAnotherCheck) {
  const Check one = check(OnFailure::closed, "a");
  Request request;
  ask(request, {{one}});
  store_->answer_all(now_);
  Holding holding = request.holding();
  store_->refund(check(OnFailure::closed, "b"), holding, now_);
  expect_misuse("another check");
  Holding foreign = store::holding({.limit = 1, .receipt = {.mark = 5, .cost = 1}}, 1);
  store_->refund(one, foreign, now_);
  expect_misuse("not given out");
}

TEST_F(AwkwardStoreTest, NoticesTicketsThatAreLeftAlone) {
  const Check one = check(OnFailure::closed, "a");
  Request request;
  ask(request, {{one}});
  store_->answer_all(now_);
  Holding holding = request.holding();
  store_->correct(one, holding, 2, now_);
  EXPECT_EQ(store_->tickets(), 1U);
  store_.reset();
  expect_misuse("neither refunded nor kept");
  store_ = make();

  ask(request, {{one}});
  store_->answer_all(now_);
  holding = request.holding();
  store_->correct(one, holding, 2, now_);
  store_->keep(holding);
  EXPECT_EQ(store_->tickets(), 0U);
}

TEST_F(AwkwardStoreTest, NoticesWaitingForNothing) {
  store_->wait();
  expect_misuse("waiting");
}

TEST_F(AwkwardStoreTest, NoticesThatNobodyWouldBeTold) {
  Request request;
  request.of({{check(OnFailure::closed, "a")}});
  (void)store_->decide_all(request.call, now_);
  expect_misuse("complete");
  store_->answer_all(now_);
}

}  // namespace
}  // namespace sluice::contract
