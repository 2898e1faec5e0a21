#include "support/models.h"
#include "support/property.h"
#include <sluice/int128.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace sluice {
namespace {

using sluice::testing::BigInt;
using sluice::testing::Rational;

// The rounding directions are what their names say, for every sign and size.
TEST(Int128, DivisionsRoundAsNamed) {
  sluice::testing::check_property(3000, [] {
    const auto any = rc::gen::resize(100, rc::gen::arbitrary<std::int64_t>());
    const auto positive = rc::gen::resize(
        100, rc::gen::inRange<std::int64_t>(1, std::numeric_limits<std::int64_t>::max()));
    const std::int64_t a = *any;
    const std::int64_t b = *positive;
    const std::int64_t c = *positive;
    RC_ASSERT(floor_div(a, b) == sluice::testing::floor_of(Rational{a} / b).get_si());
    RC_ASSERT(ceil_div(c, b) == sluice::testing::ceil_of(Rational{c} / b).get_si());
    const std::int64_t d = c % 1000 + 1;
    const std::int64_t divisor = *rc::gen::inRange<std::int64_t>(d, d + 1000);  // so that it fits
    const Rational product = Rational{b} * d / divisor;
    RC_ASSERT(BigInt{mul_div_floor(b, d, divisor)} == sluice::testing::floor_of(product));
    RC_ASSERT(BigInt{mul_div_ceil(b, d, divisor)} == sluice::testing::ceil_of(product));
  });
}

}  // namespace
}  // namespace sluice
