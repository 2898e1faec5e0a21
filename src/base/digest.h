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

// Appends bytes in any pieces; the digest depends on their concatenation only. No allocation.
class SipHash13 {
 public:
  explicit SipHash13(DigestSecret secret) noexcept;

  void append(std::string_view bytes) noexcept;
  [[nodiscard]] Digest finish() const noexcept;  // of what was appended so far

 private:
  struct State {
    std::uint64_t v0, v1, v2, v3;
  };
  static void round(State& state) noexcept;
  static void absorb(State& state, std::uint64_t word) noexcept;

  State state_;
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
  SipHash13 hash_;
};

}  // namespace sluice
