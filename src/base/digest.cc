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

[[gnu::always_inline]] inline Digest squeeze_both(sip::State state) noexcept {
  const std::uint64_t low = sip::squeeze_low(state);
  state.v1 ^= 0xdd;
  return {.low = low, .high = sip::squeeze(state)};
}

constexpr std::uint64_t kToTheEnd = (std::uint64_t{1} << 56U) - 1;

std::uint64_t header_of(std::uint8_t kind, std::uint64_t length) noexcept {
  return std::uint64_t{kind} << 56U | length;
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
    sip::absorb(state_, load_word(tail_.data()));
  }
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
    sip::absorb(state_, load_word(bytes.data()));
  }
  std::copy(bytes.begin(), bytes.end(), tail_.begin());
}

Digest SipHash13::finish() const noexcept {
  sip::State state = state_;
  std::array<char, 8> last{};
  std::copy_n(tail_.begin(), length_ % tail_.size(), last.begin());
  sip::absorb(state, load_word(last.data()) | std::uint64_t{length_ & 0xff} << 56U);
  return squeeze_both(state);
}

void KeyDigest::begin_part(std::uint64_t header) noexcept {
  constexpr std::array<char, 8> kZeros{};
  const std::size_t beyond = hash_.length_ % kZeros.size();
  if (beyond > 0) hash_.append({kZeros.data(), kZeros.size() - beyond});
  std::array<char, 8> bytes;
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header >> (8 * i));
  hash_.append({bytes.data(), bytes.size()});
}

KeyDigest& KeyDigest::add(std::uint8_t kind, std::string_view value) noexcept {
  begin_part(header_of(kind, value.size()));
  hash_.append(value);
  return *this;
}

Digest KeyDigest::finish(std::uint8_t kind, std::string_view value) const noexcept {
  KeyDigest whole = *this;
  whole.begin_part(header_of(kind, kToTheEnd));
  whole.hash_.append(value);
  return whole.finish();
}

KeyHasher::KeyHasher(const KeyDigest& fixed, std::uint8_t kind) noexcept {
  KeyDigest begun = fixed;
  begun.begin_part(header_of(kind, kToTheEnd));
  start_ = {.state = begun.hash_.state_, .length = std::uint64_t{begun.hash_.length_} << 56U};
}

Digest KeyHasher::operator()(std::string_view value) const noexcept {
  return squeeze_both(absorbed(value));
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
