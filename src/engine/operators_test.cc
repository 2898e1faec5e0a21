// What operators do at run time: lists, overrides, blocks, edits.
#include "base/text.h"
#include "engine/block_book.h"
#include "engine/engine_fixture.h"
#include "engine/lists.h"
#include "engine/overrides.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

class Operators : public EngineFixture {
 protected:
  static ListEntry entry(const char* subject, std::optional<WallTime> until = std::nullopt) {
    return {.subject = Subject::parse(subject).value(), .expires = until, .note = {}};
  }
  void use_lists(std::vector<ListEntry> allow, std::vector<ListEntry> deny) {
    worker_->use(std::make_shared<const Lists>(std::move(allow), std::move(deny)));
  }
  void use(std::vector<rules::Rule> all, std::vector<Override> overrides = {}) {
    auto made = Snapshot::make(
        std::make_shared<const rules::RuleSet>(rules::RuleList{.rules = std::move(all)}),
        std::move(overrides), *limits_, now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  }
  static Override times(const char* subject, const char* multiplier,
                        std::optional<WallTime> until = std::nullopt) {
    return {.subject = Subject::parse(subject).value(),
            .permille = parse_multiplier(multiplier).value(),
            .expires = until,
            .note = {}};
  }
  const Sent paid_{.headers = {{"x-api-key", "paid-key"}}};
};

// ---- subjects ---------------------------------------------------------------------------------

TEST_F(Operators, WriteWhomTheyMean) {
  for (const char* written : {"ip=10.0.0.0/8", "ip=2001:db8::/32", "ip=192.0.2.1", "user=ann",
                              "api_key=acme-1", "tenant=a=b"}) {
    const auto subject = Subject::parse(written);
    ASSERT_TRUE(subject) << written;
    EXPECT_EQ(subject->written(), written);
  }
  for (const char* wrong : {"", "ann", "usr=ann", "user=", "ip=ann", "ip=10.1.0.0/8"}) {
    EXPECT_FALSE(Subject::parse(wrong)) << wrong;
  }
}

TEST_F(Operators, WriteMultipliers) {
  const auto multiplier = [](const char* text) { return parse_multiplier(text).value_or(0); };
  EXPECT_EQ(multiplier("2"), 2000U);
  EXPECT_EQ(multiplier("1.5"), 1500U);
  EXPECT_EQ(multiplier("0.001"), 1U);
  EXPECT_EQ(multiplier("1000"), 1'000'000U);
  for (const char* wrong : {"", "x", "2x", "0", "0.0001", "1000.001", "1001", "-1", "1.", ".5",
                            "+2", "1e2", "99999999999999999999"}) {
    EXPECT_EQ(multiplier(wrong), 0U) << wrong;
  }
  for (const char* text : {"2", "1.5", "0.25", "0.001"}) {
    EXPECT_EQ(format_thousandths(multiplier(text)), text);
  }
}

// ---- lists ------------------------------------------------------------------------------------

TEST_F(Operators, LetSomeAddressesPassUncounted) {
  use({rule("all", {limit("1/1h")})});
  use_lists({entry("ip=192.0.2.0/24")}, {});
  EXPECT_EQ(passed(5, {.ip = "192.0.2.7"}), 5);
  EXPECT_EQ(reason_, Reason::allow_listed);
  EXPECT_EQ(passed(5, {.ip = "192.0.3.7"}), 1) << "and nothing was charged by the others";
}

TEST_F(Operators, LetTheAllowListBypassUnmatched) {
  rules::Rule login = rule("login", {limit("5/1m")});
  login.match.paths = {"/login"};
  EngineFixture::use({login}, rules::Unmatched::reject);
  EXPECT_EQ(ask({}), Action::reject);
  use_lists({entry("ip=192.0.2.1")}, {});
  EXPECT_EQ(ask({}), Action::pass);
}

TEST_F(Operators, DenyAddressesUsersAndKeys) {
  use({rule("all", {limit("100/1h")})});
  use_lists({}, {entry("ip=2001:db8::/32"), entry("api_key=paid-key")});
  EXPECT_EQ(ask({.ip = "2001:db8::1"}), Action::reject);
  EXPECT_EQ(status_, 403);
  EXPECT_EQ(reason_, Reason::deny_listed);
  EXPECT_EQ(ask(paid_), Action::reject);
  EXPECT_EQ(ask({.headers = {{"x-api-key", "free-key"}}}), Action::pass);
  EXPECT_EQ(ask({.headers = {{"x-api-key", "forged paid-key"}}}), Action::pass)
      << "what is not proven is not listed";
}

TEST_F(Operators, PutAllowAboveDeny) {
  use({rule("all", {limit("100/1h")})});
  use_lists({entry("ip=192.0.2.1")}, {entry("ip=192.0.2.0/24")});
  EXPECT_EQ(ask({.ip = "192.0.2.1"}), Action::pass);
  EXPECT_EQ(ask({.ip = "192.0.2.2"}), Action::reject);
}

TEST_F(Operators, ListForAWhile) {
  use({rule("all", {limit("100/1h")})});
  use_lists({}, {entry("ip=192.0.2.1", now_.wall() + 1h)});
  EXPECT_EQ(ask({}), Action::reject);
  now_ = at(1h - 1ns);
  EXPECT_EQ(ask({}), Action::reject);
  now_ = at(1h);
  EXPECT_EQ(ask({}), Action::pass);
}

// An address is refused before anything is spent on who it claims to be.
TEST_F(Operators, DenyAddressesBeforeRulesThatWantNoProof) {
  rules::Rule early = rule("early", {limit("5/1h")});
  early.before_auth = true;
  use({early});
  use_lists({}, {entry("ip=192.0.2.9")});
  EXPECT_EQ(passed(9, {.ip = "192.0.2.9"}), 0);
  EXPECT_EQ(passed(9, {.ip = "192.0.2.1"}), 5);
}

// ---- overrides --------------------------------------------------------------------------------

TEST_F(Operators, GiveSomebodyMore) {
  use({rule("keys", {limit("10/1h")}, {per(Kind::api_key)}),
       rule("all", {limit("1000/1h")}, {per(Kind::ip)})},
      {times("api_key=paid-key", "2.5")});
  EXPECT_EQ(passed(50, paid_), 25);
  EXPECT_EQ(passed(50, {.headers = {{"x-api-key", "free-key"}}}), 10);
}

TEST_F(Operators, GiveSomebodyLess) {
  use({rule("ips", {limit("10/1h")}, {per(Kind::ip)})}, {times("ip=192.0.2.0/24", "0.01")});
  EXPECT_EQ(passed(50, {.ip = "192.0.2.1"}), 1) << "never nothing";
  EXPECT_EQ(passed(50, {.ip = "192.0.3.1"}), 10);
}

// What was used stays used, when an override begins and when it ends.
TEST_F(Operators, KeepCountsWhenAnOverrideComesAndGoes) {
  const std::vector<rules::Rule> all{
      rule("keys", {limit("10/1h", Algorithm::fixed_window)}, {per(Kind::api_key)})};
  use(all);
  EXPECT_EQ(passed(50, paid_), 10);
  use(all, {times("api_key=paid-key", "2", now_.wall() + 1min)});
  EXPECT_EQ(passed(50, paid_), 10);
  now_ = at(1min);
  EXPECT_EQ(passed(50, paid_), 0);
}

// `on_change` is for edits of the rule: somebody who has used 150 of 200 has nothing left of 100.
TEST_F(Operators, EditNothingByAnOverrideWhateverTheRuleSaysOfEdits) {
  rules::Rule keys = rule("keys", {limit("100/1h", Algorithm::fixed_window)}, {per(Kind::api_key)});
  keys.on_change = OnChange::proportional;
  use({keys}, {times("api_key=paid-key", "2")});
  EXPECT_EQ(passed(150, paid_), 150);
  use({keys});
  EXPECT_EQ(passed(50, paid_), 0) << "not 25";

  now_ = at(1h);
  EXPECT_EQ(passed(50, paid_), 50);
  use({keys}, {times("api_key=paid-key", "2")});
  EXPECT_EQ(passed(300, paid_), 150) << "50 are used of 200, not 100";
}

// While somebody has an override, an edit holds for all others as the rule says.
TEST_F(Operators, EditInProportionBesideAnOverride) {
  rules::Rule keys = rule("keys", {limit("100/1h", Algorithm::fixed_window)}, {per(Kind::api_key)});
  keys.on_change = OnChange::proportional;
  const Sent free{.headers = {{"x-api-key", "free-key"}}};
  use({keys}, {times("api_key=paid-key", "2")});
  EXPECT_EQ(passed(50, free), 50);
  keys.limits = {limit("200/1h", Algorithm::fixed_window)};
  use({keys}, {times("api_key=paid-key", "2")});
  EXPECT_EQ(passed(300, free), 100) << "half was used, half is left";
}

TEST_F(Operators, MultiplyTheLimitsOfTiers) {
  rules::Rule plans = rule("plans", {limit("10/1h")}, {per(Kind::api_key)});
  plans.tiers = {.by = "client.tier", .values = {{"paid", {limit("50/1h")}}}};
  use({plans}, {times("api_key=paid-key", "2")});
  EXPECT_EQ(passed(150, paid_), 100);
}

TEST_F(Operators, AreToldWhenAMultiplierIsTooLarge) {
  const auto made = Snapshot::make(
      std::make_shared<const rules::RuleSet>(
          rules::RuleList{.rules = {rule("keys", {limit("1000000/1s")}, {per(Kind::api_key)})}}),
      {times("api_key=paid-key", "1000"), times("api_key=free-key", "1000")}, *limits_, now_);
  EXPECT_TRUE(made) << "a thousand million a second is the most there is";
  const auto more = Snapshot::make(
      std::make_shared<const rules::RuleSet>(
          rules::RuleList{.rules = {rule("keys", {limit("2000000/1s")}, {per(Kind::api_key)})}}),
      {times("api_key=paid-key", "1000")}, *limits_, now_);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().text(),
              ::testing::HasSubstr("override api_key=paid-key (multiplier 1000)"));
  EXPECT_THAT(more.error().text(), ::testing::HasSubstr("keys"));
}

