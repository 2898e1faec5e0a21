#include "base/random.h"

#include "support/property.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

namespace sluice {
namespace {

using sluice::testing::check_property;

TEST(Random, SeedRepeatsExactly) {
  check_property(200, [](std::uint64_t seed) {
    Random a{seed};
    Random b{seed};
    for (int i = 0; i < 100; ++i) RC_ASSERT(a() == b());
  });
}

// The generator must stay what it is: recorded runs name only their seed.
TEST(Random, FirstNumbersOfSeedZeroNeverChange) {
  Random random{0};
  EXPECT_EQ(random(), 0x99ec5f36cb75f2b4ULL);
  EXPECT_EQ(random(), 0xbf6e1f784956452aULL);
}

TEST(Random, SeedsThatDifferInOneBitGiveDifferentNumbers) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    EXPECT_NE(Random{0}(), Random{std::uint64_t{1} << bit}()) << bit;
  }
}

TEST(Random, BelowStaysBelow) {
  check_property(2000, [] {
    Random random{*rc::gen::arbitrary<std::uint64_t>()};
    const auto bound =
        *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(1, 100),
                        rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(1, ~std::uint64_t{0})),
                        rc::gen::just(~std::uint64_t{0}));
    for (int i = 0; i < 20; ++i) RC_ASSERT(random.below(bound) < bound);
  });
}

// Each of ten numbers comes up about as often as the others: 5 sigma around 10000.
TEST(Random, BelowIsEven) {
  Random random{42};
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) ++counts[random.below(10)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 475);
}

}  // namespace
}  // namespace sluice
