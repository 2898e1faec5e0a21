// Sixteen bytes, read and exchanged at once.
//
// A slot of the counter table is a key word and a state word that must change together, so the
// table rests on a 16-byte compare-and-swap. Compilers turn std::atomic of this size into calls of
// a library that may lock; this is one instruction instead:
//
//   x86-64   lock cmpxchg16b. Plain 16-byte loads are atomic on CPUs with AVX; others read with the
//            exchange, too.
//   others   the compiler's own 16-byte exchange, and -DSLUICE_ATOMIC16_FALLBACK forces that here.
//
// Orders. A pair is self-contained: no thread reaches other memory through it, so relaxed order
// suffices. Threads that must agree on several pairs (insertion) rely on the exchange being a full
// barrier, which the x86 instruction is and the fallback requests.
#pragma once

#include <sluice/int128.h>

#include <cstdint>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

#if defined(__x86_64__) && !defined(SLUICE_ATOMIC16_FALLBACK) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_ATOMIC16_BUILTIN 1  // the sanitizer only understands the builtins
#endif
#endif
#else
#define SLUICE_ATOMIC16_BUILTIN 1
#endif

namespace sluice::store {

struct alignas(16) Pair {
  std::uint64_t key = 0;
  std::uint64_t state = 0;

  friend constexpr bool operator==(const Pair&, const Pair&) = default;
};

#ifdef SLUICE_ATOMIC16_BUILTIN

[[nodiscard]] inline Uint128 as_number(Pair pair) noexcept {
  return Uint128{pair.state} << 64U | pair.key;
}

[[nodiscard]] inline Pair load16(Pair* at) noexcept {
  const Uint128 both = __atomic_load_n(reinterpret_cast<Uint128*>(at), __ATOMIC_SEQ_CST);
  return {.key = static_cast<std::uint64_t>(both),
          .state = static_cast<std::uint64_t>(both >> 64U)};
}

[[nodiscard]] inline bool exchange16(Pair* at, Pair expected, Pair desired) noexcept {
  Uint128 before = as_number(expected);
  return __atomic_compare_exchange_n(reinterpret_cast<Uint128*>(at), &before, as_number(desired),
                                     false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// `at` if that is its key, else another. Reads the key only.
[[nodiscard]] inline Pair* if_key(Pair* at, std::uint64_t key, Pair* otherwise) noexcept {
  return __atomic_load_n(&at->key, __ATOMIC_RELAXED) == key ? at : otherwise;
}

#else

// In assembly, since GCC makes a branch of it, which cannot be predicted.
[[nodiscard, gnu::always_inline]] inline Pair* if_key(Pair* at, std::uint64_t key,
                                                      Pair* otherwise) noexcept {
  asm volatile("cmpq %1, %2\n\tcmoveq %3, %0"
               : "+r"(otherwise)
               : "r"(key), "m"(at->key), "r"(at)
               : "cc");
  return otherwise;
}

[[nodiscard]] inline bool exchange16(Pair* at, Pair expected, Pair desired) noexcept {
  bool exchanged = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(exchanged), "+m"(*at), "+a"(expected.key), "+d"(expected.state)
               : "b"(desired.key), "c"(desired.state)
               : "memory");
  return exchanged;
}

// Vendors promise it for every CPU that has AVX, whichever encoding the load uses.
inline const bool kLoadsAreAtomic = __builtin_cpu_supports("avx") != 0;

[[nodiscard]] inline Pair load16(Pair* at) noexcept {
  if (kLoadsAreAtomic) [[likely]] {
    __m128i both;
    asm volatile("movdqa %1, %0" : "=x"(both) : "m"(*at) : "memory");
    return {.key = static_cast<std::uint64_t>(_mm_cvtsi128_si64(both)),
            .state = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both)))};
  }
  Pair pair;
  // Exchanging a pair with itself reads it, whether or not it is the one expected.
  asm volatile("lock cmpxchg16b %0"
               : "+m"(*at), "+a"(pair.key), "+d"(pair.state)
               : "b"(pair.key), "c"(pair.state)
               : "cc", "memory");
  return pair;
}

#endif

}  // namespace sluice::store
