// Processes are killed while they give a slab another size: none is lost.

#include "base/random.h"
#include "store/local/state_file_test.h"
#include "support/child.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

// States of one size each, which last for minutes.
std::vector<Limit> limits_of_all_sizes() {
  std::vector<Limit> limits;
  for (const int slices : {2, 20, 40, 100, 200, 400, 800, 1600, 3200}) {
    limits.push_back({.algorithm = Algorithm::sliding_buckets,
                      .amount = 100,
                      .period = 2min,
                      .bucket_width = Nanos{2min} / slices});
  }
  return limits;
}

// Asks for blocks of one size, then lets hours pass and begins with the next: there are fewer slabs
// than sizes, so one of them has to change its own.
[[noreturn]] void work(const std::string& file, std::int64_t now, std::uint64_t seed, int say) {
  const std::unique_ptr<LocalStore> store = open_file(file, testing::at(now));
  Random random{seed};
  std::vector<LimitNumber> limits;
  for (const Limit& limit : limits_of_all_sizes()) {
    limits.push_back(store->use(limit, testing::at(now)).value());
  }
  (void)!::write(say, "", 1);
  for (std::size_t turn = random.below(limits.size());; ++turn) {
    now += Nanos{1h}.count();
    for (int i = 0; i < 40; ++i) {
      const Check check{.key = digest_of(*store, random.below(1'000)),
                        .limit = limits[turn % limits.size()]};
      (void)store->decide(check, testing::at(now));
    }
  }
}

TEST(SlabCrash, LosesNoSlab) {
  ::alarm(280);
  const testing::TempFolder folder;
  const std::string file = folder.file("state");
  const std::unique_ptr<LocalStore> store = open_file(file, testing::at(0));
  const Mapping mapping = Mapping::open({.memory = Mapping::kMemoryMin, .file = file}, {}).value();
  const BlockPool pool{mapping.slabs(), mapping.self()};
  ASSERT_LT(mapping.slabs().sizes.size(), limits_of_all_sizes().size());
  Random random{20'261'116};
  for (int kill = 0; kill < 500 && !::testing::Test::HasFailure(); ++kill) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const std::int64_t now = kill * Nanos{1'000h}.count();
    const pid_t child = testing::start_child([&]() -> int { work(file, now, random(), pipe[1]); });
    char byte = 0;
    (void)!::read(pipe[0], &byte, 1);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds{random.below(2'000)};
    while (std::chrono::steady_clock::now() < until) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const int end : pipe) ::close(end);

    store->upkeep(testing::at(now));
    for (std::uint32_t slab = 0; slab < mapping.slabs().sizes.size(); ++slab) {
      const std::uint32_t size = mapping.slabs().sizes[slab];
      EXPECT_TRUE(size <= BlockPool::kSizes) << "kill " << kill << ": " << size;
      EXPECT_TRUE(size > 0 || *mapping.slabs().used <= slab) << "kill " << kill;
    }
    EXPECT_TRUE(pool.left_behind([](Participant) { return false; }).empty()) << "kill " << kill;
  }
  ::alarm(0);
}

}  // namespace
}  // namespace sluice::store