// ---- blocks, in words -------------------------------------------------------------------------

class Blocks : public Operators {
 protected:
  static rules::Rule blocking(std::vector<rules::Per> by) {
    rules::Rule made = rule("login", {limit("1/1h")}, std::move(by));
    made.block = rules::Block{.duration = 15min};
    return made;
  }
  // With keys that have used all of their limit.
  void fill_table() {
    const store::LimitNumber full =
        table_->use({.algorithm = Algorithm::fixed_window, .amount = 1, .period = 24h}, now_)
            .value();
    const std::size_t keys = 3 * table_->status().slots;
    std::uint64_t key = 1;
    for (std::size_t i = 0; i < keys; ++i) {
      key = key * 6364136223846793005U + 1442695040888963407U;
      (void)table_->decide({.key = {.low = key ^ key >> 29U, .high = 0},
                            .limit = full,
                            .on_table_full = OnTableFull::reject},
                           now_);
    }
  }
  testing::TempFolder folder_;
};

TEST_F(Blocks, AreWrittenDown) {
  const auto book = BlockBook::open("").value();
  worker_->use(book.get());
  use({blocking({per(Kind::ip), per(Kind::api_key), per(Kind::header, "x-token")})});
  EXPECT_TRUE(book->list(now_.wall()).empty());
  EXPECT_EQ(passed(3, {.headers = {{"x-api-key", "paid-key"}, {"x-token", "hunter22"}},
                       .ip = "2001:db8:1:2:3::4"}),
            1);
  const std::vector<BlockEntry> all = book->list(now_.wall());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rule, "login");
  EXPECT_EQ(all[0].label, "ip=2001:db8:1:2::/64 api_key=paid-key header.x-token=hunt...");
  EXPECT_EQ(all[0].since, now_.wall());
  EXPECT_EQ(all[0].until, now_.wall() + 15min);
  EXPECT_TRUE(book->list(now_.wall() + 15min).empty()) << "it has ended";
}

