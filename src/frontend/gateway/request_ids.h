// Names for requests, as X-Request-Id has them: 32 hexadecimal digits, of which the first half is
// the instant and the second a number.
//
// The number is a keyed pseudo-random function of a count. Whoever has seen any number of them
// cannot tell the next one, nor how many requests came in between. One thread: each worker has its
// own, under a secret of its own.
#pragma once

#include "base/digest.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace sluice::gateway {

class RequestIds {
 public:
  static constexpr std::size_t kBytes = 32;

  explicit RequestIds(DigestSecret secret) noexcept : hasher_(KeyDigest{secret}, kKind) {}

  void write_next(WallTime now, std::span<char, kBytes> id) noexcept {
    std::array<char, sizeof count_> count;
    ++count_;
    std::memcpy(count.data(), &count_, count.size());
    const std::uint64_t number = hasher_.low({count.data(), count.size()});
    char* at = id.data();
    for (const std::uint64_t word :
         {static_cast<std::uint64_t>(now.time_since_epoch().count()), number}) {
      for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[word >> shift & 15U];
    }
  }

 private:
  static constexpr std::uint8_t kKind = 1;

  KeyHasher hasher_;
  std::uint64_t count_ = 0;
};

}  // namespace sluice::gateway
