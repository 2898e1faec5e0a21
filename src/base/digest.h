// The digest of a key: 128 bits that stand for a tuple of texts, each of some kind.
//
// Clients choose what goes into a key, so the digest is a keyed pseudo-random function, SipHash-1-3
// with 128 bits of output: without the secret nobody can find two keys that share a counter. Every
// part is written with its kind and its length, so that no two tuples collide by text: user
// "1.2.3.4" is not address 1.2.3.4, and ("ab", "c") is not ("a", "bc").
#pragma once

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

// Kept by the node, later by the cluster; whoever knows it can make keys collide.
struct DigestSecret {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// What SipHash knows of the words so far.
struct SipState {
  std::uint64_t v0, v1, v2, v3;
};

// Appends bytes in any pieces; the digest depends on their concatenation only. No allocation.
class SipHash13 {
 public:
  explicit SipHash13(DigestSecret secret) noexcept;

  void append(std::string_view bytes) noexcept;
  [[nodiscard]] Digest finish() const noexcept;  // of what was appended so far

 private:
  friend class KeyHasher;  // goes on from here, in its own way

  SipState state_;
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

 private:
  friend class KeyHasher;

  SipHash13 hash_;
};

// The fixed bytes that keys begin with, digested as far as they fill words.
struct KeyMidstate {
  SipState state;
  std::uint64_t tail = 0;        // those that do not fill a word, lowest first
  std::uint32_t tail_bytes = 0;  // how many these are, 0 to 7
  std::uint64_t length = 0;      // of all
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

  // fixed.add(kind, value).finish()
  [[nodiscard]] Digest operator()(std::string_view value) const noexcept;

  // The first half of that, for whoever needs no more: a third of the work less.
  [[nodiscard]] std::uint64_t low(std::string_view value) const noexcept;

  // The digest of values[i] goes to digests[i]; there are at least as many digests as values. Pays
  // most for multiples of 16 values of up to 80 bytes; their lengths may differ.
  void batch(std::span<const std::string_view> values, std::span<Digest> digests) const noexcept;
  void batch_low(std::span<const std::string_view> values,
                 std::span<std::uint64_t> lows) const noexcept;
  // For tests, which want every way; `lanes` must be one that can be used here.
  void batch(std::span<const std::string_view> values, std::span<Digest> digests,
             Lanes lanes) const noexcept;

 private:
  [[nodiscard]] SipState absorbed(std::string_view value) const noexcept;
  [[nodiscard]] static bool pays(std::span<const std::string_view> values, Lanes lanes) noexcept;

  KeyMidstate start_;
};

}  // namespace sluice