TEST_F(Blocks, NameTheAddressWhereAValueIsMissing) {
  const auto book = BlockBook::open("").value();
  worker_->use(book.get());
  use({blocking({per(Kind::user)})});
  EXPECT_EQ(passed(3, {.ip = "192.0.2.66"}), 1);
  ASSERT_EQ(book->list(now_.wall()).size(), 1U);
  EXPECT_EQ(book->list(now_.wall())[0].label, "ip=192.0.2.66");
}

// A client of a Unix socket has no address, which is 0.0.0.0 to rules.
TEST_F(Blocks, CallClientsOfUnixSocketsUnix) {
  const auto book = BlockBook::open("").value();
  worker_->use(book.get());
  use({blocking({per(Kind::ip)})});
  EXPECT_EQ(passed(3, {.ip = "0.0.0.0"}), 1);
  ASSERT_EQ(book->list(now_.wall()).size(), 1U);
  EXPECT_EQ(book->list(now_.wall())[0].label, "ip=unix");
}

// Rules of two domains may have one name.
TEST_F(Blocks, NameTheDomainUnlessItIsTheDefaultOne) {
  const auto book = BlockBook::open("").value();
  worker_->use(book.get());
  rules::Rule addresses = blocking({per(Kind::ip)});
  rules::Rule everybody = blocking({});
  addresses.domain = "edge";
  everybody.domain = "other/one";
  use({addresses, everybody});
  EXPECT_EQ(passed(2, {.domain = "edge"}), 1);
  ASSERT_EQ(book->list(now_.wall()).size(), 1U);
  EXPECT_EQ(book->list(now_.wall())[0].label, "ip=192.0.2.1 domain=edge");
  now_ = at(15min);
  EXPECT_EQ(passed(2, {.domain = "other/one"}), 1);
  ASSERT_EQ(book->list(now_.wall()).size(), 1U);
  EXPECT_EQ(book->list(now_.wall())[0].label, "everybody domain=other/one");
}

