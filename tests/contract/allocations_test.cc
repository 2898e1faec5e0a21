// No decision allocates, once as many calls were in flight before: whether it completes at once or
// later, in time or not, or is cancelled.
//
// A program of its own, because it replaces the global operator new.
#include "contract/contract_fixture.h"
#include "support/counted_new.h"

namespace sluice::contract {
namespace {

using testing::allocations;

class Allocations : public ContractFixture {
 protected:
  // Only what the store does itself counts: deliver() is of the tests.
  template <class Do>
  void counting(Do&& what) {
    const std::uint64_t before = allocations();
    what();
    counted_ += allocations() - before;
  }
  static void completed(Call& /*call*/) noexcept {}

  void everything(std::uint64_t round) {
    std::array<Call, 4>& calls = *calls_;
    for (Call& call : calls) {
      call.clear();
      call.completed = completed;
      call.checks[call.count++] = shared_[0];
      call.group_from(0);
      call.checks[call.count++] = shared_[1];
      call.checks[call.count++] = shared_[2];
      call.group_from(1);
      call.checks[call.count++] = local_;
      call.group_from(3);
      call.kind = &call == &calls[3] ? Call::Kind::independent : Call::Kind::all_or_nothing;
    }
    counting([&] {
      for (Call& call : calls) later_[index_of(call)] = store_->decide_all(call, now_);
    });
    if (later_[2] == Completion::later) counting([&] { store_->cancel(calls[2], now_); });
    if (round % 3 == 0) world_->arrive(now_);
    if (round % 3 == 1) world_->deliver(now_);
    pass(world_->budget() + 1ms);
    counting([&] { store_->advance(now_); });
    counting([&] {
      for (const Call& call : calls) after(call);
      store_->charge(shared_[0], now_);
      (void)store_->wake_at();
      store_->advance(now_);
    });
    world_->deliver(now_);
    pass(2h);
  }

  static std::size_t index_of_in(const Call& call, const std::array<Call, 4>& calls) {
    return static_cast<std::size_t>(&call - calls.data());
  }
  std::size_t index_of(const Call& call) const { return index_of_in(call, *calls_); }

  void after(const Call& call) {
    if (&call == &(*calls_)[2] && later_[2] == Completion::later) return;
    for (std::size_t i = 0; i < call.count; ++i) {
      Holding holding = store::holding(call.answers[i].charge, call.checks[i].cost);
      store_->correct(call.checks[i], holding, 3, now_);
      store_->renew(call.checks[i], holding, now_);
      if (i % 2 == 0) store_->refund(call.checks[i], holding, now_);
      if (i % 2 == 1) store_->keep(holding);
    }
  }

  std::array<Check, 3> shared_{
      check(use(window(100), OnFailure::share), "a"),
      check(use({.algorithm = Algorithm::token_bucket, .amount = 100, .period = 1h},
                OnFailure::share),
            "b"),
      check(
          use({.algorithm = Algorithm::sliding_log, .amount = 100, .period = 1h}, OnFailure::share),
          "c")};
  Check local_ = check(use_local(window(90)), "d");
  std::unique_ptr<std::array<Call, 4>> calls_ = std::make_unique<std::array<Call, 4>>();
  std::array<Completion, 4> later_{};
  std::uint64_t counted_ = 0;
};

TEST_P(Allocations, AreNoneOnceAStoreIsWarm) {
  for (std::uint64_t round = 0; round < 12; ++round) everything(round);
  counted_ = 0;
  for (std::uint64_t round = 0; round < 30; ++round) everything(round);
  EXPECT_EQ(counted_, 0U);
}

TEST_P(Allocations, AreSeen) {
  counting([] { ::operator delete(::operator new(64)); });
  EXPECT_EQ(counted_, 1U);
}

// The shared store has a test of its own beside Redis, src/store/redis/allocations_test.cc.
std::vector<Subject> frugal_subjects() {
  std::vector<Subject> subjects = contract::subjects();
  std::erase_if(subjects,
                [](const Subject& one) { return !one.make(1, at(kStart))->shows_allocations(); });
  return subjects;
}

INSTANTIATE_TEST_SUITE_P(Contract, Allocations, ::testing::ValuesIn(frugal_subjects()),
                         subject_name());

}  // namespace
}  // namespace sluice::contract
