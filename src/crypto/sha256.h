// SHA-256 and HMAC-SHA-256 without an allocation. Pure.
//
// The functions that OpenSSL 3 recommends allocate whenever a digest begins, also in a context that
// is used again (measured with 3.0). The older ones that it deprecates do the same work on the
// stack; they are used in one file, and could be replaced there.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::crypto {

using Sha256Bytes = std::array<std::uint8_t, 32>;

// Of the two texts in a row.
[[nodiscard]] Sha256Bytes sha256(std::string_view first, std::string_view second = {}) noexcept;

// A key prepared for HMAC (RFC 2104). Immutable, so threads may share it.
class HmacSecret {
 public:
  explicit HmacSecret(std::string_view secret) noexcept;

  [[nodiscard]] Sha256Bytes operator()(std::string_view message) const noexcept;

 private:
  static constexpr std::size_t kBlock = 64;
  std::array<char, kBlock> inner_{};
  std::array<char, kBlock> outer_{};
};

// Takes the same time wherever they differ.
[[nodiscard]] bool equal_in_constant_time(const Sha256Bytes& a, const Sha256Bytes& b) noexcept;

}  // namespace sluice::crypto
