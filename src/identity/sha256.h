// SHA-256 and HMAC-SHA-256, many times over without an allocation.
//
// OpenSSL's one-shot functions look the algorithm up and allocate on every call. One context per
// worker, begun anew for every digest, does neither. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

struct evp_md_ctx_st;

namespace sluice::identity {

using Sha256Bytes = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256();  // ends the process if OpenSSL has no SHA-256, which no build lacks

  // Of the two texts in a row.
  [[nodiscard]] Sha256Bytes operator()(std::string_view first,
                                       std::string_view second = {}) noexcept;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// A key prepared for HMAC (RFC 2104). Immutable.
class HmacSecret {
 public:
  HmacSecret(std::string_view secret, Sha256& sha);

  [[nodiscard]] Sha256Bytes operator()(std::string_view message, Sha256& sha) const noexcept;

 private:
  static constexpr std::size_t kBlock = 64;
  std::array<char, kBlock> inner_{};
  std::array<char, kBlock> outer_{};
};

// Takes the same time wherever they differ.
[[nodiscard]] bool equal_in_constant_time(const Sha256Bytes& a, const Sha256Bytes& b) noexcept;

}  // namespace sluice::identity
