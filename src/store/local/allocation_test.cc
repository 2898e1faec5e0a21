// No decision allocates: whatever the algorithm, once a thread has been here before.
//
// A program of its own, because it replaces the global operator new.

#include "store/local/local_store.h"
#include "store/local/table_fixture.h"
#include "support/counted_new.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace sluice::store {
namespace {

using testing::allocations;
using testing::at;
using testing::Subject;

constexpr std::int64_t kBegin = std::int64_t{3'600'000'000'000} * 1000;

class Allocation : public ::testing::TestWithParam<Subject> {
 protected:
  // Everything a front end calls, on keys from `first` on: new ones, known ones, refused ones.
  void call_everything(std::uint64_t first, std::int64_t begin) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const Now now = at(begin + static_cast<std::int64_t>(i) * 10'000'000);
      const Check check{.key = numbered_key(first + i / 10), .limit = number_};
      const Answer answer = store_->decide(check, now);
      const Answer forced = store_->force(check, now);
      (void)store_->renew(check, answer.charge, now);
      if (i % 3 != 0) store_->refund(check, answer.charge, now);
      if (i % 5 == 0) store_->refund(check, forced.charge, now);

      std::array<Check, 20> batch;
      for (std::size_t j = 0; j < batch.size(); ++j) {
        batch[j] = {.key = numbered_key(first + 100 + j), .limit = number_};
      }
      std::array<Answer, 20> answers;
      store_->decide_batch(batch, now, answers);
      (void)store_->decide_all(std::span{batch}.first(3), now, std::span{answers}.first(3));
      (void)store_->read(check.key, now);
      (void)store_->forget(batch[7].key);
    }
  }

  std::unique_ptr<LocalStore> store_ =
      *LocalStore::open({.mapping = {.memory = 8 * Mapping::kMemoryMin}}, at(kBegin));
  LimitNumber number_ = store_->use(GetParam().limit, at(kBegin)).value();
};

TEST_P(Allocation, NoDecisionAllocates) {
  call_everything(1, kBegin);  // what a thread needs, it gets once
  const std::uint64_t before = allocations();
  call_everything(1000, kBegin + 3'600'000'000'000);
  EXPECT_EQ(allocations() - before, 0U);
}

TEST(AllocationCount, SeesAnAllocation) {
  const std::uint64_t before = allocations();
  ::operator delete(::operator new(64));
  EXPECT_EQ(allocations() - before, 1U);
}

INSTANTIATE_TEST_SUITE_P(Subjects, Allocation, ::testing::ValuesIn(testing::all_subjects()),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace sluice::store
