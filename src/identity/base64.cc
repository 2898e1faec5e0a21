#include "identity/base64.h"

#include <array>
#include <cstdint>

namespace sluice::identity {
namespace {

constexpr std::uint8_t kInvalid = 0xff;
using Alphabet = std::array<std::uint8_t, 256>;

constexpr Alphabet make_alphabet(char next_to_last, char last) noexcept {
  Alphabet values{};
  values.fill(kInvalid);
  std::uint8_t value = 0;
  for (char c = 'A'; c <= 'Z'; ++c) values[static_cast<unsigned char>(c)] = value++;
  for (char c = 'a'; c <= 'z'; ++c) values[static_cast<unsigned char>(c)] = value++;
  for (char c = '0'; c <= '9'; ++c) values[static_cast<unsigned char>(c)] = value++;
  values[static_cast<unsigned char>(next_to_last)] = 62;
  values[static_cast<unsigned char>(last)] = 63;
  return values;
}

constexpr Alphabet kUrl = make_alphabet('-', '_');
constexpr Alphabet kMail = make_alphabet('+', '/');

// Without padding.
std::optional<std::string_view> decode(std::string_view text, const Alphabet& alphabet,
                                       std::span<char> out) noexcept {
  const std::size_t size = text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1);
  if (text.size() % 4 == 1 || size > out.size()) return std::nullopt;
  std::uint32_t bits = 0;
  unsigned pending = 0;
  std::size_t written = 0;
  for (const char c : text) {
    const std::uint8_t value = alphabet[static_cast<unsigned char>(c)];
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

}  // namespace

std::optional<std::string_view> decode_base64url(std::string_view text,
                                                 std::span<char> out) noexcept {
  return decode(text, kUrl, out);
}

std::optional<std::string_view> decode_base64(std::string_view text, std::span<char> out) noexcept {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return decode(text, kMail, out);
}

}  // namespace sluice::identity
