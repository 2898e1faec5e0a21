// Memory that is not what was written: whatever the answers are, there are some.

#include "base/random.h"
#include "store/local/state_file_test.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

namespace sluice::store {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000'000;
constexpr std::size_t kMemory = 8 * Mapping::kMemoryMin;
constexpr std::uint64_t kKeysOfEach = 20;

// The bytes of everything without a checksum, except the header's.
std::vector<std::span<std::byte>> unguarded(const Mapping& mapping) {
  return {std::as_writable_bytes(mapping.table().slots),
          std::as_writable_bytes(mapping.table().passed),
          std::as_writable_bytes(mapping.table().cells),
          mapping.slabs().memory,
          std::as_writable_bytes(mapping.slabs().sizes),
          std::as_writable_bytes(std::span{mapping.slabs().used, 1})};
}

class Damage : public ::testing::Test {
 protected:
  void SetUp() override { ::alarm(280); }  // a loop without end ends the test
  void TearDown() override { ::alarm(0); }

  // A bit of a byte that is in use; of the others there are so many that nobody would see it.
  void flip(std::span<std::byte> bytes) {
    for (int look = 0; look < 1'000; ++look) {
      std::byte& byte = bytes[random_.below(bytes.size())];
      if (byte == std::byte{0} && look < 999) continue;
      byte ^= std::byte{1} << random_.below(8);
      return;
    }
  }

  Check check(LocalStore& store) {
    const std::size_t subject = random_.below(numbers_.size());
    return {.key = digest_of(store, subject * kKeysOfEach + random_.below(kKeysOfEach)),
            .limit = numbers_[random_.below(8) == 0 ? random_.below(numbers_.size()) : subject],
            .cost = static_cast<Cost>(random_.below(4)),
            .change = static_cast<OnChange>(random_.below(3)),
            .on_table_full = static_cast<OnTableFull>(random_.below(3))};
  }

  void ask(LocalStore& store) {
    now_ += static_cast<std::int64_t>(random_.below(1'000'000));
    const Now now = testing::at(now_);
    const Check one = check(store);
    switch (random_.below(8)) {
      case 0: keep(one, store.force(one, now)); break;
      case 1: {
        const std::array<Check, 2> both{one, check(store)};
        std::array<Answer, 2> answers;
        if (both[0].key != both[1].key) (void)store.decide_all(both, now, answers);
        break;
      }
      case 2:
      case 3:
        if (charges_.empty()) break;
        store.refund(charges_.back().first, charges_.back().second, now);
        charges_.pop_back();
        break;
      case 4:
        if (!charges_.empty()) (void)store.renew(one, charges_.front().second, now);
        break;
      case 5: (void)store.read(one.key, now); break;
      default: keep(one, store.decide(one, now)); break;
    }
  }

  void keep(const Check& check, const Answer& answer) {
    if (answer.charge.receipt.cost > 0) charges_.emplace_back(check, answer.charge);
    if (charges_.size() > 200) charges_.erase(charges_.begin(), charges_.begin() + 100);
  }

  void look_around(LocalStore& store) {
    const Now now = testing::at(now_);
    std::size_t cursor = 0;
    do {
      (void)store.list(cursor, 1'000, now);
    } while (cursor != 0);
    store.upkeep(now);
    if (random_.below(4) == 0) store.sweep(now);
    (void)store.forget(check(store).key);
    (void)store.status();
  }

  Random random_{20'261'116};
  std::int64_t now_ = kStart;
  std::vector<LimitNumber> numbers_;
  std::vector<std::pair<Check, Charge>> charges_;
};

// Thousands of flipped bits, in use and over restarts, and every request is answered.
TEST_F(Damage, IsSurvived) {
  const testing::TempFolder folder;
  const std::string file = folder.file("state");
  for (int round = 0; round < 120; ++round) {
    const std::unique_ptr<LocalStore> store = open_file(file, testing::at(now_), kMemory);
    numbers_.clear();
    for (const testing::Subject& subject : testing::all_subjects()) {
      numbers_.push_back(store->use(subject.limit, testing::at(now_)).value());
    }
    const Mapping mapping =
        Mapping::open({.memory = kMemory, .file = file}, testing::at(now_)).value();
    for (int i = 0; i < 400; ++i) ask(*store);
    for (const std::span<std::byte> part : unguarded(mapping)) {
      for (int i = 0; i < 15; ++i) flip(part);
    }
    for (int i = 0; i < 800; ++i) ask(*store);
    look_around(*store);
  }
}

}  // namespace
}  // namespace sluice::store
