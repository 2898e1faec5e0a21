// Ids of requests for X-Request-Id: 32 hexadecimal digits, of which the first half is the time and
// the second a number.
//
// The number is a keyed pseudo-random function of a count. An observer of any number of ids cannot
// predict the next one, nor tell how many requests came in between. One thread: each worker has its
// own, with its own secret.
#pragma once

#include "base/digest.h"
#include "base/hex.h"
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
    const auto instant = static_cast<std::uint64_t>(now.time_since_epoch().count());
    put_hex(put_hex(id.data(), instant), number);
  }

 private:
  static constexpr std::uint8_t kKind = 1;

  KeyHasher hasher_;
  std::uint64_t count_ = 0;
};

}  // namespace sluice::gateway
