#include "base/flat_map.h"

#include "base/random.h"
#include "support/property.h"
#include <sluice/address.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

// ---- hashes -------------------------------------------------------------------------------------

TEST(FlatHash, TellsTextsApartByLengthOrderAndSeed) {
  const std::string zeros(40, '\0');
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size <= zeros.size(); ++size) {
    seen.insert(hash_text(0, std::string_view{zeros}.substr(0, size)));
    seen.insert(hash_text(1, std::string_view{zeros}.substr(0, size)));
  }
  seen.insert(hash_text(0, "abcdefgh12345678"));
  seen.insert(hash_text(0, "12345678abcdefgh"));
  EXPECT_EQ(seen.size(), 2 * (zeros.size() + 1) + 2);
}

// A table uses the lowest bits and the highest seven. Keys that differ in one bit must not meet in
// them more often than by accident.
TEST(FlatHash, SpreadsKeysThatDifferInOneBit) {
  std::set<std::uint64_t> low;
  std::set<std::uint64_t> high;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t hash = FlatHash{}(std::uint64_t{1} << bit);
    low.insert(hash & 0xfffU);
    high.insert(hash >> 57U);
  }
  EXPECT_GT(low.size(), 55U);
  EXPECT_GT(high.size(), 40U);  // of 128
}

TEST(FlatHash, TakesBothHalvesOfAnAddressAndTheSeed) {
  const IpAddress one = *IpAddress::parse("2001:db8::1");
  EXPECT_NE(hash_address(0, one), hash_address(0, *IpAddress::parse("2001:db8::2")));
  EXPECT_NE(hash_address(0, one), hash_address(0, *IpAddress::parse("2001:db9::1")));
  EXPECT_NE(hash_address(0, one), hash_address(1, one));
}

// ---- the map ------------------------------------------------------------------------------------

// Puts keys into a few places, so that they stand in each other's way; the tags are few as well.
struct CrowdingHash {
  std::uint64_t places = 1;
  std::uint64_t operator()(std::uint64_t key) const noexcept {
    return key % places * 5 | (key % 2) << 57U;
  }
};

// The slow and obvious map says what the right answer is, after every single change.
template <class Hash>
void expect_same_as_a_plain_map(FlatMap<std::uint64_t, std::uint64_t, Hash> map, Random random,
                                std::uint64_t keys) {
  std::map<std::uint64_t, std::uint64_t> plain;
  for (int change = 0; change < 300; ++change) {
    const std::uint64_t key = random.below(keys);
    switch (random.below(4)) {
      case 0:
      case 1: {
        const auto inserted = map.insert(key, static_cast<std::uint64_t>(change));
        const auto [place, is_new] = plain.try_emplace(key, static_cast<std::uint64_t>(change));
        RC_ASSERT(inserted.is_new == is_new);
        RC_ASSERT(inserted.value == place->second);
        break;
      }
      case 2: ++map[key], ++plain[key]; break;
      default: RC_ASSERT(map.erase(key) == (plain.erase(key) == 1));
    }
    RC_ASSERT(map.size() == plain.size());
    for (std::uint64_t one = 0; one < keys; ++one) {
      const std::uint64_t* const found = std::as_const(map).find(one);
      const auto expected = plain.find(one);
      RC_ASSERT((found != nullptr) == (expected != plain.end()));
      if (found != nullptr) RC_ASSERT(*found == expected->second);
    }
  }
  std::map<std::uint64_t, std::uint64_t> visited;
  map.for_each([&](std::uint64_t key, std::uint64_t value) {
    RC_ASSERT(visited.emplace(key, value).second);
  });
  RC_ASSERT(visited == plain);
}

TEST(FlatMap, AnswersLikeAPlainMapUnderRandomChanges) {
  testing::check_property(50, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    expect_same_as_a_plain_map(FlatMap<std::uint64_t, std::uint64_t>{}, Random{seed},
                               *rc::gen::inRange<std::uint64_t>(1, 100));
  });
}

// Long runs of keys that all began to be looked for at the same place, also around the end of the
// table, are what erasing has to get right.
TEST(FlatMap, AnswersLikeAPlainMapWhenKeysCollide) {
  testing::check_property(50, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const CrowdingHash hash{*rc::gen::inRange<std::uint64_t>(1, 8)};
    expect_same_as_a_plain_map(FlatMap<std::uint64_t, std::uint64_t, CrowdingHash>{hash},
                               Random{seed}, *rc::gen::inRange<std::uint64_t>(1, 40));
  });
}

TEST(FlatMap, IsEmptyAtFirstAndAgain) {
  FlatMap<std::uint64_t, int> map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(7U), nullptr);
  EXPECT_FALSE(map.erase(7U));
  map.for_each([](std::uint64_t, int) { FAIL() << "there is nothing to visit"; });
  map.insert(7, 1);
  EXPECT_TRUE(map.erase(7U));
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(7U), nullptr);
}

TEST(FlatMap, FindsTextsByViewsOfThem) {
  FlatMap<std::string, int> map;
  map[std::string_view{"a text that is too long to be kept inside of a string"}] = 1;
  map[std::string_view{}] = 2;
  const std::string other = "a text that is too long to be kept inside of a string, and more";
  EXPECT_EQ(*map.find(std::string_view{other}.substr(0, other.size() - 10)), 1);
  EXPECT_EQ(*map.find(std::string_view{}), 2);
  EXPECT_EQ(map.find(std::string_view{other}), nullptr);
}

TEST(FlatMap, KeepsTheFirstValueOfAKey) {
  FlatMap<std::uint64_t, int> map;
  EXPECT_TRUE(map.insert(1, 10).is_new);
  const auto again = map.insert(1, 20);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.value, 10);
  again.value = 30;
  EXPECT_EQ(*map.find(1U), 30);
}

// What was erased is destroyed at once, and what moves to its place is not.
TEST(FlatMap, OwnsItsValues) {
  FlatMap<std::uint64_t, std::shared_ptr<int>> map;
  const auto shared = std::make_shared<int>(1);
  for (std::uint64_t key = 0; key < 100; ++key) map.insert(key, shared);
  EXPECT_EQ(shared.use_count(), 101);
  for (std::uint64_t key = 0; key < 100; key += 2) map.erase(key);
  EXPECT_EQ(shared.use_count(), 51);
  FlatMap<std::uint64_t, std::shared_ptr<int>> taken = std::move(map);
  EXPECT_EQ(taken.size(), 50U);
  EXPECT_EQ(*taken.find(99U), shared);
  taken = {};
  EXPECT_EQ(shared.use_count(), 1);
}

// What comes and goes, as connections do, needs no more room than what is there at once: keys that
// have left do not fill the table.
TEST(FlatMap, NeedsRoomOnlyForWhatIsThere) {
  static std::size_t copies = 0;
  struct Counted {
    Counted() { ++copies; }
  };
  FlatMap<std::uint64_t, Counted> map;
  for (std::uint64_t key = 0; key < 10; ++key) map.insert(key, {});
  const std::size_t before = copies;
  constexpr std::uint64_t kTurns = 10'000;
  for (std::uint64_t key = 10; key < kTurns; ++key) {
    map.erase(key - 10);
    map.insert(key, {});
  }
  // One for the hole and one for the argument of each turn; a table that grew would make more.
  EXPECT_EQ(copies - before, 2 * (kTurns - 10));
}

}  // namespace
}  // namespace sluice
