// For tests: a table of five groups in which it is known who finds what free, for every order of
// two threads.
#pragma once

#include "store/local/interleaving.h"
#include "store/local/table_fixture.h"
#include "store/local/table_impl.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::store {

using SteppedTable = BasicTable<SteppedAccess>;

inline constexpr std::size_t kGroups = 5;
inline constexpr std::size_t kSlots = kGroups * SteppedTable::kSlotsPerGroup;
inline constexpr std::uint64_t kTentativeBit = std::uint64_t{1}
                                               << 24U;  // of a key word, see table.h

enum : LimitNumber { kFiller, kOne, kTen, kLogOfOne, kLogOfTen };

inline std::vector<Limit> limits() {
  return {{.algorithm = Algorithm::gcra, .amount = 100, .period = std::chrono::seconds{100}},
          {.algorithm = Algorithm::fixed_window, .amount = 1, .period = std::chrono::hours{1}},
          {.algorithm = Algorithm::fixed_window, .amount = 10, .period = std::chrono::hours{1}},
          {.algorithm = Algorithm::sliding_log, .amount = 1, .period = std::chrono::hours{1}},
          {.algorithm = Algorithm::sliding_log, .amount = 10, .period = std::chrono::hours{1}}};
}

// Fillers are charged at kBegin and drain by one a second.
inline constexpr std::int64_t kBegin = std::int64_t{3600} * 1'000'000'000 * 1000;
inline constexpr Now kNow = testing::at(kBegin + 500'000'000);
inline constexpr Now kLater =
    testing::at(kBegin + 1'500'000'000);  // fillers of cost 1 have drained

// All keys here begin with the first line of the first group: place i is slot i.
inline Digest key_of(std::uint64_t fingerprint) { return {.low = fingerprint, .high = 1}; }
inline const Digest kKey = key_of(1);
inline const Digest kOther = key_of(2);

inline Check check_of(const Digest& key, LimitNumber limit, Cost cost = 1) {
  return {.key = key, .limit = limit, .cost = cost};
}

class Interleaving : public ::testing::Test {
 protected:
  struct Image {
    std::vector<Pair> slots;
    std::vector<std::uint8_t> passed;
    std::vector<std::byte> slabs;
    std::vector<std::uint32_t> slab_sizes;
    std::vector<std::uint64_t> cells;
    std::uint32_t slabs_used = 0;
  };

  void use_blocks() { fixture_ = std::make_unique<Fixture>(limits(), kGroups, 1); }
  void use_cells() { fixture_ = std::make_unique<Fixture>(limits(), kGroups, 0, 1); }
  SteppedTable& table() { return *fixture_->table; }

  // Slots from `first` on whose keys owe so much of 100.
  void fill(std::size_t first, std::size_t last, Cost cost) {
    const StoredLimit& limit = *fixture_->known.find(kFiller);
    for (std::size_t slot = first; slot < last; ++slot) {
      std::uint64_t word = limit.idle(testing::at(kBegin));
      Answer answer;
      EXPECT_EQ(limit.step(word, testing::at(kBegin), cost, answer.decision, answer.charge.receipt),
                Stepped::changed);
      fixture_->slots()[slot] = {.key = (1000 + slot) << 28U | (kFiller + 1), .state = word};
    }
  }

  void remember() {
    const auto slots = fixture_->slots();
    const std::byte* const slabs = fixture_->slab_bytes.data();
    image_ = {.slots = {slots.begin(), slots.end()},
              .passed = fixture_->passed,
              .slabs = {slabs, slabs + fixture_->slab_bytes.size()},
              .slab_sizes = fixture_->slab_sizes,
              .cells = fixture_->cells,
              .slabs_used = fixture_->slabs_used};
  }
  void reset() {
    std::copy(image_.slots.begin(), image_.slots.end(), fixture_->slots().begin());
    fixture_->passed = image_.passed;
    std::copy(image_.slabs.begin(), image_.slabs.end(), fixture_->slab_bytes.data());
    fixture_->slab_sizes = image_.slab_sizes;
    std::copy(image_.cells.begin(), image_.cells.end(), fixture_->cells.begin());
    fixture_->slabs_used = image_.slabs_used;
    fixture_->restart();
  }

  Interleaver::Watched watched() {
    return {.slots = fixture_->slots().data(), .passed = fixture_->passed};
  }

  struct Slots {
    int confirmed = 0;
    int tentative = 0;
  };
  Slots slots_of(const Digest& key) {
    Slots found;
    for (const Pair& pair : fixture_->slots()) {
      if (pair.key >> 28U != SteppedTable::fingerprint_of(key)) continue;
      ++((pair.key & kTentativeBit) != 0 ? found.tentative : found.confirmed);
    }
    return found;
  }

  std::uint64_t used(const Digest& key, Now now = kNow) {
    const auto entry = table().read(key, now);
    return entry ? entry->decision.limit - entry->decision.remaining : 0;
  }

  // Of ten, for a key without a slot.
  std::uint64_t left_in_cell(const Digest& key) {
    return table().decide(check_of(key, kLogOfTen, 0), kNow).decision.remaining;
  }

  // What holds after every schedule: no double, nothing left half done, `passed` as a recount finds
  // it. While a thread is stopped, `passed` may be too high.
  void expect_sound(bool all_ended = true) {
    for (const Digest& key : {kKey, kOther}) {
      const Slots slots = slots_of(key);
      EXPECT_LE(slots.confirmed, 1) << "slots of key " << key.low;
      if (all_ended) {
        EXPECT_EQ(slots.tentative, 0) << "key " << key.low;
      }
    }
    std::copy(fixture_->slots().begin(), fixture_->slots().end(), mirror_.slots().begin());
    mirror_.table->recount_passed();
    for (std::size_t group = 0; group < kGroups; ++group) {
      EXPECT_GE(fixture_->passed[group], mirror_.passed[group]) << "passed of group " << group;
      if (all_ended) {
        EXPECT_EQ(fixture_->passed[group], mirror_.passed[group]) << "passed of group " << group;
      }
    }
  }

  // Every schedule of two bodies from the table as it is now; `expect` states what this scenario
  // adds to expect_sound.
  void explore(const Interleaver::Bodies& bodies, const std::function<void()>& expect,
               std::optional<int> switches = std::nullopt) {
    remember();
    const std::size_t schedules =
        interleaver_.explore({.watched = watched(),
                              .reset = [this] { reset(); },
                              .bodies = bodies,
                              .check =
                                  [&] {
                                    expect_sound();
                                    expect();
                                    if (!HasFailure()) return true;
                                    ADD_FAILURE() << "schedule: " << interleaver_.schedule();
                                    return false;
                                  },
                              .switches = switches});
    std::cout << schedules << " schedules\n";
    EXPECT_GT(schedules, 5U) << "nothing was interleaved";
    EXPECT_LT(schedules, Interleaver::Space{}.most) << "do they hold each other up for ever?";
  }

  // The first body stops for ever after each number of its steps; the other one gets its answer.
  void stop_everywhere(const Interleaver::Bodies& bodies, const std::function<void()>& expect) {
    remember();
    std::size_t steps = 1;
    for (std::size_t stop = 0; stop <= steps; ++stop) {
      reset();
      interleaver_.run_stopping(watched(), bodies, stop, [&] {
        expect_sound(false);
        expect();
      });
      steps = interleaver_.steps_of(0);
      expect_sound();
      if (HasFailure()) {
        ADD_FAILURE() << "stopped after " << stop << ": " << interleaver_.schedule();
        return;
      }
    }
    std::cout << steps << " places to stop at\n";
  }

  void decide(int thread, const Check& check, Now now = kNow) {
    answers_[static_cast<std::size_t>(thread)] = table().decide(check, now);
  }
  [[nodiscard]] int admitted() const {
    return static_cast<int>(std::count_if(answers_.begin(), answers_.end(),
                                          [](const Answer& a) { return a.decision.allowed(); }));
  }

  using Fixture = TableFixture<SteppedAccess>;
  std::unique_ptr<Fixture> fixture_ = std::make_unique<Fixture>(limits(), kGroups, 0);
  Fixture mirror_{limits(), kGroups, 0};
  Image image_;
  std::array<Answer, 2> answers_;
  Interleaver interleaver_;
};

}  // namespace sluice::store
