// Limits by number: one for each limit, the same in all processes, given away only when forgotten.

#include "store/local/limit_registry.h"

#include "store/local/state_file_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Nanos kPeriod = 1h;  // of all limits here; a full bucket drains in as much

Now after(Nanos time) {
  return testing::at(Nanos{std::chrono::hours{24 * 365 * 50}}.count() + time.count());
}

Limit of_amount(std::uint64_t amount) {
  return {.algorithm = Algorithm::token_bucket, .amount = amount, .period = kPeriod};
}

// As many different limits as there are numbers.
std::vector<LimitNumber> use_all(LocalStore& store, Nanos when, std::uint64_t first = 1) {
  std::vector<LimitNumber> numbers;
  const std::size_t all = store.status().limits;
  for (std::uint64_t i = 0; i < all; ++i) {
    numbers.push_back(store.use(of_amount(first + i), after(when)).value());
  }
  return numbers;
}

std::unique_ptr<LocalStore> open_anonymous() { return open_file("", after(0s)); }

TEST(LimitRegistry, GivesEveryLimitANumberAndTheSameLimitTheSame) {
  const std::unique_ptr<LocalStore> store = open_anonymous();
  std::set<LimitNumber> numbers;
  const std::vector<testing::Subject> subjects = testing::all_subjects();
  for (const testing::Subject& subject : subjects) {
    const LimitNumber number = store->use(subject.limit, after(0s)).value();
    EXPECT_TRUE(numbers.insert(number).second) << subject.name;
    EXPECT_EQ(store->use(subject.limit, after(1s)).value(), number) << subject.name;
    EXPECT_EQ(store->limit(number).limit().amount, subject.limit.amount);
  }
  EXPECT_EQ(store->status().limits_used, subjects.size());
}

TEST(LimitRegistry, KeepsNumbersOverARestart) {
  const testing::TempFolder folder;
  std::vector<LimitNumber> numbers;
  for (int start = 0; start < 3; ++start) {
    const std::unique_ptr<LocalStore> store = open_file(folder.file("state"), after(0s));
    std::vector<LimitNumber> found;
    for (const testing::Subject& subject : testing::all_subjects()) {
      found.push_back(store->use(subject.limit, after(0s)).value());
    }
    if (start == 0) numbers = found;
    EXPECT_EQ(found, numbers);
  }
}

// What was counted under an override is known as such after a restart.
TEST(LimitRegistry, TellsALimitFromOneThatStandsInForAnother) {
  const testing::TempFolder folder;
  Limit limit = testing::all_subjects().front().limit;
  LimitNumber number = 0;
  {
    const std::unique_ptr<LocalStore> store = open_file(folder.file("state"), after(0s));
    const LimitNumber own = store->use(limit, after(0s)).value();
    limit.stands_in = true;
    number = store->use(limit, after(0s)).value();
    EXPECT_NE(number, own);
  }
  const std::unique_ptr<LocalStore> store = open_file(folder.file("state"), after(0s));
  EXPECT_TRUE(store->limit(number).limit().stands_in);
}

TEST(LimitRegistry, SaysWhenThereAreTooManyLimits) {
  const std::unique_ptr<LocalStore> store = open_anonymous();
  const std::size_t numbers = use_all(*store, 0s).size();
  const auto one_more = store->use(of_amount(1'000'000), after(100h));
  ASSERT_FALSE(one_more);
  EXPECT_THAT(one_more.error().text(),
              HasSubstr(std::to_string(numbers) + " different limits are in use already"));
  EXPECT_THAT(one_more.error().text(), HasSubstr("configure more memory, or use fewer"));
  EXPECT_TRUE(store->use(of_amount(1), after(100h)));  // one that has a number
}

// A number that nobody uses is kept until the counts made with it have drained, and for the grace.
TEST(LimitRegistry, GivesANumberAwayOnlyAfterDrainAndGrace) {
  const std::unique_ptr<LocalStore> store = open_anonymous();
  const std::vector<LimitNumber> numbers = use_all(*store, 0s);
  store->stop_using(numbers[7]);
  store->upkeep(after(0s));
  const Nanos kept = kPeriod + LimitRegistry::kGrace;
  EXPECT_FALSE(store->use(of_amount(1'000'000), after(kept)));
  const auto reused = store->use(of_amount(1'000'000), after(kept + 2s));
  ASSERT_TRUE(reused) << reused.error().text();
  EXPECT_EQ(*reused, numbers[7]);
  EXPECT_EQ(store->limit(*reused).limit().amount, 1'000'000U);
  EXPECT_FALSE(store->use(of_amount(1'000'001), after(100h)));  // the others are in use
}

