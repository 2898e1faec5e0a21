// 128-bit products and divisions with an explicit rounding direction.
#pragma once

#include <cstdint>

namespace sluice {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// Rounded towards minus infinity; divisor > 0.
template <class T>
[[nodiscard]] constexpr T floor_div(T dividend, T divisor) noexcept {
  const T quotient = dividend / divisor;
  return (dividend % divisor < 0) ? quotient - 1 : quotient;
}

// Rounded up; dividend >= 0, divisor > 0.
template <class T>
[[nodiscard]] constexpr T ceil_div(T dividend, T divisor) noexcept {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

// floor(a * b / divisor) without overflow in between; all non-negative, divisor > 0. The caller
// knows that the result fits.
[[nodiscard]] constexpr std::int64_t mul_div_floor(std::int64_t a, std::int64_t b,
                                                   std::int64_t divisor) noexcept {
  return static_cast<std::int64_t>(Int128{a} * b / divisor);
}

[[nodiscard]] constexpr std::int64_t mul_div_ceil(std::int64_t a, std::int64_t b,
                                                  std::int64_t divisor) noexcept {
  return static_cast<std::int64_t>(ceil_div(Int128{a} * b, Int128{divisor}));
}

}  // namespace sluice