TEST_F(Blocks, AreReadAfterARestart) {
  const std::string file = folder_.file("blocks");
  {
    const auto book = BlockBook::open(file).value();
    worker_->use(book.get());
    use({blocking({per(Kind::ip)})});
    EXPECT_EQ(passed(3, {}), 1);
    worker_->use(static_cast<BlockBook*>(nullptr));
  }
  const auto book = BlockBook::open(file).value();
  ASSERT_EQ(book->list(now_.wall()).size(), 1U);
  EXPECT_EQ(book->list(now_.wall())[0].label, "ip=192.0.2.1");
  EXPECT_TRUE(book->erase(book->list(now_.wall())[0].block));
  EXPECT_TRUE(book->list(now_.wall()).empty());
}

TEST_F(Blocks, RefuseAFileThatIsNotTheirs) {
  const std::string file = folder_.file("other");
  std::ofstream{file} << "something else";
  const auto book = BlockBook::open(file);
  ASSERT_FALSE(book);
  EXPECT_THAT(book.error().text(), ::testing::HasSubstr("not a file of blocks"));
  EXPECT_EQ(std::filesystem::file_size(file), 14U) << "and leave it as it is";
  EXPECT_FALSE(BlockBook::open(folder_.file("no/such/folder")));
}

// A block that the table has no room for does not hold: no client and no operator is told of it,
// and it is counted.
TEST_F(Blocks, ThatATableDoesNotKeepAreNotAnnounced) {
  const auto book = BlockBook::open("").value();
  worker_->use(book.get());
  use({blocking({per(Kind::ip)})});
  fill_table();
  EXPECT_EQ(passed(3, {}), 1);
  EXPECT_EQ(reason_, Reason::limited) << "not blocked";
  ASSERT_TRUE(decision_.retry_after);
  EXPECT_NE(*decision_.retry_after, 15min);
  EXPECT_TRUE(book->list(now_.wall()).empty());
  EXPECT_EQ(worker_->counters().blocks, 0U);
  EXPECT_EQ(worker_->counters().blocks_dropped, 2U);
}

