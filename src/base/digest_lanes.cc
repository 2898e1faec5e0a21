#include "base/digest_lanes.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sluice {
namespace {

// Every function here names its target. GCC splits vectors that a function's own target lacks
// before it inlines the function, so neither the rounds of digest.cc as a template nor a lambda
// would do.
// BMI2 came with AVX2 and shifts by a variable amount in one instruction.
#define SLUICE_AVX2 [[gnu::target("avx2,bmi2")]]
#define SLUICE_AVX2_INLINE [[gnu::target("avx2,bmi2"), gnu::always_inline]] inline

using Words = std::uint64_t __attribute__((vector_size(32), may_alias));
using Steps = std::int64_t __attribute__((vector_size(32), may_alias));
using Halves = std::uint32_t __attribute__((vector_size(32)));
using Quarters = std::uint16_t __attribute__((vector_size(32)));

// The end of one value's message, as bytes: the value, zeros, the length of all. It ends at the end
// of its row, so that all lanes have their last word at the same step, whatever their lengths; a
// shorter one starts later. What follows the last word is most of the work, and the same for all.
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kSteps = 12;
struct alignas(32) Row {
  char bytes[kSteps * kWord];
};
static_assert(kLongestInLane / kWord + 1 <= kSteps);

// Chunks from both ends, which overlap in the middle: nothing beyond the value is read.
template <std::size_t Chunk>
SLUICE_AVX2_INLINE void copy_chunks(char* to, std::string_view value) noexcept {
  for (std::size_t at = 0; at + Chunk < value.size(); at += Chunk) {
    std::memcpy(to + at, value.data() + at, Chunk);
  }
  const std::size_t last = value.size() - Chunk;
  std::memcpy(to + last, value.data() + last, Chunk);
}

SLUICE_AVX2_INLINE void copy_value(char* to, std::string_view value) noexcept {
  if (value.size() >= 16) {
    copy_chunks<16>(to, value);
  } else if (value.size() >= 8) {
    copy_chunks<8>(to, value);
  } else if (value.size() >= 4) {
    copy_chunks<4>(to, value);
  } else {
    for (std::size_t i = 0; i < value.size(); ++i) to[i] = value[i];
  }
}

// Returns the step at which the message starts.
SLUICE_AVX2_INLINE std::int64_t fill(Row& row, const KeyMidstate& start,
                                     std::string_view value) noexcept {
  for (std::size_t at = 0; at < sizeof row; at += sizeof(Words)) {
    *reinterpret_cast<Words*>(row.bytes + at) = Words{};
  }
  const std::size_t step = kSteps - 1 - value.size() / kWord;
  copy_value(row.bytes + step * kWord, value);
  row.bytes[sizeof row - 1] = static_cast<char>((start.length >> 56U) + value.size());
  return static_cast<std::int64_t>(step);
}

// Four words of four rows become, for four steps, the words of four lanes.
SLUICE_AVX2_INLINE void transpose(const Row* rows, std::size_t step, Words* words) noexcept {
  Words in[4];
  for (std::size_t i = 0; i < 4; ++i) {
    in[i] = *reinterpret_cast<const Words*>(rows[i].bytes + step * kWord);
  }
  const Words even01 = __builtin_shufflevector(in[0], in[1], 0, 4, 2, 6);
  const Words odd01 = __builtin_shufflevector(in[0], in[1], 1, 5, 3, 7);
  const Words even23 = __builtin_shufflevector(in[2], in[3], 0, 4, 2, 6);
  const Words odd23 = __builtin_shufflevector(in[2], in[3], 1, 5, 3, 7);
  words[0] = __builtin_shufflevector(even01, even23, 0, 1, 4, 5);
  words[1] = __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5);
  words[2] = __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
  words[3] = __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7);
}

// AVX2 cannot rotate, but by whole bytes a shuffle does it, instead of three instructions.
template <unsigned Bits>
SLUICE_AVX2_INLINE Words rotate(Words x) noexcept {
  if constexpr (Bits == 32) {
    const auto halves = reinterpret_cast<Halves>(x);
    return reinterpret_cast<Words>(__builtin_shufflevector(halves, halves, 1, 0, 3, 2, 5, 4, 7, 6));
  } else if constexpr (Bits == 16) {
    const auto quarters = reinterpret_cast<Quarters>(x);
    return reinterpret_cast<Words>(__builtin_shufflevector(quarters, quarters, 3, 0, 1, 2, 7, 4, 5,
                                                           6, 11, 8, 9, 10, 15, 12, 13, 14));
  } else {
    return x << Bits | x >> (64 - Bits);
  }
}

struct State {
  Words v0, v1, v2, v3;
};