// Another process says now and then that it wants a limit.
TEST(LimitRegistry, KeepsNumbersThatAnotherProcessUses) {
  const testing::TempFolder folder;
  const std::unique_ptr<LocalStore> one = open_file(folder.file("state"), after(0s));
  const std::unique_ptr<LocalStore> other = open_file(folder.file("state"), after(0s));
  const LimitNumber wanted = other->use(of_amount(1), after(0s)).value();
  for (const LimitNumber number : use_all(*one, 0s)) one->stop_using(number);
  one->upkeep(after(0s));
  other->upkeep(after(100h));
  const std::vector<LimitNumber> reused = use_all(*other, 100h);  // all but the wanted one
  EXPECT_EQ(std::count(reused.begin(), reused.end(), wanted), 1);
  EXPECT_EQ(reused.front(), wanted);
  EXPECT_EQ(other->limit(wanted).limit().amount, 1U);
}

// What is left in slots under a number is never read under the limit that gets it next, to which an
// expired word may look like debt.
TEST(LimitRegistry, ClearsTheSlotsOfANumberBeforeGivingItAway) {
  const testing::TempFolder folder;
  const std::unique_ptr<LocalStore> store = open_file(folder.file("state"), after(0s));
  const Mapping mapping =
      Mapping::open({.memory = Mapping::kMemoryMin, .file = folder.file("state")}, after(0s))
          .value();
  const auto slots_of = [&mapping](LimitNumber number) {
    return std::ranges::count_if(mapping.table().slots, [number](Pair& slot) {
      const std::uint64_t key = load16(&slot).key;
      return key != 0 && Table::limit_number(key) == number;
    });
  };
  const std::vector<LimitNumber> numbers = use_all(*store, 0s);
  for (const LimitNumber number : {numbers[7], numbers[8]}) {
    for (std::uint64_t key = 0; key < 100; ++key) {
      const Digest digest = digest_of(*store, number * 1'000 + key);
      (void)store->decide({.key = digest, .limit = number, .cost = 3}, after(0s));
    }
    ASSERT_EQ(slots_of(number), 100);
  }
  store->stop_using(numbers[7]);
  store->upkeep(after(0s));
  ASSERT_EQ(store->use(of_amount(1'000'000), after(2h)).value(), numbers[7]);
  EXPECT_EQ(slots_of(numbers[7]), 0);
}

// Two openings of a file are two processes to the kernel's locks.
TEST(LimitRegistry, UnderstandsLimitsThatAnotherProcessAdds) {
  const testing::TempFolder folder;
  const std::unique_ptr<LocalStore> one = open_file(folder.file("state"), after(0s));
  const std::unique_ptr<LocalStore> other = open_file(folder.file("state"), after(0s));
  const Digest key = digest_of(*one, 1);
  const LimitNumber number = one->use(of_amount(10), after(0s)).value();
  (void)one->decide({.key = key, .limit = number, .cost = 4}, after(0s));
  const auto entry = other->read(key, after(0s));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->limit, number);
  EXPECT_EQ(entry->decision.remaining, 6U);
  EXPECT_EQ(other->use(of_amount(10), after(0s)).value(), number);
}

