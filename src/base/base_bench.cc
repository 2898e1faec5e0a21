// What it costs to turn a key into its digest.

#include "base/digest.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {
namespace {

// The key changes every time, as it does from request to request.
void change(std::string& key, std::uint64_t to) { key[0] = static_cast<char>(to); }

void siphash(benchmark::State& state) {
  const DigestSecret secret{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908};
  std::string key(static_cast<std::size_t>(state.range(0)), 'k');
  std::uint64_t turn = 0;
  for (auto _ : state) {
    change(key, ++turn);
    benchmark::DoNotOptimize(key.data());
    benchmark::ClobberMemory();
    SipHash13 hash{secret};
    hash.append(key);
    Digest digest = hash.finish();
    benchmark::DoNotOptimize(digest);
  }
}
BENCHMARK(siphash)->ArgName("bytes")->Arg(8)->Arg(24)->Arg(64);

// A whole key: domain, rule and one value, each with its kind and length.
void key_digest(benchmark::State& state) {
  const DigestSecret secret{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908};
  std::string user(static_cast<std::size_t>(state.range(0)), 'u');
  std::uint64_t turn = 0;
  for (auto _ : state) {
    change(user, ++turn);
    benchmark::DoNotOptimize(user.data());
    benchmark::ClobberMemory();
    Digest digest = KeyDigest{secret}.add(1, "api").add(2, "per-user").add(3, user).finish();
    benchmark::DoNotOptimize(digest);
  }
}
BENCHMARK(key_digest)->ArgName("user_bytes")->Arg(8)->Arg(24)->Arg(64);

}  // namespace
}  // namespace sluice
