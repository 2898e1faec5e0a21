// A method as rules compare it: in upper case.
//
// HTTP tells POST from post, but some servers do not, and a limit on the one must hold for the
// other. Pure; writes only to the caller's scratch.
#pragma once

#include "base/byte_words.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::identity {

// A longer one stays as it is: no server knows such a method.
using MethodScratch = std::array<char, 64>;

[[nodiscard]] inline std::string_view upper_method(std::string_view method,
                                                   MethodScratch& scratch) noexcept {
  constexpr auto kIsLower = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool is_upper = method.size() < sizeof(std::uint64_t)
                            ? where_between(load_short(method.data(), method.size()), 'a', 'z') == 0
                            : std::ranges::none_of(method, kIsLower);
  if (is_upper || method.size() > scratch.size()) [[likely]]
    return method;
  std::ranges::transform(method, scratch.begin(), [kIsLower](char c) {
    return kIsLower(c) ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return {scratch.data(), method.size()};
}

}  // namespace sluice::identity
