// What outlives a process and a machine: counts, receipts and time; and how many may share a file.

#include "base/random.h"
#include "store/local/state_file_test.h"
#include "support/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::int64_t kStart = 1'700'000'000'000'000'000;
constexpr std::size_t kMemory = 8 * Mapping::kMemoryMin;
constexpr std::uint64_t kKeysOfEach = 3;

Now set_to(std::int64_t mono, std::int64_t wall) {
  return {.mono = MonoTime{Nanos{mono}}, .wall_offset = Nanos{wall - mono}};
}

// The same requests to a store in a file, which is closed and opened again, and to one in memory.
class Twins {
 public:
  explicit Twins(std::string file) : file_(std::move(file)) {
    open();
    twin_ = open_file("", now_, kMemory);
    for (const testing::Subject& subject : testing::all_subjects()) {
      numbers_.push_back(store_->use(subject.limit, now_).value());
      EXPECT_EQ(twin_->use(subject.limit, now_).value(), numbers_.back());
    }
  }

  void restart() {
    store_.reset();
    open();
  }

  // The machine is off for a while; its monotonic clock begins anew.
  void reboot(Nanos off) {
    store_->upkeep(clock());
    store_.reset();
    overwrite(file_, kBootAt, with_flipped_bit(bytes_of(file_).substr(kBootAt, 8), 3));
    now_ = testing::at(now_.mono.time_since_epoch().count() + off.count());
    booted_ = now_.mono - Nanos{5s};
    open();
  }

  void step() {
    now_ = testing::at(now_.mono.time_since_epoch().count() + gap());
    const std::size_t subject = random_.below(numbers_.size());
    const std::uint64_t key = subject * kKeysOfEach + random_.below(kKeysOfEach);
    const auto cost = static_cast<Cost>(random_.below(4));
    if (!pairs_.empty() && random_.below(3) == 0) return refund(random_.below(pairs_.size()));
    const bool forced = random_.below(8) == 0;
    const Answer here = ask(*store_, clock(), subject, key, cost, forced);
    const Answer there = ask(*twin_, now_, subject, key, cost, forced);
    ASSERT_EQ(here.decision, there.decision) << testing::all_subjects()[subject].name;
    ASSERT_EQ(here.charge.receipt.cost, there.charge.receipt.cost);
    if (here.charge.receipt.cost > 0) pairs_.push_back({key, here.charge, there.charge});
  }

  void expect_equal() {
    for (std::size_t subject = 0; subject < numbers_.size(); ++subject) {
      for (std::uint64_t i = 0; i < kKeysOfEach; ++i) {
        const std::uint64_t key = subject * kKeysOfEach + i;
        ASSERT_EQ(ask(*store_, clock(), subject, key, 0, false).decision,
                  ask(*twin_, now_, subject, key, 0, false).decision)
            << testing::all_subjects()[subject].name;
      }
    }
  }

 private:
  struct Charged {
    std::uint64_t key;
    Charge here;
    Charge there;
  };

  // What this boot's clocks say; the twin's machine was never off.
  [[nodiscard]] Now clock() const {
    return {.mono = now_.mono - booted_.time_since_epoch(),
            .wall_offset = booted_.time_since_epoch()};
  }

  void open() {
    store_ = open_file(file_, clock(), kMemory);
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      ASSERT_EQ(store_->use(testing::all_subjects()[i].limit, clock()).value(), numbers_[i]);
    }
  }

  std::int64_t gap() {
    constexpr std::array<std::int64_t, 6> kGaps{
        0, 1, 1'000'000, 200'000'000, 1'000'000'000, 60'000'000'000};
    return kGaps[random_.below(kGaps.size())];
  }

  Answer ask(LocalStore& store, Now now, std::size_t subject, std::uint64_t key, Cost cost,
             bool forced) {
    const Check check{.key = digest_of(store, key), .limit = numbers_[subject], .cost = cost};
    return forced ? store.force(check, now) : store.decide(check, now);
  }

  void refund(std::size_t chosen) {
    const Charged charged = pairs_[chosen];
    pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(chosen));
    const Cost cost = charged.here.receipt.cost;
    store_->refund({.key = digest_of(*store_, charged.key), .cost = cost}, charged.here, clock());
    twin_->refund({.key = digest_of(*twin_, charged.key), .cost = cost}, charged.there, now_);
  }

  std::string file_;
  Now now_ = testing::at(kStart);
  MonoTime booted_{Nanos{0}};
  std::unique_ptr<LocalStore> store_;
  std::unique_ptr<LocalStore> twin_;
  std::vector<LimitNumber> numbers_;
  std::vector<Charged> pairs_;
  Random random_{20'261'116};
};

// All algorithms, several keys each, with receipts that were issued before.
TEST(Restart, ChangesNoAnswer) {
  const testing::TempFolder folder;
  Twins twins{folder.file("state")};
  for (int i = 1; i <= 4'000 && !::testing::Test::HasFailure(); ++i) {
    twins.step();
    if (i % 40 != 0) continue;
    twins.restart();
    twins.expect_equal();
  }
}

