// The digest of a key: 128 bits that stand for a tuple of texts, each of some kind.
//
// Clients choose what goes into a key, so the digest is a keyed pseudo-random function, SipHash-1-3
// with 128 bits of output: without the secret a client cannot find two keys that share a counter.
// Every part is written with its kind and its length, so that no two tuples collide by text: user
// "1.2.3.4" is not address 1.2.3.4, and ("ab", "c") is not ("a", "bc"). A part is a word, with the
// length in its lower 56 bits and the kind in the upper 8, then the text. The last one may say all
// ones for its length, which is "to the end": then that word is the same for all keys of a sort.
// Parts begin at words, with zeros between, so that nothing has to be shifted on the way.
#pragma once

#include "base/byte_words.h"
#include "base/sip_rounds.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend constexpr auto operator<=>(const Digest&, const Digest&) = default;
};

// Kept by the node, later by the cluster; a client that knows it can make keys collide.
struct DigestSecret {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// Appends bytes in any pieces; the digest depends on their concatenation only. No allocation.
class SipHash13 {
 public:
  explicit SipHash13(DigestSecret secret) noexcept;

  void append(std::string_view bytes) noexcept;
  [[nodiscard]] Digest finish() const noexcept;  // of all bytes appended so far

 private:
  friend class KeyDigest;
  friend class KeyHasher;  // goes on from here, in its own way

  sip::State state_;
  std::array<char, 8> tail_{};  // bytes that do not fill a word yet
  std::size_t length_ = 0;
};

// Builds one key's digest part by part.
class KeyDigest {
 public:
  explicit KeyDigest(DigestSecret secret) noexcept : hash_(secret) {}

  // What the kinds are is the caller's affair; they are part of the digest, so their numbers stay.
  KeyDigest& add(std::uint8_t kind, std::string_view value) noexcept;
  [[nodiscard]] Digest finish() const noexcept { return hash_.finish(); }
  // With a last part, which goes to the end.
  [[nodiscard]] Digest finish(std::uint8_t kind, std::string_view value) const noexcept;

 private:
  friend class KeyHasher;

  void begin_part(std::uint64_t header) noexcept;

  SipHash13 hash_;
};

// What keys begin with, up to the text of the last part.
struct KeyMidstate {
  sip::State state;
  std::uint64_t length = 0;  // in bytes; of that, the last eight bits, uppermost
};

// Digests of keys that differ in their last part only: the others, and the last one's kind, are
// digested once. The same digests as KeyDigest's, several times as fast. Immutable, so threads may
// share it.
class KeyHasher {
 public:
  // How a batch is computed; all ways give the same digests.
  enum class Lanes : std::uint8_t {
    one,      // one value after the other, on any machine
    several,  // up to eight at once; needs x86-64 with AVX2 and BMI2
  };
  [[nodiscard]] static bool can_use(Lanes lanes) noexcept;

  KeyHasher(const KeyDigest& fixed, std::uint8_t kind) noexcept;

  // fixed.finish(kind, value)
  [[nodiscard]] Digest operator()(std::string_view value) const noexcept;

  // The first half of that, for callers that need no more: a third less work.
  [[nodiscard]] std::uint64_t low(std::string_view value) const noexcept;

  // The digest of values[i] goes to digests[i]; there are at least as many digests as values. Pays
  // most for multiples of 16 values of up to 80 bytes; their lengths may differ.
  void batch(std::span<const std::string_view> values, std::span<Digest> digests) const noexcept;
  void batch_low(std::span<const std::string_view> values,
                 std::span<std::uint64_t> lows) const noexcept;
  // For tests of every implementation; this processor must support `lanes`.
  void batch(std::span<const std::string_view> values, std::span<Digest> digests,
             Lanes lanes) const noexcept;

 private:
  [[nodiscard]] sip::State absorbed(std::string_view value) const noexcept;
  [[nodiscard]] static bool pays(std::span<const std::string_view> values, Lanes lanes) noexcept;

  KeyMidstate start_;
};

// Two words at a time: the fewer instructions the better, see BasicTable::update_at_once.
[[gnu::always_inline]] inline sip::State KeyHasher::absorbed(
    std::string_view value) const noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const char* bytes = value.data();
  std::size_t left = value.size();
  sip::State state = start_.state;
  for (; left >= 2 * kWord; left -= 2 * kWord, bytes += 2 * kWord) {
    sip::absorb(state, load_word(bytes));
    sip::absorb(state, load_word(bytes + kWord));
  }
  if (left >= kWord) {
    sip::absorb(state, load_word(bytes));
    left -= kWord;
    bytes += kWord;
  }
  std::uint64_t last = start_.length + (std::uint64_t{value.size()} << 56U);
  if (left > 0) last |= load_short(bytes, left);
  sip::absorb(state, last);
  return state;
}

[[gnu::always_inline]] inline std::uint64_t KeyHasher::low(std::string_view value) const noexcept {
  sip::State state = absorbed(value);
  return sip::squeeze_low(state);
}

}  // namespace sluice
