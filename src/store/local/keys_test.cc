// How many keys there are, for those who look after a server.

#include "base/digest.h"
#include "store/local/local_store.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

constexpr std::int64_t kBegin = Nanos{1000h}.count();

void charge(LocalStore& store, std::uint64_t keys) {
  const LimitNumber limit = store.use({.amount = 5, .period = 1h}, at(kBegin)).value();
  for (std::uint64_t i = 0; i < keys; ++i) {
    const Digest key = KeyDigest{store.secret()}.add(1, std::to_string(i)).finish();
    (void)store.decide({.key = key, .limit = limit}, at(kBegin));
  }
}

TEST(Keys, AreCountedExactlyWhileTheyAreFew) {
  const auto store = LocalStore::open({.mapping = {.memory = 4U << 20U}}, at(kBegin)).value();
  EXPECT_EQ(store->keys_approx(at(kBegin)), 0U);
  charge(*store, 1000);
  EXPECT_EQ(store->keys_approx(at(kBegin)), 1000U);
  EXPECT_EQ(store->keys_approx(at(kBegin + Nanos{2h}.count())), 0U) << "nobody owes any more";
}

TEST(Keys, AreEstimatedWhereTheyAreMany) {
  const auto store = LocalStore::open({.mapping = {.memory = 64U << 20U}}, at(kBegin)).value();
  charge(*store, 1'000'000);
  const auto about = static_cast<double>(store->keys_approx(at(kBegin)));
  EXPECT_NEAR(about, 1e6, 1e4) << "four standard deviations";
}

}  // namespace
}  // namespace sluice::store
