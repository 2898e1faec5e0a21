#include "base/digest.h"

#include "base/digest_lanes.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace sluice {
namespace {

// Fewer are faster one after the other than in lanes.
constexpr std::size_t kFewestForLanes = 4;

// SipHash reads words as little-endian.
std::uint64_t load_half(const char* bytes) noexcept {
  std::uint32_t half = 0;
  std::memcpy(&half, bytes, sizeof half);
  if constexpr (std::endian::native == std::endian::big) half = __builtin_bswap32(half);
  return half;
}
std::uint64_t load_word(const char* bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// The same of at most seven bytes, the rest zero.
std::uint64_t load_short(const char* bytes, std::size_t size) noexcept {
  const auto byte = [bytes](std::size_t at) {
    return std::uint64_t{static_cast<unsigned char>(bytes[at])} << (8 * at);
  };
  if (size == 0) return 0;
  if (size < 4) return byte(0) | byte(size / 2) | byte(size - 1);
  return load_half(bytes) | load_half(bytes + size - 4) << (8 * (size - 4));
}

void round(SipState& s) noexcept {
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

void absorb(SipState& state, std::uint64_t word) noexcept {
  state.v3 ^= word;
  round(state);
  state.v0 ^= word;
}

// The halves of the digest come one after the other.
std::uint64_t squeeze(SipState& state) noexcept {
  for (int i = 0; i < 3; ++i) round(state);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}
std::uint64_t squeeze_low(SipState& state) noexcept {
  state.v2 ^= 0xee;
  return squeeze(state);
}
Digest squeeze_both(SipState state) noexcept {
  const std::uint64_t low = squeeze_low(state);
  state.v1 ^= 0xdd;
  return {.low = low, .high = squeeze(state)};
}

}  // namespace

// The constants spell the initialisation of SipHash; 0xee marks the variant with 128 bits of
// output.
SipHash13::SipHash13(DigestSecret secret) noexcept
    : state_{.v0 = secret.first ^ 0x736f6d6570736575ULL,
             .v1 = secret.second ^ 0x646f72616e646f6dULL ^ 0xee,
             .v2 = secret.first ^ 0x6c7967656e657261ULL,
             .v3 = secret.second ^ 0x7465646279746573ULL} {}

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
  SipState state = state_;
  std::array<char, 8> last{};
  std::copy_n(tail_.begin(), length_ % tail_.size(), last.begin());
  absorb(state, load_word(last.data()) | std::uint64_t{length_ & 0xff} << 56U);
  return squeeze_both(state);
}

KeyDigest& KeyDigest::add(std::uint8_t kind, std::string_view value) noexcept {
  std::array<char, 9> prefix{static_cast<char>(kind)};
  const std::uint64_t length = value.size();
  for (unsigned i = 0; i < 8; ++i) prefix[i + 1] = static_cast<char>(length >> (8 * i));
  hash_.append({prefix.data(), prefix.size()});
  hash_.append(value);
  return *this;
}

KeyHasher::KeyHasher(const KeyDigest& fixed, std::uint8_t kind) noexcept {
  SipHash13 hash = fixed.hash_;
  const char byte = static_cast<char>(kind);
  hash.append({&byte, 1});
  const std::size_t held = hash.length_ % sizeof(std::uint64_t);
  start_ = {.state = hash.state_,
            .tail = load_short(hash.tail_.data(), held),
            .tail_bytes = static_cast<std::uint32_t>(held),
            .length = hash.length_};
}

// The fixed bytes end within a word, so what follows them is shifted: the length of the value, the
// value, and the length of it all.
SipState KeyHasher::absorbed(std::string_view value) const noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const char* bytes = value.data();
  const std::size_t size = value.size();
  const std::size_t held = start_.tail_bytes;
  // A shift in two steps, as one by all 64 bits is undefined.
  const auto last_bits = [](std::uint64_t word, std::size_t bits) {
    return word >> 1U >> (63 - bits);
  };

  SipState state = start_.state;
  absorb(state, start_.tail | std::uint64_t{size} << (8 * held));
  const std::uint64_t head = size >= kWord ? load_word(bytes) : load_short(bytes, size);
  std::uint64_t last = last_bits(size, 8 * held) | head << (8 * held);
  if (held + size >= kWord) {
    absorb(state, last);
    std::size_t at = kWord - held;
    for (; at + kWord <= size; at += kWord) absorb(state, load_word(bytes + at));
    // What remains is the end of the last eight bytes, which reach no further than the value.
    last = size >= kWord ? last_bits(load_word(bytes + size - kWord), 8 * (size - at))
                         : head >> (8 * at);
  }
  absorb(state, last | (start_.length + kWord + size) << 56U);
  return state;
}

Digest KeyHasher::operator()(std::string_view value) const noexcept {
  return squeeze_both(absorbed(value));
}

std::uint64_t KeyHasher::low(std::string_view value) const noexcept {
  SipState state = absorbed(value);
  return squeeze_low(state);
}

bool KeyHasher::can_use(Lanes lanes) noexcept {
#if defined(__x86_64__)
  return lanes == Lanes::one ||
         (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0);
#else
  return lanes == Lanes::one;
#endif
}

void KeyHasher::batch(std::span<const std::string_view> values,
                      std::span<Digest> digests) const noexcept {
  batch(values, digests, can_use(Lanes::several) ? Lanes::several : Lanes::one);
}

void KeyHasher::batch(std::span<const std::string_view> values, std::span<Digest> digests,
                      Lanes lanes) const noexcept {
  assert(digests.size() >= values.size());
  assert(can_use(lanes));
  for (std::size_t at = 0; at < values.size(); at += kMostLanes) {
    const auto some = values.subspan(at, std::min(values.size() - at, kMostLanes));
#if defined(__x86_64__)
    if (pays(some, lanes)) {
      digest_lanes(start_, some, digests.subspan(at, some.size()));
      continue;
    }
#endif
    for (std::size_t i = 0; i < some.size(); ++i) digests[at + i] = (*this)(some[i]);
  }
}

void KeyHasher::batch_low(std::span<const std::string_view> values,
                          std::span<std::uint64_t> lows) const noexcept {
  assert(lows.size() >= values.size());
  for (std::size_t at = 0; at < values.size(); at += kMostLanes) {
    const auto some = values.subspan(at, std::min(values.size() - at, kMostLanes));
#if defined(__x86_64__)
    if (pays(some, can_use(Lanes::several) ? Lanes::several : Lanes::one)) {
      digest_lanes_low(start_, some, lows.subspan(at, some.size()));
      continue;
    }
#endif
    for (std::size_t i = 0; i < some.size(); ++i) lows[at + i] = low(some[i]);
  }
}

// One value too long for its lane sends the others the slow way, too: such keys are rare, and to
// sort them out would cost the usual ones more.
bool KeyHasher::pays(std::span<const std::string_view> values, Lanes lanes) noexcept {
  const auto fits = [](std::string_view value) { return value.size() <= kLongestInLane; };
  return lanes == Lanes::several && values.size() >= kFewestForLanes &&
         std::ranges::all_of(values, fits);
}

}  // namespace sluice
