// What counter_table.h promises: names, edits, files, room.
#include <sluice/core/limit_text.h>
#include <sluice/counter_table.h>
#include <sluice/limiter.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Now kStart{.mono = MonoTime{Nanos{1h}}, .wall_offset = Nanos{1'700'000'000s}};

const ManualClock kClock{kStart};

std::shared_ptr<CounterTable> open(const TableOptions& options = {.background = false,
                                                                  .clock = &kClock}) {
  Parsed<std::shared_ptr<CounterTable>> table = CounterTable::open(options);
  EXPECT_TRUE(table) << table.error().text();
  return *std::move(table);
}

Limiter limiter_in(const std::shared_ptr<CounterTable>& table, std::string_view limit,
                   std::string name = "default", OnChange on_change = OnChange::keep) {
  return Limiter{
      limit, {.name = std::move(name), .table = table, .on_change = on_change, .clock = &kClock}};
}

class Folder {
 public:
  Folder() {
    std::string path = (fs::temp_directory_path() / "sluice-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  [[nodiscard]] std::string file() const { return (path_ / "counts").string(); }

 private:
  fs::path path_;
};

// ---- names and edits --------------------------------------------------------------------------

TEST(Table, TellsLimitersApartByTheirNames) {
  const auto table = open();
  Limiter read = limiter_in(table, "1/1h", "read");
  Limiter write = limiter_in(table, "1/1h", "write");
  Limiter read_again = limiter_in(table, "1/1h", "read");
  EXPECT_TRUE(read.allow("key"));
  EXPECT_TRUE(write.allow("key"));
  EXPECT_FALSE(read_again.allow("key")) << "the same name, the same counts";
}

TEST(Table, KeepsWhatWasUsedWhenALimitChanges) {
  const auto table = open();
  ASSERT_TRUE(limiter_in(table, "10/1h").check("key", 4).allowed());
  EXPECT_EQ(limiter_in(table, "20/1h").peek("key").remaining, 16U);
}

TEST(Table, KeepsTheShareOrStartsAfreshIfAskedTo) {
  const auto table = open();
  ASSERT_TRUE(limiter_in(table, "10/1h").check("key", 4).allowed());
  EXPECT_EQ(limiter_in(table, "20/1h", "default", OnChange::proportional).peek("key").remaining,
            12U);
  EXPECT_EQ(limiter_in(table, "20/1h", "default", OnChange::reset).peek("key").remaining, 20U);
}

TEST(Table, KeepsWhatWasUsedUnderAnotherAlgorithm) {
  const auto table = open();
  ASSERT_TRUE(limiter_in(table, "10/1h").check("key", 4).allowed());
  const Limit windows = core::parse_limit("10/1h", Algorithm::fixed_window).value();
  Limiter limiter{windows, {.table = table, .clock = &kClock}};
  EXPECT_EQ(limiter.peek("key").remaining, 6U);
}

// ---- looking into it --------------------------------------------------------------------------

std::vector<KeyEntry> all_of(CounterTable& table, std::size_t at_once) {
  std::vector<KeyEntry> all;
  std::size_t cursor = 0;
  do {
    const std::vector<KeyEntry> some = table.list(cursor, at_once, kStart);
    EXPECT_LE(some.size(), at_once);
    all.insert(all.end(), some.begin(), some.end());
  } while (cursor != 0);
  return all;
}

TEST(Table, ListsKeysInDebtByTheirFingerprints) {
  const auto table = open();
  Limiter limiter{{"10/1h", "50/1h"}, {.table = table, .clock = &kClock}};
  ASSERT_TRUE(limiter.check("key", 4).allowed());
  ASSERT_TRUE(limiter.check("other", 1).allowed());
  (void)limiter.peek("a third, which owes nothing");
  for (const std::size_t at_once : {1U, 3U, 100U}) {
    const std::vector<KeyEntry> entries = all_of(*table, at_once);
    EXPECT_EQ(entries.size(), 4U);
    for (std::size_t limit = 0; limit < 2; ++limit) {
      const auto found =
          std::ranges::find(entries, limiter.fingerprint("key", limit), &KeyEntry::fingerprint);
      ASSERT_NE(found, entries.end());
      EXPECT_EQ(found->limit.amount, limit == 0 ? 10U : 50U);
      EXPECT_EQ(found->decision.remaining, found->limit.amount - 4);
    }
  }
}

TEST(Table, SaysHowFullItIs) {
  const auto table = open({.memory = std::size_t{4} << 20U, .background = false, .clock = &kClock});
  Limiter limiter = limiter_in(table, "10/1h");
  for (int i = 0; i < 100; ++i) (void)limiter.allow(std::to_string(i));
  TableStatus status = table->status();
  EXPECT_EQ(status.bytes, std::size_t{4} << 20U);
  EXPECT_GT(status.slots, 100'000U) << "32 bytes each are plenty";
  EXPECT_EQ(status.inserted, 100U);
  EXPECT_EQ(status.limits_used, 1U);
  EXPECT_GE(status.limits, 64U);
  Now later = kStart;
  later.mono += 2h;
  (void)limiter.check("somebody", 5, later);
  table->upkeep(later);
  status = table->status();
  EXPECT_EQ(status.slots_used, 1U) << "the others owe nothing any more";
}

// ---- a full table -----------------------------------------------------------------------------

// Keys that owe everything, in every slot there is.
struct Full {
  std::shared_ptr<CounterTable> table =
      open({.memory = std::size_t{4} << 20U, .background = false, .clock = &kClock});
  Limiter offenders = limiter_in(table, "2/1h", "offenders");
  std::size_t count = table->status().slots + table->status().slots / 2;

  Full() {
    for (std::size_t i = 0; i < count; ++i) (void)offenders.check(std::to_string(i), 2);
  }
};

TEST(FullTable, ForgetsNoOffenderForNewcomers) {
  Full full;
  const TableStatus status = full.table->status();
  EXPECT_GT(status.approximated, 0U);
  EXPECT_EQ(status.untracked, 0U);
  EXPECT_EQ(status.evicted, 0U) << "nobody owed less";
  std::size_t remembered = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    remembered += full.offenders.peek(std::to_string(i)).remaining == 0;
  }
  EXPECT_EQ(remembered, 1000U) << "who came first is still there";
}

// What newcomers to a full table are admitted of forty requests under a limit of two.
TEST(FullTable, LimitsAllowsOrRejectsNewcomersAsTold) {
  Full full;
  const auto admitted = [&](OnTableFull on_table_full, const std::string& key) {
    Limiter limiter{"2/1h",
                    {.name = std::string{to_string(on_table_full)},
                     .table = full.table,
                     .on_table_full = on_table_full,
                     .clock = &kClock}};
    int count = 0;
    for (int i = 0; i < 40; ++i) count += limiter.check(key).allowed();
    return count;
  };
  const TableStatus before = full.table->status();
  int approximated = 0;
  int untracked = 0;
  int rejected = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string key = "newcomer " + std::to_string(i);
    const int most = admitted(OnTableFull::approximate, key);
    EXPECT_LE(most, 4) << "twice the limit";
    approximated += most;
    untracked += admitted(OnTableFull::allow, key);
    rejected += 40 - admitted(OnTableFull::reject, key);
  }
  EXPECT_LE(approximated, 80);
  EXPECT_GT(untracked, 400) << "some find one of the last slots";
  EXPECT_GT(rejected, 400);
  const TableStatus after = full.table->status();
  EXPECT_GT(after.approximated, before.approximated + 400);
  EXPECT_GT(after.untracked, 400U);
  EXPECT_GT(after.rejected_for_room, 400U);
}

TEST(FullTable, ForgetsThoseWhoOweLeastForOneWhoOwesMore) {
  const auto table = open({.memory = std::size_t{4} << 20U, .background = false, .clock = &kClock});
  Limiter limiter{"100/1h",
                  {.table = table, .on_table_full = OnTableFull::allow, .clock = &kClock}};
  const std::size_t count = table->status().slots + table->status().slots / 2;
  for (std::size_t i = 0; i < count; ++i) (void)limiter.check(std::to_string(i), 1);
  const std::uint64_t forgiven = table->status().forgiven;
  ASSERT_TRUE(limiter.check("offender", 90).allowed());
  EXPECT_EQ(limiter.peek("offender").remaining, 10U);
  EXPECT_EQ(table->status().evicted, 1U);
  EXPECT_EQ(table->status().forgiven, forgiven + 1);
}

// ---- files ------------------------------------------------------------------------------------

TEST(StateFile, CountsSurviveTheLimiter) {
  const Folder folder;
  const LimiterOptions options{
      .name = "api",
      .own_table = {.memory = std::size_t{4} << 20U, .file = folder.file()},
      .clock = &kClock};
  {
    Limiter limiter{"10/1h", options};
    ASSERT_TRUE(limiter.check("key", 4).allowed());
  }
  EXPECT_EQ(fs::status(folder.file()).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  {
    Limiter limiter{"10/1h", options};
    EXPECT_EQ(limiter.peek("key").remaining, 6U);
  }
  Limiter changed{"20/1h", options};
  EXPECT_EQ(changed.peek("key").remaining, 16U) << "and an edit";
}

TEST(StateFile, RefusesWhatIsNotItsOwnUnlessItMayStartFresh) {
  const Folder folder;
  std::ofstream{folder.file()} << "my diary\n" << std::string(100'000, ' ');
  fs::permissions(folder.file(), fs::perms::owner_read | fs::perms::owner_write);
  TableOptions options{.memory = std::size_t{4} << 20U,
                       .file = folder.file(),
                       .background = false,
                       .clock = &kClock};
  const auto refused = CounterTable::open(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr(folder.file()));
  EXPECT_THAT(refused.error().text(), HasSubstr("or remove it"));
  options.start_fresh = true;
  const auto opened = CounterTable::open(options);
  ASSERT_TRUE(opened) << opened.error().text();
}

TEST(StateFile, GoesWithTheMemoryItWasMadeFor) {
  const Folder folder;
  TableOptions options{.memory = std::size_t{4} << 20U,
                       .file = folder.file(),
                       .background = false,
                       .clock = &kClock};
  ASSERT_TRUE(CounterTable::open(options));
  options.memory *= 2;
  const auto refused = CounterTable::open(options);
  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.error().remedy.empty());
}

TEST(Table, HasAThreadForItsUpkeepUnlessToldOtherwise) {
  const auto table = open({.memory = std::size_t{4} << 20U});
  Limiter limiter{"1/1h", {.table = table}};
  EXPECT_TRUE(limiter.allow());
}  // which is here told to end, and does not keep anybody waiting

}  // namespace
}  // namespace sluice
