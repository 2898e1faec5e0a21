// The table against an obvious store, a map of cells: the same answers as long as there is room.

#include "base/digest.h"
#include "store/local/local_store.h"
#include "support/property.h"
#include "support/traffic.h"
#include <sluice/core/cell.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using core::Cell;
using core::CompiledLimit;
using testing::at;
using testing::between;
using testing::check_property;
using testing::compiled;
using testing::scale_of;

std::unique_ptr<LocalStore> open_store(std::size_t memory = 2 * Mapping::kMemoryMin) {
  auto store = LocalStore::open({.mapping = {.memory = memory}}, at(0));
  EXPECT_TRUE(store) << store.error().text();
  return *std::move(store);
}

Digest digest_of(const LocalStore& store, std::uint64_t key) {
  return KeyDigest{store.secret()}.add(1, std::to_string(key)).finish();
}

// One charge in both, for refunding it in both.
struct Twin {
  std::uint64_t key = 0;
  Charge charge;
  Receipt receipt;
};

// How much of a charge to refund. A bucket in the table gives back the newest charge, as a whole,
// more exactly than a cell does, which has to expect further parts of it; so parts are compared
// here, and refund_test.cc holds whole ones against the bound.
Cost refund_of(const Limit& limit, Receipt receipt) {
  const Cost most = core::is_bucket(limit.algorithm) ? receipt.cost - 1 : receipt.cost;
  return static_cast<Cost>(*between(0, most));
}

// Random requests, peeks, forced charges and refunds of a few keys.
void expect_same_answers(const Limit& limit) {
  const std::unique_ptr<LocalStore> opened = open_store();
  LocalStore& store = *opened;
  std::int64_t now = *testing::starts(std::max<std::int64_t>(limit.period.count(), 1));
  const LimitNumber number = store.use(limit, at(now)).value();
  const CompiledLimit numbers = compiled(limit);
  std::map<std::uint64_t, Cell> cells;
  std::vector<Twin> twins;
  testing::Scale scale = scale_of(limit);
  scale.longest_gap = std::min<std::int64_t>(scale.longest_gap, testing::kYear / 20);
  for (const testing::Beat& beat : *testing::traffic(scale, 60)) {
    now = testing::later(now, beat.gap);
    const std::uint64_t key = *between(0, 2);
    const Check check{.key = digest_of(store, key), .limit = number, .cost = beat.cost};
    const std::uint64_t action = *between(0, 9);
    if (action == 0 && !twins.empty()) {
      const std::size_t chosen = *between(0, twins.size() - 1);
      const Twin twin = twins[chosen];
      twins.erase(twins.begin() + static_cast<std::ptrdiff_t>(chosen));
      const Cost amount = refund_of(limit, twin.receipt);
      Check of = check;
      of.key = digest_of(store, twin.key);
      of.cost = amount;
      cells[twin.key].refund(numbers, at(now), twin.receipt, amount);
      store.refund(of, twin.charge, at(now));
    } else {
      const core::Outcome expected = action == 1 ? cells[key].charge(numbers, at(now), beat.cost)
                                                 : cells[key].decide(numbers, at(now), beat.cost);
      const Answer answer =
          action == 1 ? store.force(check, at(now)) : store.decide(check, at(now));
      RC_ASSERT(answer.decision == expected.decision);
      RC_ASSERT(answer.charge.receipt.cost == expected.receipt.cost);
      if (expected.receipt.cost > 0) {
        twins.push_back({.key = key, .charge = answer.charge, .receipt = expected.receipt});
      }
    }
    for (std::uint64_t other = 0; other < 3; ++other) {
      const Check peek{.key = digest_of(store, other), .limit = number, .cost = 0};
      RC_ASSERT(store.decide(peek, at(now)).decision == testing::peek(cells[other], numbers, now));
    }
  }
}

class EveryAlgorithm : public ::testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithm, AnswersAsAMapOfCellsDoes) {
  check_property(400, [] { expect_same_answers(*testing::limits_of(GetParam())); });
}

INSTANTIATE_TEST_SUITE_P(Model, EveryAlgorithm, ::testing::ValuesIn(kAlgorithms),
                         [](const auto& subject) { return std::string{to_string(subject.param)}; });

TEST(Model, IntervalBucketsAnswerAsCellsDo) {
  check_property(400, [] { expect_same_answers(*testing::interval_limits()); });
}

}  // namespace
}  // namespace sluice::store
