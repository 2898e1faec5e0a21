#include "base/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice {
namespace {

// SipHash reads words as little-endian.
std::uint64_t load_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

}  // namespace

// The constants spell the initialisation of SipHash; 0xee marks the variant with 128 bits of
// output.
SipHash13::SipHash13(DigestSecret secret) noexcept
    : state_{.v0 = secret.first ^ 0x736f6d6570736575ULL,
             .v1 = secret.second ^ 0x646f72616e646f6dULL ^ 0xee,
             .v2 = secret.first ^ 0x6c7967656e657261ULL,
             .v3 = secret.second ^ 0x7465646279746573ULL} {}

void SipHash13::round(State& s) noexcept {
  s.v0 += s.v1;
  s.v2 += s.v3;
  s.v1 = std::rotl(s.v1, 13) ^ s.v0;
  s.v3 = std::rotl(s.v3, 16) ^ s.v2;
  s.v0 = std::rotl(s.v0, 32);
  s.v2 += s.v1;
  s.v0 += s.v3;
  s.v1 = std::rotl(s.v1, 17) ^ s.v2;
  s.v3 = std::rotl(s.v3, 21) ^ s.v0;
  s.v2 = std::rotl(s.v2, 32);
}

void SipHash13::absorb(State& state, std::uint64_t word) noexcept {
  state.v3 ^= word;
  round(state);
  state.v0 ^= word;
}

void SipHash13::append(std::string_view bytes) noexcept {
  const std::size_t held = length_ % tail_.size();
  length_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(bytes.size(), tail_.size() - held);
    std::copy_n(bytes.begin(), taken, tail_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes.remove_prefix(taken);
    if (held + taken < tail_.size()) return;
    absorb(state_, load_word(tail_.data()));
  }
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
    absorb(state_, load_word(bytes.data()));
  }
  std::copy(bytes.begin(), bytes.end(), tail_.begin());
}

Digest SipHash13::finish() const noexcept {
  State state = state_;
  std::array<char, 8> last{};
  std::copy_n(tail_.begin(), length_ % tail_.size(), last.begin());
  absorb(state, load_word(last.data()) | std::uint64_t{length_ & 0xff} << 56U);

  const auto squeeze = [&state] {
    for (int i = 0; i < 3; ++i) round(state);
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
  };
  state.v2 ^= 0xee;
  const std::uint64_t low = squeeze();
  state.v1 ^= 0xdd;
  return {.low = low, .high = squeeze()};
}

KeyDigest& KeyDigest::add(std::uint8_t kind, std::string_view value) noexcept {
  std::array<char, 9> prefix{static_cast<char>(kind)};
  const std::uint64_t length = value.size();
  for (unsigned i = 0; i < 8; ++i) prefix[i + 1] = static_cast<char>(length >> (8 * i));
  hash_.append({prefix.data(), prefix.size()});
  hash_.append(value);
  return *this;
}

}  // namespace sluice
