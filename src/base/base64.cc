#include "base/base64.h"

#include <array>
#include <cstdint>

namespace sluice {
namespace {

constexpr std::string_view kUrlLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kMailLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t kInvalid = 0xff;
using Values = std::array<std::uint8_t, 256>;

constexpr Values values_of(std::string_view letters) noexcept {
  Values values{};
  values.fill(kInvalid);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    values[static_cast<unsigned char>(letters[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}

constexpr Values kUrlValues = values_of(kUrlLetters);
constexpr Values kMailValues = values_of(kMailLetters);

// Without padding.
std::optional<std::string_view> decode(std::string_view text, const Values& values,
                                       std::span<char> out) noexcept {
  const std::size_t size = text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1);
  if (text.size() % 4 == 1 || size > out.size()) return std::nullopt;
  std::uint32_t bits = 0;
  unsigned pending = 0;
  std::size_t written = 0;
  for (const char c : text) {
    const std::uint8_t value = values[static_cast<unsigned char>(c)];
    if (value == kInvalid) return std::nullopt;
    bits = bits << 6U | value;
    pending += 6;
    if (pending >= 8) {
      pending -= 8;
      out[written++] = static_cast<char>(bits >> pending & 0xffU);
    }
  }
  if ((bits & ((1U << pending) - 1)) != 0) return std::nullopt;
  return std::string_view{out.data(), written};
}

std::string_view encode(std::string_view bytes, std::string_view letters,
                        std::span<char> out) noexcept {
  if (base64_encoded_size(bytes.size()) > out.size()) return {};
  std::uint32_t bits = 0;
  unsigned pending = 0;
  std::size_t written = 0;
  for (const char c : bytes) {
    bits = bits << 8U | static_cast<unsigned char>(c);
    for (pending += 8; pending >= 6; pending -= 6) {
      out[written++] = letters[bits >> (pending - 6) & 63U];
    }
  }
  if (pending > 0) out[written++] = letters[bits << (6 - pending) & 63U];
  return {out.data(), written};
}

}  // namespace

std::optional<std::string_view> decode_base64url(std::string_view text,
                                                 std::span<char> out) noexcept {
  return decode(text, kUrlValues, out);
}

std::optional<std::string_view> decode_base64(std::string_view text, std::span<char> out) noexcept {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return decode(text, kMailValues, out);
}

std::string_view encode_base64url(std::string_view bytes, std::span<char> out) noexcept {
  return encode(bytes, kUrlLetters, out);
}

std::string_view encode_base64_unpadded(std::string_view bytes, std::span<char> out) noexcept {
  return encode(bytes, kMailLetters, out);
}

}  // namespace sluice