// Without room for the count of rejections no block is ever reached. That is counted, too.
TEST_F(Blocks, ThatAFullTableNeverComesToAreCounted) {
  rules::Rule patient = blocking({per(Kind::ip)});
  patient.block->threshold = 3;
  use({patient});
  fill_table();
  EXPECT_EQ(passed(8, {}), 1);
  EXPECT_EQ(reason_, Reason::limited) << "not blocked";
  EXPECT_EQ(worker_->counters().blocks, 0U);
  EXPECT_EQ(worker_->counters().blocks_dropped, 0U);
  EXPECT_EQ(worker_->counters().block_rejections_lost, 7U);
}

TEST_F(Blocks, LoseNoRejectionsWhileThereIsRoom) {
  rules::Rule patient = blocking({per(Kind::ip)});
  patient.block->threshold = 3;
  use({patient});
  EXPECT_EQ(passed(4, {}), 1);
  EXPECT_EQ(worker_->counters().blocks, 1U);
  EXPECT_EQ(worker_->counters().block_rejections_lost, 0U);
}

// More blocks than lines: those that end last are kept, as far as they can meet in one line.
TEST_F(Blocks, HaveABound) {
  const auto book = BlockBook::open("").value();
  const WallTime now = now_.wall();
  std::size_t displaced = 0;
  for (std::uint64_t i = 0; i < 3 * BlockBook::kLines; ++i) {
    displaced += book->write({.block = i * 0x9e3779b97f4a7c15U,
                              .refusals = 0,
                              .since = now,
                              .until = now + Nanos{1s} * static_cast<std::int64_t>(i + 1),
                              .rule = "r",
                              .label = "l"},
                             now)
                     ? 1U
                     : 0U;
  }
  const std::vector<BlockEntry> all = book->list(now);
  EXPECT_EQ(displaced, 3 * BlockBook::kLines - all.size());
  EXPECT_LE(all.size(), BlockBook::kLines);
  EXPECT_GT(all.size(), BlockBook::kLines * 9 / 10);
  EXPECT_EQ(all[0].until, now + 1s * (3 * BlockBook::kLines)) << "the last one is there, first";
}

// Threads write the same and other lines while one reads: what is read was written as it is.
TEST_F(Blocks, AreReadWholeWhileOthersWrite) {
  const auto book = BlockBook::open("").value();
  const WallTime now = now_.wall();
  std::atomic<bool> stop{false};
  const auto writes = [&](char letter) {
    const std::string text(BlockBook::kLabelBytes, letter);
    for (std::uint64_t i = 0; !stop; ++i) {
      book->write({.block = i % 7, .since = now, .until = now + 1h, .rule = text, .label = text},
                  now);
    }
  };
  std::vector<std::jthread> writers;
  for (const char letter : {'a', 'b', 'c'}) writers.emplace_back(writes, letter);
  for (int i = 0; i < 300; ++i) {
    for (const BlockEntry& one : book->list(now)) {
      ASSERT_EQ(one.label, std::string(BlockBook::kLabelBytes, one.label[0]));
      ASSERT_EQ(one.rule, std::string(BlockBook::kRuleBytes, one.label[0]));
    }
  }
  stop = true;
}

// ---- edits ------------------------------------------------------------------------------------

