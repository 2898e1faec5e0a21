// Base64, strictly: one text for one sequence of bytes. Pure; no allocation.
//
// A decoder that forgives lets two tokens with different texts mean the same, and then what is
// known about one is not known about the other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sluice {

[[nodiscard]] constexpr std::size_t base64_decoded_max(std::size_t text_size) noexcept {
  return text_size / 4 * 3 + 2;
}

// Without padding.
[[nodiscard]] constexpr std::size_t base64_encoded_size(std::size_t bytes) noexcept {
  return bytes / 3 * 4 + (bytes % 3 == 0 ? 0 : bytes % 3 + 1);
}

// The alphabet of URLs, without padding (RFC 7515). Nothing for other characters, for bits that
// must be zero and are not, and for what does not fit.
[[nodiscard]] std::optional<std::string_view> decode_base64url(std::string_view text,
                                                               std::span<char> out) noexcept;

// The alphabet of mail, with padding (RFC 7617 wants it for Basic credentials).
[[nodiscard]] std::optional<std::string_view> decode_base64(std::string_view text,
                                                            std::span<char> out) noexcept;

// Both without padding. Empty for what does not fit; base64_encoded_size() always does.
[[nodiscard]] std::string_view encode_base64url(std::string_view bytes,
                                                std::span<char> out) noexcept;
[[nodiscard]] std::string_view encode_base64_unpadded(std::string_view bytes,
                                                      std::span<char> out) noexcept;

}  // namespace sluice
