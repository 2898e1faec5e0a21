// What it costs to turn a key into its digest.

#include "base/digest.h"
#include "base/random.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

KeyHasher per_user() {
  const DigestSecret secret{.first = 0x0706050403020100, .second = 0x0f0e0d0c0b0a0908};
  return {KeyDigest{secret}.add(1, "api").add(2, "per-user"), 3};
}

// More than a branch predictor learns by heart, but not more than the cache holds.
constexpr std::size_t kUsers = 1024;

// Values of some number of bytes; zero stands for user-1 to user-9999999, as they come.
std::vector<std::string> users_of(std::size_t bytes) {
  Random random{1};
  std::vector<std::string> users(kUsers, std::string(bytes, 'u'));
  for (std::size_t i = 0; i < kUsers; ++i) {
    if (bytes > 0) {
      change(users[i], i);
      continue;
    }
    std::uint64_t bound = 10;  // each number of digits is as likely as any other
    for (std::uint64_t more = random.below(7); more > 0; --more) bound *= 10;
    users[i] = "user-" + std::to_string(random.below(bound));
  }
  return users;
}

// The same key as above, when domain and rule were digested before. The values lie ready: to change
// one just before it is read, as above, costs several nanoseconds more.
void key_hasher(benchmark::State& state) {
  const KeyHasher hasher = per_user();
  const std::vector<std::string> users = users_of(static_cast<std::size_t>(state.range(0)));
  std::size_t at = 0;
  for (auto _ : state) {
    Digest digest = hasher(users[at++ % kUsers]);
    benchmark::DoNotOptimize(digest);
  }
}
BENCHMARK(key_hasher)->ArgName("user_bytes")->Arg(8)->Arg(16)->Arg(24)->Arg(64)->Arg(0);

// The time is that of one key of the batch.
void key_hasher_batch(benchmark::State& state) {
  const KeyHasher hasher = per_user();
  const std::vector<std::string> users = users_of(static_cast<std::size_t>(state.range(1)));
  const std::vector<std::string_view> values(users.begin(), users.end());
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<Digest> digests(size);
  std::size_t at = 0;
  while (state.KeepRunningBatch(state.range(0))) {
    hasher.batch(std::span{values}.subspan(at, size), digests);
    benchmark::DoNotOptimize(digests.data());
    benchmark::ClobberMemory();
    at = (at + size) % kUsers;
  }
}
BENCHMARK(key_hasher_batch)
    ->ArgNames({"batch", "user_bytes"})
    ->ArgsProduct({{4, 8, 16}, {16}})
    ->ArgsProduct({{16}, {8, 24, 64, 0}});

}  // namespace
}  // namespace sluice