TEST_F(Operators, EditAnAmountAndKeepWhatWasUsed) {
  use({rule("r", {limit("10/1h", Algorithm::fixed_window)})});
  EXPECT_EQ(passed(6, {}), 6);
  use({rule("r", {limit("8/1h", Algorithm::fixed_window)})});
  EXPECT_EQ(passed(10, {}), 2);
}

TEST_F(Operators, BeginAnewIfTheRuleSaysSo) {
  rules::Rule edited = rule("r", {limit("10/1h", Algorithm::fixed_window)});
  edited.on_change = OnChange::reset;
  use({edited});
  EXPECT_EQ(passed(20, {}), 10);
  edited.match.methods = {"GET"};
  use({edited});
  EXPECT_EQ(passed(20, {}), 0) << "the same amount";
  edited.limits = {limit("8/1h", Algorithm::fixed_window)};
  use({edited});
  EXPECT_EQ(passed(20, {}), 8);
}

// A change of tier is no edit.
TEST_F(Operators, DoNotBeginAnewWithAnotherTier) {
  rules::Rule plans = rule("r", {limit("10/1h", Algorithm::fixed_window)});
  plans.on_change = OnChange::reset;
  plans.tiers = {.by = "client.tier",
                 .values = {{"paid", {limit("12/1h", Algorithm::fixed_window)}}}};
  use({plans});
  EXPECT_EQ(passed(20, {}), 10);
  EXPECT_EQ(passed(20, paid_), 2) << "one counter for all";
  plans.tiers->values[0].second = {limit("13/1h", Algorithm::fixed_window)};
  use({plans});
  EXPECT_EQ(passed(20, paid_), 13) << "an edit begins anew";
}

// Rules are exchanged all the time, on one worker while others decide: no count is lost and none is
// granted twice.
TEST_F(Operators, EditRulesUnderLoadWithoutLosingACount) {
  constexpr int kThreads = 3;
  constexpr int kLimit = 20'000;
  std::vector<rules::Rule> all{rule("r", {limit("20000/1h", Algorithm::fixed_window)})};
  std::atomic<int> admitted{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::shared_ptr<const Snapshot> newest = Snapshot::make({.rules = all}, *limits_, now_).value();
  std::atomic<int> version{0};
  const auto decides = [&] {
    store::LocalAuthority local{*table_, kThreads};
    Decider worker{local, *limits_};
    worker.use(identifier_);
    int seen = -1;
    Op op;
    while (!stop) {
      if (seen != version) {
        const std::lock_guard guard{mutex};
        seen = version;
        worker.use(newest);
      }
      const RequestView request{.method = "GET", .host = "a", .target = "/", .peer = {}};
      EXPECT_EQ(worker.decide(op, request, now_).completion, store::Completion::now);
      if (op.action == Action::pass) ++admitted;
      worker.settle(op, nullptr, now_);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(decides);
    for (int i = 0; i < 200 || admitted < kLimit; ++i) {
      all.resize(1);
      all.push_back(rule("other" + std::to_string(i % 50), {limit("1000000/1s")}));
      auto next = Snapshot::make({.rules = all}, *limits_, now_).value();
      const std::lock_guard guard{mutex};
      newest = std::move(next);
      ++version;
    }
    stop = true;
  }
  EXPECT_EQ(admitted, kLimit);
}

// Requests under way keep the rules they were decided by; the last one lets them go.
TEST_F(Operators, LetGoOfOldRulesWithTheLastRequest) {
  rules::Rule failures = rule("failures", {limit("3/1h")});
  failures.count = rules::Count{.statuses = {{400, 499}}};
  auto old = Snapshot::make({.rules = {failures}}, *limits_, now_).value();
  const std::weak_ptr<const Snapshot> watched = old;
  worker_->use(std::move(old));
  Op under_way;
  ASSERT_EQ(decide(under_way, {}), store::Completion::now);
  use({rule("other", {limit("5/1h")})});
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(under_way.rule->name, "failures");
  worker_->settle(under_way, nullptr, now_);
  use({rule("other", {limit("5/1h")})});
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace sluice::engine