// The number of a limit that this process has forgotten may mean another one by now.
TEST(LimitRegistry, UnderstandsNumbersThatAnotherProcessGaveAway) {
  const testing::TempFolder folder;
  const std::unique_ptr<LocalStore> one = open_file(folder.file("state"), after(0s));
  const std::unique_ptr<LocalStore> other = open_file(folder.file("state"), after(0s));
  for (const LimitNumber number : use_all(*other, 0s)) other->stop_using(number);
  other->upkeep(after(0s));

  const Digest key = digest_of(*one, 1);
  const LimitNumber number = one->use(of_amount(5'000), after(2h)).value();
  (void)one->decide({.key = key, .limit = number, .cost = 4'000}, after(2h));
  other->upkeep(after(2h));
  const auto entry = other->read(key, after(2h));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->decision.limit, 5'000U);
  EXPECT_EQ(entry->decision.remaining, 1'000U);
  EXPECT_EQ(other->use(of_amount(5'000), after(2h)).value(), number);
  EXPECT_EQ(other->limit(number).limit().amount, 5'000U);
}

// Ten thousand rules have as many limits: were each compared with all the others, a start would
// take seconds.
TEST(LimitRegistry, LooksAtAFewRecordsPerLimitHoweverManyThereAre) {
  const Mapping mapping = Mapping::open({.memory = std::size_t{64} << 20U}, after(0s)).value();
  const std::unique_ptr<LimitRegistry> registry = LimitRegistry::open(mapping).value();
  constexpr std::uint64_t kLimits = 10'000;
  ASSERT_GT(mapping.limits().size(), kLimits);
  for (std::uint64_t amount = 1; amount <= kLimits; ++amount) {
    ASSERT_TRUE(registry->use(of_amount(amount), LimitRegistry::For::rule, after(0s).wall(), {}));
  }
  EXPECT_EQ(registry->size(), kLimits);
  EXPECT_LE(registry->looks(), mapping.limits().size() + 3 * kLimits);
}

// ---- limits that requests bring along ---------------------------------------------------------

// As many as requests may have.
std::vector<LimitNumber> use_all_for_requests(LocalStore& store, Nanos when) {
  std::vector<LimitNumber> numbers;
  const std::size_t all = store.status().limits;
  for (std::uint64_t i = 0; i < all - all / 4; ++i) {
    numbers.push_back(store.use_for_request(of_amount(1 + i), after(when)).value());
  }
  return numbers;
}

TEST(LimitRegistry, KeepsAQuarterForRules) {
  const std::unique_ptr<LocalStore> store = open_anonymous();
  (void)use_all_for_requests(*store, 0s);
  const auto one_more = store->use_for_request(of_amount(1'000'000), after(0s));
  ASSERT_FALSE(one_more);
  EXPECT_THAT(one_more.error().text(), HasSubstr("no room for limits that requests bring along"));
  EXPECT_TRUE(store->use(of_amount(1'000'000), after(0s)));
  EXPECT_TRUE(store->use_for_request(of_amount(1'000'000), after(0s))) << "now it has a number";
}

// What has a number is found, however many there are, and after a restart.
TEST(LimitRegistry, FindsWhatRequestsBroughtBefore) {
  const testing::TempFolder folder;
  std::vector<LimitNumber> numbers;
  for (int start = 0; start < 2; ++start) {
    const std::unique_ptr<LocalStore> store = open_file(folder.file("state"), after(0s));
    if (start == 0) numbers = use_all_for_requests(*store, 0s);
    ASSERT_FALSE(store->use_for_request(of_amount(1'000'000), after(0s)));
    for (const Nanos when : {Nanos{0s}, Nanos{30min}}) {
      for (const std::size_t i : {std::size_t{0}, std::size_t{7}, numbers.size() - 1}) {
        const auto again = store->use_for_request(of_amount(1 + i), after(when));
        ASSERT_TRUE(again) << start << ' ' << i;
        EXPECT_EQ(*again, numbers[i]);
      }
    }
  }
}

// Upkeep takes back what nobody wants any more before requests find no room: they wait for nothing.
TEST(LimitRegistry, HasRoomForNewAmountsWhenOldOnesAreForgotten) {
  const std::unique_ptr<LocalStore> store = open_anonymous();
  const std::vector<LimitNumber> numbers = use_all_for_requests(*store, 0s);
  for (const LimitNumber number : numbers) {
    if (number != numbers[7]) store->stop_using(number);
  }
  store->upkeep(after(0s));
  const Nanos kept = kPeriod + LimitRegistry::kGrace;
  store->upkeep(after(kept));
  EXPECT_FALSE(store->use_for_request(of_amount(1'000'000), after(kept)));
  store->upkeep(after(kept + 2s));
  EXPECT_EQ(store->status().limits_used, 1U);
  EXPECT_EQ(store->use_for_request(of_amount(8), after(kept + 2s)).value(), numbers[7]);
  EXPECT_TRUE(store->use_for_request(of_amount(1'000'000), after(kept + 2s)));
}

// Where nobody does the upkeep a request does, but not each one: it looks at the whole table.
TEST(LimitRegistry, TakesNumbersBackForARequestNowAndThen) {
  const Mapping mapping = Mapping::open({.memory = Mapping::kMemoryMin}, after(0s)).value();
  const std::unique_ptr<LimitRegistry> registry = LimitRegistry::open(mapping).value();
  int cleared = 0;
  const auto clear = [&cleared](const LimitRegistry::Dropped&) { ++cleared; };
  const auto use = [&](std::uint64_t amount, Nanos when) {
    return registry->use(of_amount(amount), LimitRegistry::For::request, after(when).wall(), clear);
  };
  const std::size_t all = mapping.limits().size();
  for (std::uint64_t i = 0; i < all - all / 4; ++i) ASSERT_TRUE(use(1 + i, 0s));
  EXPECT_FALSE(use(1'000'000, 1h));  // looks, in vain
  for (LimitNumber number = 0; number < 8; ++number) registry->stop_using(number);
  registry->touch(after(1h).wall());
  const Nanos kept = 1h + kPeriod + LimitRegistry::kGrace + 2s;
  EXPECT_FALSE(use(1'000'000, kept - 1min));  // looks, in vain
  EXPECT_FALSE(use(1'000'000, kept)) << "too soon to look again";
  EXPECT_EQ(cleared, 0);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(use(1'000'000 + i, kept + 1min)) << i;
  EXPECT_FALSE(use(2'000'000, kept + 1min));
  EXPECT_EQ(cleared, 1);
}

// A number that somebody used until now stands for counts as young as that, however long ago the
// limit was first asked for.
TEST(LimitRegistry, KeepsWhatWasInUseUntilNow) {
  const std::unique_ptr<LocalStore> store = open_anonymous();
  const std::vector<LimitNumber> numbers = use_all(*store, 0s);
  store->stop_using(numbers[7]);  // at 100h: nobody has said anything since the start
  EXPECT_FALSE(store->use(of_amount(1'000'000), after(100h)));
  EXPECT_EQ(store->use(of_amount(1'000'000), after(102h)).value(), numbers[7]);
}

// Each has looked before the other adds something, and knows of it all the same.
TEST(LimitRegistry, FindsWhatAnotherProcessAddedMeanwhile) {
  const testing::TempFolder folder;
  const std::unique_ptr<LocalStore> one = open_file(folder.file("state"), after(0s));
  const std::unique_ptr<LocalStore> other = open_file(folder.file("state"), after(0s));
  std::set<LimitNumber> numbers;
  for (std::uint64_t amount = 1; amount <= 100; ++amount) {
    LocalStore& first = amount % 3 == 0 ? *one : *other;
    LocalStore& second = amount % 3 == 0 ? *other : *one;
    const LimitNumber number = first.use(of_amount(amount), after(0s)).value();
    EXPECT_TRUE(numbers.insert(number).second) << amount;
    EXPECT_EQ(second.use(of_amount(amount), after(0s)).value(), number) << amount;
  }
  EXPECT_EQ(one->status().limits_used, 100U);
}

// A number that this process knows by a limit may be another one's since.
TEST(LimitRegistry, DoesNotFindWhatAnotherProcessGaveAway) {
  const testing::TempFolder folder;
  const std::unique_ptr<LocalStore> one = open_file(folder.file("state"), after(0s));
  const std::unique_ptr<LocalStore> other = open_file(folder.file("state"), after(0s));
  const std::vector<LimitNumber> before = use_all(*one, 0s);
  ASSERT_EQ(other->use(of_amount(8), after(0s)).value(), before[7]);  // has looked at all of them
  other->stop_using(before[7]);
  for (const LimitNumber number : before) one->stop_using(number);
  for (LocalStore* const store : {one.get(), other.get()}) store->upkeep(after(0s));

  constexpr std::uint64_t kOthers = 1'000'000;
  (void)use_all(*one, 100h, kOthers);  // in all the numbers
  for (std::size_t i = 1; i < before.size(); i += 2) one->stop_using(before[i]);
  one->upkeep(after(100h));
  one->upkeep(after(200h));  // it wants the others
  const LimitNumber again = other->use(of_amount(8), after(200h)).value();
  EXPECT_EQ(other->limit(again).limit().amount, 8U);
  EXPECT_EQ(one->use(of_amount(8), after(200h)).value(), again);
  for (std::size_t i = 0; i < before.size(); i += 2) {  // those in use are where they were
    ASSERT_EQ(other->use(of_amount(kOthers + i), after(200h)).value(), before[i]) << i;
  }
}

}  // namespace
}  // namespace sluice::store