// Stored time goes on by as much as the wall clock has.
TEST(Reboot, ChangesNoAnswer) {
  const testing::TempFolder folder;
  Twins twins{folder.file("state")};
  for (int i = 1; i <= 2'000 && !::testing::Test::HasFailure(); ++i) {
    twins.step();
    if (i % 50 != 0) continue;
    twins.reboot(i % 100 == 0 ? 1'500ms : 7h);
    twins.expect_equal();
  }
}

// A wall clock that was set back while the machine was off adds nothing, and takes nothing away.
TEST(Reboot, NeverMovesTimeBack) {
  const testing::TempFolder folder;
  const std::string file = folder.file("state");
  const Limit limit{.algorithm = Algorithm::gcra, .amount = 6, .period = 1min};
  const auto peek = [&](LocalStore& store, Now now) {
    const LimitNumber number = store.use(limit, now).value();
    return store.decide({.key = digest_of(store, 1), .limit = number, .cost = 0}, now).decision;
  };
  constexpr std::int64_t kUp = 1'000'000'000'000;
  Decision before;
  {
    const Now now = set_to(kUp, kStart);
    const std::unique_ptr<LocalStore> store = open_file(file, now);
    const LimitNumber number = store->use(limit, now).value();
    (void)store->decide({.key = digest_of(*store, 1), .limit = number, .cost = 4}, now);
    store->upkeep(now);
    before = peek(*store, now);
  }
  std::int64_t wall = kStart;
  for (int boot = 0; boot < 3; ++boot) {
    overwrite(file, kBootAt, with_flipped_bit(bytes_of(file).substr(kBootAt, 8), 3));
    wall -= Nanos{1h}.count();
    const Now now = set_to(5'000'000'000, wall);
    EXPECT_EQ(peek(*open_file(file, now), now), before) << "boot " << boot;
  }
  const Now later = set_to(5'000'000'000 + Nanos{1min}.count(), wall + Nanos{1min}.count());
  EXPECT_EQ(peek(*open_file(file, later), later).remaining, 6U);
}

TEST(Sharing, IsForSixtyFourProcesses) {
  const testing::TempFolder folder;
  std::vector<std::unique_ptr<LocalStore>> stores;
  for (std::size_t i = 0; i < Mapping::kProcessesMax; ++i) {
    stores.push_back(open_file(folder.file("state")));
  }
  charge_of_ten(*stores.front(), 3);
  const auto one_more = try_open(folder.file("state"), true);
  ASSERT_FALSE(one_more);
  EXPECT_THAT(one_more.error().text(), HasSubstr(folder.file("state")));
  EXPECT_THAT(one_more.error().text(), HasSubstr("64 processes use it already"));
  EXPECT_THAT(one_more.error().text(), HasSubstr("give the others a file of their own"));
  stores.erase(stores.begin() + 30);
  EXPECT_EQ(left_of_ten(*open_file(folder.file("state"))), 7U);
}

// A process that starts anew finds the free blocks that are there.
TEST(Sharing, NeedsNoMoreMemoryForProcessesThatComeAndGo) {
  const testing::TempFolder folder;
  const Limit limit{.algorithm = Algorithm::sliding_buckets, .amount = 1'000, .period = 1h};
  const auto charge = [&](LocalStore& store, std::uint64_t key) {
    const LimitNumber number = store.use(limit, {}).value();
    (void)store.decide({.key = digest_of(store, key), .limit = number, .cost = 1}, {});
  };
  const std::unique_ptr<LocalStore> store = open_file(folder.file("state"), {}, kMemory);
  for (std::uint64_t key = 0; key < 150; ++key) charge(*store, key);
  const std::size_t before = store->status().block_bytes_used;
  for (std::uint64_t start = 0; start < 150; ++start) {
    charge(*open_file(folder.file("state"), {}, kMemory), start);
  }
  EXPECT_EQ(store->status().block_bytes_used, before);
}

// ---- pages
// ---------------------------------------------------------------------------------------

std::size_t huge_page_bytes(Pages pages) {
  const Mapping mapping =
      Mapping::open({.memory = 8 * Mapping::kMemoryMin, .pages = pages}, {}).value();
  for (std::size_t at = 0; at < mapping.bytes();) at = mapping.fault_in(at, std::size_t{1} << 20U);
  return mapping.huge_page_bytes();
}

TEST(HugePages, AreUsedOnlyWhenAllowed) {
  EXPECT_EQ(huge_page_bytes(Pages::small), 0U);
  const std::size_t huge = huge_page_bytes(Pages::automatic);
  EXPECT_LE(huge, 8 * Mapping::kMemoryMin);
  EXPECT_EQ(huge % Mapping::kMemoryMin, 0U);
}

TEST(HugePages, AreNotNeeded) {
  EXPECT_EQ(testing::in_child([] {
              ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
              const std::unique_ptr<LocalStore> store = open_file("");
              charge_of_ten(*store, 3);
              return huge_page_bytes(Pages::automatic) == 0 && left_of_ten(*store) == 7 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace sluice::store