SLUICE_AVX2_INLINE void round(State& s) noexcept {
  s.v0 += s.v1;
  s.v2 += s.v3;
  s.v1 = rotate<13>(s.v1) ^ s.v0;
  s.v3 = rotate<16>(s.v3) ^ s.v2;
  s.v0 = rotate<32>(s.v0);
  s.v2 += s.v1;
  s.v0 += s.v3;
  s.v1 = rotate<17>(s.v1) ^ s.v2;
  s.v3 = rotate<21>(s.v3) ^ s.v0;
  s.v2 = rotate<32>(s.v2);
}

SLUICE_AVX2_INLINE void absorb(State& state, const Words& words) noexcept {
  state.v3 ^= words;
  round(state);
  state.v0 ^= words;
}

// In lanes that start later, nothing happens yet.
SLUICE_AVX2_INLINE void absorb_started(State& state, const Words& words, const Steps& starts,
                                       std::int64_t step) noexcept {
  const Steps waiting = starts > step;
  State next = state;
  absorb(next, words);
  state.v0 = waiting ? state.v0 : next.v0;
  state.v1 = waiting ? state.v1 : next.v1;
  state.v2 = waiting ? state.v2 : next.v2;
  state.v3 = waiting ? state.v3 : next.v3;
}

template <std::size_t Vectors>
SLUICE_AVX2_INLINE void squeeze(State* states, Words* results) noexcept {
  for (int i = 0; i < 3; ++i) {
    for (std::size_t v = 0; v < Vectors; ++v) round(states[v]);
  }
  for (std::size_t v = 0; v < Vectors; ++v) {
    results[v] = states[v].v0 ^ states[v].v1 ^ states[v].v2 ^ states[v].v3;
  }
}

// The lanes of a few vectors side by side: with one alone, the processor waits half of the time.
// Out is Digest, or the number that is its first half.
template <std::size_t Vectors, class Out>
SLUICE_AVX2 void digest_rows(const sip::State& start, const Row* rows, const std::int64_t* starts,
                             std::span<Out> digests) noexcept {
  const auto [earliest, latest] = std::minmax_element(starts, starts + 4 * Vectors);
  std::int64_t step = *earliest;
  Words words[Vectors][kSteps];
  State states[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) {
    for (auto at = static_cast<std::size_t>(step) / 4 * 4; at < kSteps; at += 4) {
      transpose(rows + 4 * v, at, words[v] + at);
    }
    states[v] = {.v0 = Words{} + start.v0,
                 .v1 = Words{} + start.v1,
                 .v2 = Words{} + start.v2,
                 .v3 = Words{} + start.v3};
  }
  for (; step < *latest; ++step) {
    for (std::size_t v = 0; v < Vectors; ++v) {
      const Steps& own_starts = *reinterpret_cast<const Steps*>(starts + 4 * v);
      absorb_started(states[v], words[v][step], own_starts, step);
    }
  }
  for (; step < static_cast<std::int64_t>(kSteps); ++step) {
    for (std::size_t v = 0; v < Vectors; ++v) absorb(states[v], words[v][step]);
  }

  Words low[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) states[v].v2 ^= 0xee;
  squeeze<Vectors>(states, low);
  if constexpr (std::is_same_v<Out, Digest>) {
    Words high[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) states[v].v1 ^= 0xdd;
    squeeze<Vectors>(states, high);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      digests[i] = {.low = low[i / 4][i % 4], .high = high[i / 4][i % 4]};
    }
  } else {
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = low[i / 4][i % 4];
  }
}

// All rows are filled before the first is read: bytes that were just written in small pieces cannot
// be read in large ones until they have left the processor's store queue.
template <class Out>
SLUICE_AVX2 void digest_all(const KeyMidstate& start, std::span<const std::string_view> values,
                            std::span<Out> digests) noexcept {
  Row rows[kMostLanes];
  alignas(Steps) std::int64_t starts[kMostLanes]{};
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < (count + 3) / 4 * 4; ++i) {
    starts[i] = fill(rows[i], start, values[i < count ? i : 0]);  // idle lanes repeat the first
  }
  for (std::size_t i = 0; i < count; i += 8) {
    if (count - i > 4) {
      digest_rows<2, Out>(start.state, rows + i, starts + i,
                          digests.subspan(i, std::min<std::size_t>(count - i, 8)));
    } else {
      digest_rows<1, Out>(start.state, rows + i, starts + i, digests.subspan(i));
    }
  }
}

}  // namespace

SLUICE_AVX2 void digest_lanes(const KeyMidstate& start, std::span<const std::string_view> values,
                              std::span<Digest> digests) noexcept {
  digest_all<Digest>(start, values, digests);
}

SLUICE_AVX2 void digest_lanes_low(const KeyMidstate& start,
                                  std::span<const std::string_view> values,
                                  std::span<std::uint64_t> lows) noexcept {
  digest_all<std::uint64_t>(start, values, lows);
}

}  // namespace sluice

#endif
