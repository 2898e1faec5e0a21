// What requests may bring along, and what comes after them.
#include "engine/engine_fixture.h"
#include "support/store_behind.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

class Requests : public EngineFixture {
 protected:
  int passed_as(const identity::Identity& client, int requests,
                const std::vector<HeaderView>& headers = {}) {
    int count = 0;
    for (int i = 0; i < requests; ++i) {
      const RequestView request{
          .method = "GET", .host = "a", .target = "/", .headers = headers, .peer = {}};
      EXPECT_EQ(worker_->decide(op_, request, client, now_).completion, store::Completion::now);
      count += op_.action == Action::pass ? 1 : 0;
      worker_->settle(op_, nullptr, now_);
    }
    return count;
  }
  static rules::RuleLimit brought(std::string_view text, rules::AmountFrom from) {
    rules::RuleLimit made = limit(text);
    made.from = std::move(from);
    return made;
  }
};

// ---- amounts ----------------------------------------------------------------------------------

TEST_F(Requests, BringTheirAmountInAClaim) {
  use({rule("r",
            {brought("5/1h", {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 50})},
            {per(Kind::user)})});
  const Claims some{{{"quota", "20"}}};
  const Claims much{{{"quota", "100000000000"}}};
  const Claims none{{}};
  const Claims zero{{{"quota", "0"}}};
  const Claims text{{{"quota", "many"}}};
  EXPECT_EQ(passed_as({.user = "some", .claims = &some}, 100), 20);
  EXPECT_EQ(passed_as({.user = "much", .claims = &much}, 100), 50) << "no more than the maximum";
  EXPECT_EQ(passed_as({.user = "none", .claims = &none}, 100), 5);
  EXPECT_EQ(passed_as({.user = "zero", .claims = &zero}, 100), 5);
  EXPECT_EQ(passed_as({.user = "text", .claims = &text}, 100), 5);
  EXPECT_EQ(passed_as({.user = "else"}, 100), 5);
}

// What a worker knows of amounts outlives a publication that changes no rules.
TEST_F(Requests, BringAmountsThatASecondUseOfTheSameRulesDoesNotForget) {
  class Counting final : public testing::LimitsBehind {
   public:
    using LimitsBehind::LimitsBehind;
    [[nodiscard]] Parsed<store::LimitNumber> use_for_request(const Limit& limit,
                                                             const Sharing& sharing,
                                                             Now now) override {
      ++asked;
      return LimitsBehind::use_for_request(limit, sharing, now);
    }
    int asked = 0;
  };
  Counting limits{*limits_};
  worker_ = new_worker(*local_, &limits);
  const std::vector<rules::Rule> rules{rule(
      "r", {brought("5/1h", {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 50})},
      {per(Kind::user)})};
  const auto snapshot = Snapshot::make({.rules = rules}, *limits_, now_).value();
  const Claims some{{{"quota", "20"}}};
  for (int i = 0; i < 3; ++i) {
    worker_->use(snapshot);
    EXPECT_EQ(passed_as({.user = "some", .claims = &some}, 1), 1);
  }
  EXPECT_EQ(limits.asked, 1);
  use(rules);
  EXPECT_EQ(passed_as({.user = "some", .claims = &some}, 1), 1);
  EXPECT_EQ(limits.asked, 2) << "other rules, other limits";
  worker_ = nullptr;  // before its registry
}

// Headers state the rate of a limit, which is not what is written where somebody brings another.
TEST_F(Requests, TellWhichAmountIsInForce) {
  rules::RuleLimit burst =
      brought("5/1h", {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 50});
  burst.limit.burst = 3;
  use({rule("r", {burst}, {per(Kind::user)})});
  const Claims some{{{"quota", "20"}}};
  const RequestView request{.method = "GET", .host = "a", .target = "/", .headers = {}, .peer = {}};
  for (const auto& [claims, amount] :
       {std::pair{&some, 20U}, std::pair<const Claims*, unsigned>{nullptr, 5U}}) {
    const identity::Identity client{.user = claims != nullptr ? "some" : "none", .claims = claims};
    ASSERT_EQ(worker_->decide(op_, request, client, now_).completion, store::Completion::now);
    ASSERT_EQ(op_.limits().size(), 1U);
    EXPECT_EQ(op_.limits()[0].amount, amount);
    EXPECT_EQ(op_.limits()[0].decision.limit, 3U);
    worker_->settle(op_, nullptr, now_);
  }
}

// A client that could write the header itself would set its own limit.
TEST_F(Requests, BringTheirAmountInAHeaderOfATrustedProxyOnly) {
  use({rule(
      "r",
      {brought("5/1h", {.kind = rules::AmountFrom::Kind::header, .name = "x-quota", .max = 50})},
      {per(Kind::user)})});
  const std::vector<HeaderView> headers{{"X-Quota", "20"}};
  EXPECT_EQ(passed_as({.user = "a", .through_trusted = true}, 100, headers), 20);
  EXPECT_EQ(passed_as({.user = "b", .through_trusted = false}, 100, headers), 5);
}

// Of two lines one may be the client's own, whichever it is that the proxy wrote: adding one never
// brings more.
TEST_F(Requests, BringTheLeastAmountOfHeadersThatDisagree) {
  use({rule(
      "r",
      {brought("5/1h", {.kind = rules::AmountFrom::Kind::header, .name = "x-quota", .max = 50})},
      {per(Kind::user)})});
  EXPECT_EQ(passed_as({.user = "a", .through_trusted = true}, 100,
                      {{"X-Quota", "20"}, {"x-quota", "50"}}),
            5);
  EXPECT_EQ(passed_as({.user = "b", .through_trusted = true}, 100,
                      {{"X-Quota", "20"}, {"x-quota", "20"}}),
            20);
  const std::vector<std::vector<HeaderView>> less{{{"X-Quota", "2"}, {"x-quota", "50"}},
                                                  {{"X-Quota", "50"}, {"x-quota", "2"}},
                                                  {{"X-Quota", "2"}, {"x-quota", "many"}},
                                                  {{"X-Quota", "2, 50"}},
                                                  {{"X-Quota", "50"}, {"X_Quota", "2"}}};
  for (std::size_t i = 0; i < less.size(); ++i) {
    const std::string user = "c" + std::to_string(i);
    EXPECT_EQ(passed_as({.user = user, .through_trusted = true}, 100, less[i]), 2) << i;
  }
}

TEST_F(Requests, BringMoreThanCanBeReadAsTheMost) {
  use({rule("r",
            {brought("5/1h", {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 50})},
            {per(Kind::user)})});
  const Claims endless{{{"quota", "99999999999999999999999"}}};
  EXPECT_EQ(passed_as({.user = "a", .claims = &endless}, 100), 50);
}

// An override multiplies what the request brings: the amount, and the burst that goes with it.
TEST_F(Requests, BringAnAmountThatAnOverrideMultiplies) {
  rules::RuleLimit written = limit("5/1h");
  written.limit.burst = 5;
  rules::RuleLimit from = written;
  from.from = {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 1'000'000'000};
  const auto first_answer = [&](const rules::RuleLimit& one, const char* multiplier,
                                const identity::Attributes* claims) {
    auto made = Snapshot::make(std::make_shared<const rules::RuleSet>(
                                   rules::RuleList{.rules = {rule("r", {one}, {per(Kind::user)})}}),
                               {{.subject = Subject::parse("user=ann").value(),
                                 .permille = parse_multiplier(multiplier).value(),
                                 .expires = std::nullopt,
                                 .note = {}}},
                               *limits_, now_);
    EXPECT_TRUE(made) << made.error().text();
    worker_->use(*made);
    now_ = {.mono = now_.mono + 1000h, .wall_offset = now_.wall_offset};  // all is forgotten
    EXPECT_EQ(passed_as({.user = "ann", .claims = claims}, 1), 1);
    return op_.limits().empty()
               ? std::pair{0UL, 0UL}
               : std::pair{op_.limits()[0].decision.remaining, op_.limits()[0].amount};
  };
  EXPECT_EQ(first_answer(written, "3", nullptr), (std::pair{14UL, 15UL}));
  EXPECT_EQ(first_answer(from, "3", nullptr), (std::pair{14UL, 15UL}));
  const Claims some{{{"quota", "20"}}};
  EXPECT_EQ(first_answer(from, "3", &some), (std::pair{14UL, 60UL}));
  EXPECT_EQ(first_answer(from, "0.2", &some), (std::pair{0UL, 4UL}));
}

// As much as can be enforced, and not what is written for those who bring nothing.
TEST_F(Requests, BringAnAmountThatCannotBeMultipliedSoOften) {
  const rules::RuleLimit from = brought(
      "5/1s", {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 1'000'000'000});
  auto made = Snapshot::make(std::make_shared<const rules::RuleSet>(
                                 rules::RuleList{.rules = {rule("r", {from}, {per(Kind::user)})}}),
                             {{.subject = Subject::parse("user=ann").value(),
                               .permille = parse_multiplier("1000").value(),
                               .expires = std::nullopt,
                               .note = {}}},
                             *limits_, now_);
  ASSERT_TRUE(made) << made.error().text();
  worker_->use(*made);
  const Claims much{{{"quota", "2000000"}}};
  EXPECT_EQ(passed_as({.user = "ann", .claims = &much}, 2), 2);
  EXPECT_EQ(op_.decision.limit, 1'000'000'000U);
}

// More amounts than a worker remembers and the table has numbers for: the first ones count, then
// the written one does. Rules still find room.
TEST_F(Requests, BringMoreAmountsThanThereIsRoomFor) {
  const std::vector<rules::Rule> all{
      rule("r",
           {brought("5/1h",
                    {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 1'000'000})},
           {per(Kind::user)})};
  use(all);
  int as_brought = 0;
  int as_written = 0;
  for (std::uint64_t i = 10; i < 3000; ++i) {
    const std::string amount = std::to_string(i);
    const Claims claims{{{"quota", amount}}};
    ASSERT_EQ(passed_as({.user = amount, .claims = &claims}, 1), 1);
    as_brought += op_.decision.limit == i ? 1 : 0;
    as_written += op_.decision.limit == 5 ? 1 : 0;
  }
  EXPECT_GT(as_brought, 500);
  EXPECT_GT(as_written, 500);
  EXPECT_EQ(as_brought + as_written, 2990);
  std::vector<rules::Rule> more = all;
  for (int i = 0; i < 100; ++i) {
    more.push_back(rule("more" + std::to_string(i), {limit(std::to_string(7000 + i) + "/1h")}));
  }
  EXPECT_TRUE(Snapshot::make({.rules = more}, *limits_, now_));
}

class ManyAmounts : public Requests {
 protected:
  ManyAmounts() {
    use(rules_);
    const std::size_t numbers = table_->status().limits;
    for (std::uint64_t i = 0; i < numbers; ++i) (void)in_force(kFirst + i);
  }

  // The limit of somebody who brings that amount: it, or what is written.
  std::uint64_t in_force(std::uint64_t amount) {
    const std::string text = std::to_string(amount);
    const Claims claims{{{"quota", text}}};
    EXPECT_EQ(passed_as({.user = text, .claims = &claims}, 1), 1);
    return op_.decision.limit;
  }
  std::uint64_t left_out() const { return worker_->counters().dynamic_limits_skipped; }
  void pass(Nanos time) {
    now_ = {.mono = now_.mono + time, .wall_offset = now_.wall_offset};
    table_->upkeep(now_);
  }

  static constexpr std::uint64_t kFirst = 100;
  static constexpr std::uint64_t kOther = 500'000;
  const std::vector<rules::Rule> rules_{
      rule("r",
           {brought("5/1h",
                    {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 1'000'000})},
           {per(Kind::user)})};
};

TEST_F(ManyAmounts, AreCountedWhenTheyAreLeftOut) {
  const std::size_t numbers = table_->status().limits;
  EXPECT_EQ(left_out(), numbers - (numbers - numbers / 4) + 1) << "one number is the rule's own";
  const std::uint64_t before = left_out();
  EXPECT_EQ(in_force(kOther), 5U);
  EXPECT_EQ(in_force(kOther), 5U);
  EXPECT_EQ(left_out(), before + 2) << "each request, though the store is asked once";
  EXPECT_EQ(in_force(5), 5U);
  EXPECT_EQ(left_out(), before + 2);
}

// Those that were there before go on to count, also when the worker has forgotten them.
TEST_F(ManyAmounts, AreFoundAgainAfterAReload) {
  for (int i = 0; i < 2; ++i) {
    for (const std::uint64_t amount : {kFirst, kFirst + 7, kFirst + 700}) {
      EXPECT_EQ(in_force(amount), amount);
    }
    EXPECT_EQ(in_force(kOther), 5U);
    use(rules_);
  }
}

// Nobody brings the old ones any more: when their counts have drained there is room for new ones,
// without a reload.
TEST_F(ManyAmounts, GiveWayToOthersInTime) {
  pass(2min);
  EXPECT_EQ(in_force(kOther), 5U) << "counts of the old ones are still there";
  pass(1min);
  EXPECT_EQ(in_force(kFirst), kFirst);
  pass(1h);
  EXPECT_EQ(in_force(kFirst), kFirst);
  pass(11min);
  EXPECT_EQ(in_force(kOther), kOther);
  for (std::uint64_t i = 1; i <= 700; ++i) ASSERT_EQ(in_force(kOther + i), kOther + i);
  EXPECT_EQ(in_force(kFirst), kFirst);
}

// A request that takes hours keeps its number: what it charged is given back under it.
TEST_F(ManyAmounts, AreKeptWhileARequestHasThem) {
  const std::string text = std::to_string(kFirst);
  const Claims claims{{{"quota", text}}};
  const RequestView request{.method = "GET", .host = "a", .target = "/", .headers = {}, .peer = {}};
  Op slow;
  ASSERT_EQ(worker_->decide(slow, request, {.user = text, .claims = &claims}, now_).completion,
            store::Completion::now);
  const std::size_t numbers = table_->status().limits;
  const auto has_number = [&] {
    for (store::LimitNumber number = 0; number < numbers; ++number) {
      const auto& known = table_->limit_if_known(number);
      if (known != nullptr && known->limit().amount == kFirst) return true;
    }
    return false;
  };
  const auto others_come = [&](std::uint64_t first) {
    use(rules_);
    for (int i = 0; i < 3; ++i) pass(1h);
    for (std::uint64_t i = 0; i < 700; ++i) ASSERT_EQ(in_force(first + i), first + i);
  };
  // More amounts than a worker tracks: the entry of the request in flight is not reused either.
  for (std::uint64_t i = 0; i < 3; ++i) others_come(kOther + i * 1000);
  EXPECT_TRUE(has_number());
  worker_->settle(slow, nullptr, now_);
  others_come(kOther + 10'000);
  EXPECT_FALSE(has_number()) << "nobody has it any more";
}

// ---- attributes of API keys -------------------------------------------------------------------

class KeyAttributes : public Requests {
 protected:
  const Sent paid_{.headers = {{"x-api-key", "paid-key"}}};
  const Sent free_{.headers = {{"x-api-key", "free-key"}}};
};

TEST_F(KeyAttributes, AreWhatIsCountedPer) {
  use({rule("teams", {limit("2/1h")}, {per(Kind::attribute, "team")})});
  EXPECT_EQ(passed(3, paid_), 2);
  Sent elsewhere = paid_;
  elsewhere.ip = "192.0.2.2";
  EXPECT_EQ(passed(3, elsewhere), 0) << "the same team";
  EXPECT_EQ(passed(3, free_), 2) << "no team: by address";
}

TEST_F(KeyAttributes, ChooseTheTier) {
  rules::Rule tiered = rule("tiered", {limit("2/1h")}, {per(Kind::api_key)});
  tiered.tiers = rules::Tiers{.by = "attribute.plan", .values = {{"gold", {limit("5/1h")}}}};
  use({tiered});
  EXPECT_EQ(passed(9, paid_), 5);
  EXPECT_EQ(passed(9, free_), 2);
}

TEST_F(KeyAttributes, BringTheAmount) {
  use({rule(
      "quotas",
      {brought("2/1h", {.kind = rules::AmountFrom::Kind::attribute, .name = "quota", .max = 50})},
      {per(Kind::api_key)})});
  EXPECT_EQ(passed(9, paid_), 7);
  EXPECT_EQ(passed(9, free_), 2);
}

TEST_F(KeyAttributes, AreMatched) {
  rules::Rule gold = rule("gold", {limit("1/1h")});
  gold.match.attributes = {
      {.name = "plan", .value = {.kind = rules::TextMatch::Kind::exact, .text = "gold"}}};
  use({gold});
  EXPECT_EQ(passed(3, free_), 3);
  EXPECT_EQ(passed(3, {}), 3);
  EXPECT_EQ(passed(3, paid_), 1);
}

// ---- what clients say of themselves -----------------------------------------------------------

// Whoever says several things pays for the dearest; what cannot be read is the dearest there is.
TEST_F(Requests, CostTheMostOfWhatTheySay) {
  rules::Rule sized = rule("sized", {limit("1000/1h")});
  const auto cost_of = [&](const Sent& sent) {
    now_ = {.mono = now_.mono + 2h, .wall_offset = now_.wall_offset};  // all is forgotten
    EXPECT_EQ(ask(sent), Action::pass);
    return 1000 - decision_.remaining;
  };
  sized.cost = {.kind = rules::CostRule::Kind::query, .name = "size", .max = 100};
  use({sized});
  EXPECT_EQ(cost_of({}), 1U);
  EXPECT_EQ(cost_of({.target = "/?size=7"}), 7U);
  EXPECT_EQ(cost_of({.target = "/?size=0"}), 1U);
  EXPECT_EQ(cost_of({.target = "/?size=1000"}), 100U);
  EXPECT_EQ(cost_of({.target = "/?size=99999999999999999999999"}), 100U);
  EXPECT_EQ(cost_of({.target = "/?size=1&size=50"}), 50U);
  EXPECT_EQ(cost_of({.target = "/?size=50&%73ize=1"}), 50U);
  EXPECT_EQ(cost_of({.target = "/?size=x&size=50"}), 50U);
  EXPECT_EQ(cost_of({.target = "/?size=+50"}), 50U);
  EXPECT_EQ(cost_of({.target = "/?size=%2B50"}), 50U);
  EXPECT_EQ(cost_of({.target = "/?size=-50"}), 1U);
  std::string endless;
  for (int i = 0; i < 2000; ++i) endless += "%39";
  EXPECT_EQ(cost_of({.target = "/?size=" + endless}), 100U);

  sized.cost = {.kind = rules::CostRule::Kind::header, .name = "x-size", .max = 100};
  use({sized});
  EXPECT_EQ(cost_of({.headers = {{"X-Size", "7"}}}), 7U);
  EXPECT_EQ(cost_of({.headers = {{"X-Size", "99999999999999999999999"}}}), 100U);
  EXPECT_EQ(cost_of({.headers = {{"X-Size", "1"}, {"x-size", "50"}}}), 50U);
  EXPECT_EQ(cost_of({.headers = {{"X-Size", "50, 1"}}}), 50U) << "lines that a proxy joined";
  EXPECT_EQ(cost_of({.headers = {{"X_Size", "50"}}}), 50U) << "CGI has one name for both";
}

// A server behind may take the last of several values where another one takes the first. So a
// client that varies one of them would be counted anew each time, and be known to the server by the
// other.
TEST_F(Requests, AreRejectedForValuesThatDisagree) {
  for (const Kind kind : {Kind::header, Kind::query}) {
    const auto with = [&](const std::string& one, const std::string& two) {
      return kind == Kind::header ? Sent{.headers = {{"X-User", one}, {"x-user", two}}}
                                  : Sent{.target = "/?x-user=" + one + "&%78-user=" + two};
    };
    now_ = {.mono = now_.mono + 2h, .wall_offset = now_.wall_offset};
    rules::Rule users = rule("users", {limit("2/1h")}, {per(kind, "x-user")});
    use({users});
    EXPECT_EQ(passed(3, with("ann", "ann")), 2) << "they agree";
    for (const rules::OnMissing on_missing : {rules::OnMissing::ip, rules::OnMissing::skip,
                                              rules::OnMissing::shared, rules::OnMissing::reject}) {
      users.on_missing = on_missing;
      use({users});
      for (const auto& sent : {with("1", "bob"), with("bob", "1"), with("", "bob")}) {
        EXPECT_EQ(ask(sent), Action::reject);
        EXPECT_EQ(reason_, Reason::ambiguous_value);
        EXPECT_EQ(status_, 400);
        EXPECT_EQ(rule_, "users");
      }
    }
    users.on_missing = rules::OnMissing::skip;
    use({users});
    EXPECT_EQ(passed(3, with("", "")), 3) << "nothing is said";
    users.action.kind = rules::Action::Kind::shadow;
    use({users});
    EXPECT_EQ(passed(3, with("1", "bob")), 3) << "a shadow rejects nothing";
  }
}

// One value in two spellings is one value; so is a header that CGI programs see under one name.
TEST_F(Requests, AreCountedByOneValueInSeveralSpellings) {
  use({rule("q", {limit("2/1h")}, {per(Kind::query, "q")})});
  EXPECT_EQ(passed(1, {.target = "/?q=a"}), 1);
  EXPECT_EQ(passed(1, {.target = "/?q=a&%71=%61"}), 1);
  EXPECT_EQ(passed(1, {.target = "/?%71=%61"}), 0);
  use({rule("h", {limit("2/1h")}, {per(Kind::header, "x-user")})});
  EXPECT_EQ(passed(1, {.headers = {{"X-User", "ann"}}}), 1);
  EXPECT_EQ(passed(1, {.headers = {{"X_User", "ann"}}}), 1);
  EXPECT_EQ(passed(1, {.headers = {{"x-user", "ann"}}}), 0);
  EXPECT_EQ(ask({.headers = {{"x-user", "ann"}, {"x_user", "bob"}}}), Action::reject);
  EXPECT_EQ(reason_, Reason::ambiguous_value);
}

// ---- credentials ------------------------------------------------------------------------------

// A client that shows two keys shows the server behind another one than the gateway.
TEST_F(Requests, WithAmbiguousCredentialsAreRejected) {
  use({rule("keys", {limit("2/1h")}, {per(Kind::api_key)})});
  EXPECT_EQ(passed(3, {.headers = {{"x-api-key", "paid-key"}}}), 2);
  for (const std::vector<HeaderView>& headers :
       {std::vector<HeaderView>{{"x-api-key", "bogus"}, {"x-api-key", "paid-key"}},
        std::vector<HeaderView>{{"x-api-key", "paid-key"}, {"x-api-key", "free-key"}},
        std::vector<HeaderView>{{"x-api-key", "bogus, paid-key"}}}) {
    EXPECT_EQ(ask({.headers = headers}), Action::reject);
    EXPECT_EQ(reason_, Reason::ambiguous_credentials);
    EXPECT_EQ(status_, 400);
  }
  EXPECT_EQ(ask({.headers = {{"x-api-key", ""}, {"x-api-key", "paid-key"}}}), Action::reject);
  EXPECT_EQ(reason_, Reason::limited) << "an empty one hides nothing";
  EXPECT_EQ(ask({.headers = {{"x-api-key", "free-key"}, {"x-api-key", "free-key"}}}), Action::pass);
}

// Neither list is asked: to pass because of one key or to be denied because of it would tell
// nothing about the other.
TEST_F(Requests, WithAmbiguousCredentialsAreOnNoList) {
  use({rule("all", {limit("9/1h")})});
  const auto entry = [](const char* who) {
    return ListEntry{.subject = Subject::parse(who).value(), .expires = {}, .note = {}};
  };
  worker_->use(std::make_shared<const Lists>(std::vector{entry("api_key=paid-key")},
                                             std::vector{entry("api_key=free-key")}));
  EXPECT_EQ(ask({.headers = {{"x-api-key", "paid-key"}, {"x-api-key", "bogus"}}}), Action::reject);
  EXPECT_EQ(reason_, Reason::ambiguous_credentials);
  EXPECT_EQ(ask({.headers = {{"x-api-key", "bogus"}, {"x-api-key", "free-key"}}}), Action::reject);
  EXPECT_EQ(reason_, Reason::ambiguous_credentials);
}

// Rules that bound attempts count this one, too.
TEST_F(Requests, WithAmbiguousCredentialsAreAttempts) {
  rules::Rule early = rule("attempts", {limit("2/1h")}, {per(Kind::ip)});
  early.before_auth = true;
  use({early});
  const Sent two{.headers = {{"x-api-key", "paid-key"}, {"x-api-key", "bogus"}}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask(two), Action::reject);
    EXPECT_EQ(reason_, Reason::ambiguous_credentials);
  }
  EXPECT_EQ(ask(two), Action::reject);
  EXPECT_EQ(reason_, Reason::limited);
}

// ---- counting afterwards ----------------------------------------------------------------------

TEST_F(Requests, AreChargedAfterwardsIfTheRuleSaysSo) {
  rules::Rule failures = rule("failures", {limit("3/1h")});
  failures.count = rules::Count{.statuses = {{400, 499}}, .after = true};
  use({failures});
  std::array<Op, 5> ops;
  for (Op& op : ops) {
    ASSERT_EQ(decide(op, {}), store::Completion::now);
    EXPECT_EQ(op.action, Action::pass) << "nothing is charged yet, so all at once would fit";
    EXPECT_EQ(op.decision.remaining, 2U) << "what would be left";
  }
  const ResponseView good{.status = 200};
  const ResponseView bad{.status = 401};
  worker_->settle(ops[0], &good, now_);
  EXPECT_EQ(ask({}), Action::pass);
  worker_->settle(ops[1], &bad, now_);
  worker_->settle(ops[2], &bad, now_);
  EXPECT_EQ(ask({}), Action::pass);
  worker_->settle(ops[3], &bad, now_);
  EXPECT_EQ(ask({}), Action::reject);
  worker_->settle(ops[4], &good, now_);
  EXPECT_EQ(ask({}), Action::reject) << "three are used";
}

// Of gRPC all answers are 200; what became of the call is in another status.
TEST_F(Requests, AreCountedByTheStatusOfGrpc) {
  rules::Rule failures = rule("failures", {limit("2/1h")});
  failures.count = rules::Count{.grpc_statuses = {7, 16}, .after = false};
  const auto answered = [&](std::optional<std::uint8_t> grpc_status) {
    EXPECT_EQ(decide(op_, {}), store::Completion::now);
    const bool passes = op_.action == Action::pass;
    const ResponseView response{.status = 200, .grpc_status = grpc_status, .headers = {}};
    worker_->settle(op_, passes ? &response : nullptr, now_);
    return passes;
  };
  for (const bool after : {false, true}) {
    now_ = {.mono = now_.mono + 2h, .wall_offset = now_.wall_offset};
    failures.count->after = after;
    use({failures});
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(answered(0)) << "OK is not counted";
      EXPECT_TRUE(answered(8)) << "nor is another failure";
      EXPECT_TRUE(answered(std::nullopt)) << "nor what is no gRPC";
    }
    EXPECT_TRUE(answered(16));
    EXPECT_TRUE(answered(7));
    EXPECT_FALSE(answered(0)) << "two are used";
  }
}

// Whoever leaves before the answer is charged as if it had counted: else leaving would be a way to
// ask without limit.
TEST_F(Requests, AreChargedAfterwardsThoughTheClientLeft) {
  rules::Rule failures = rule("failures", {limit("2/1h")});
  failures.count = rules::Count{.statuses = {{400, 499}}, .after = true};
  use({failures});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(decide(op_, {}), store::Completion::now);
    EXPECT_EQ(op_.action, Action::pass);
    worker_->settle(op_, nullptr, now_);
  }
  EXPECT_EQ(ask({}), Action::reject);
}

// One that would be charged later does not spoil all-or-nothing for those that are charged now.
TEST_F(Requests, AreChargedNowOrLaterByDifferentRules) {
  rules::Rule failures = rule("failures", {limit("1/1h")});
  failures.count = rules::Count{.statuses = {{400, 499}}, .after = true};
  use({rule("all", {limit("10/1h")}), failures});
  EXPECT_EQ(passed(3, {}, 200), 3);
  EXPECT_EQ(passed(5, {}, 401), 1);
  EXPECT_EQ(rule_, "failures");
  use({rule("all", {limit("10/1h")})});
  EXPECT_EQ(passed(20, {}), 6) << "refused ones were not charged";
}

// The full cost must fit, though nothing is charged.
TEST_F(Requests, AreTestedForTheirFullCost) {
  rules::Rule failures = rule("failures", {limit("10/1h")});
  failures.count = rules::Count{.statuses = {{400, 499}}, .after = true};
  failures.cost.constant = 6;
  use({failures});
  EXPECT_EQ(passed(5, {}, 401), 1);
}

TEST_F(Requests, AreCountedByAHeaderOfTheResponse) {
  rules::Rule failures = rule("failures", {limit("2/1h")});
  failures.count =
      rules::Count{.header = rules::NamedMatch{
                       .name = "x-login",
                       .value = {.kind = rules::TextMatch::Kind::regex, .text = "fail(ed|ure)"}}};
  use({failures});
  const auto answered = [&](std::string_view value) {
    EXPECT_EQ(decide(op_, {}), store::Completion::now);
    const Action action = op_.action;
    const std::array headers{HeaderView{"X-Login", value}};
    const ResponseView response{.status = 200, .headers = headers};
    worker_->settle(op_, &response, now_);
    return action;
  };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answered("fine"), Action::pass);
  EXPECT_EQ(answered("failed"), Action::pass);
  EXPECT_EQ(answered("failure"), Action::pass);
  EXPECT_EQ(answered("fine"), Action::reject);
}

// ---- spellings of a path ----------------------------------------------------------------------

// Whatever the spelling, it is one path and one counter.
TEST_F(Requests, CannotDodgeALimitByAnotherSpelling) {
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/login"};
  use({login});
  EXPECT_EQ(passed(1, {.target = "/login"}), 1);
  for (const char* spelling :
       {"/login/", "/login/.", "/./login", "/%6cogin", "/%6Cogin", "//login", "/login//",
        "/login/../login", "/x/../login", "/login?x=1", "/%2e/login", "http://elsewhere/login"}) {
    EXPECT_EQ(ask({.target = spelling}), Action::reject) << spelling;
  }
  EXPECT_EQ(ask({.target = "/LOGIN"}), Action::pass) << "another path, unless hosts say otherwise";
}

TEST_F(Requests, CannotDodgeALimitByCapitalsWhereHostsIgnoreThem) {
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/Login"};
  const auto ignoring = [&](rules::IgnoringHosts ignore) {
    auto made = Snapshot::make({.rules = {login}, .case_insensitive_paths = std::move(ignore)},
                               *limits_, now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  };
  ignoring({.everywhere = true});
  EXPECT_EQ(passed(1, {.target = "/login"}), 1);
  for (const char* spelling : {"/LOGIN", "/Login", "/%4Cogin/", "/lOgIn?x=1"}) {
    EXPECT_EQ(ask({.target = spelling}), Action::reject) << spelling;
  }
  now_ = at(2h);
  login.match.paths = {"/login"};
  ignoring({.hosts = {"api.example.com"}});
  EXPECT_EQ(ask({.target = "/LOGIN"}), Action::pass);
  EXPECT_EQ(ask({.target = "/login"}), Action::reject);
  ignoring({.hosts = {"another.example.com"}});
  EXPECT_EQ(ask({.target = "/login"}), Action::reject);
  EXPECT_EQ(ask({.target = "/LOGIN"}), Action::pass) << "this host does not ignore case";
}

TEST_F(Requests, CannotDodgeALimitByParametersWhereHostsIgnoreThem) {
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/login"};
  const auto ignoring = [&](rules::IgnoringHosts ignore) {
    auto made = Snapshot::make({.rules = {login}, .ignore_path_parameters = std::move(ignore)},
                               *limits_, now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  };
  ignoring({.everywhere = true});
  EXPECT_EQ(passed(1, {.target = "/login"}), 1);
  for (const char* spelling : {"/login;x=1", "/login;", "/;a/login", "/login;x/?y=1"}) {
    EXPECT_EQ(ask({.target = spelling}), Action::reject) << spelling;
  }
  ignoring({.hosts = {"api.example.com"}});
  EXPECT_EQ(ask({.target = "/login;x=1"}), Action::reject);
  ignoring({.hosts = {"another.example.com"}});
  EXPECT_EQ(ask({.target = "/login;x=1"}), Action::pass) << "another path there";
}

// Some servers take post for POST. Neither a match, nor a cost, nor a counter of its own is dodged.
TEST_F(Requests, HaveMethodsInAnyCase) {
  rules::Rule posts = rule("posts", {limit("2/1h")});
  posts.match.methods = {"POST", "PROPFIND"};
  use({posts});
  EXPECT_EQ(ask({.method = "POST"}), Action::pass);
  EXPECT_EQ(ask({.method = "post"}), Action::pass);
  EXPECT_EQ(ask({.method = "pOsT"}), Action::reject);
  EXPECT_EQ(ask({.method = "propfind"}), Action::reject);
  EXPECT_EQ(ask({.method = "get"}), Action::pass);

  rules::Rule costly = rule("costly", {limit("10/1h")});
  costly.cost = {.kind = rules::CostRule::Kind::method, .by_method = {{"DELETE", 10}}};
  use({costly});
  EXPECT_EQ(ask({.method = "delete"}), Action::pass);
  EXPECT_EQ(ask({.method = "get"}), Action::reject);

  use({rule("each", {limit("1/1h")}, {per(Kind::method)})});
  EXPECT_EQ(ask({.method = "GET"}), Action::pass);
  EXPECT_EQ(ask({.method = "get"}), Action::reject);
  EXPECT_EQ(ask({.method = "put"}), Action::pass);
}

// ---- by name, and many at once ----------------------------------------------------------------

TEST_F(Requests, AreDecidedByTheNameOfARule) {
  rules::Rule create = rule("create", {limit("2/1h")}, {per(Kind::user)});
  create.match.paths = {"/createURL"};
  use({rule("other", {limit("1/1h")}), create});
  const auto may = [&](const char* user) {
    const RequestView nothing{};
    EXPECT_EQ(worker_->decide_by(1, op_, nothing, {.user = user}, now_), store::Completion::now);
    const bool passes = op_.action == Action::pass;
    worker_->settle(op_, nullptr, now_);
    return passes;
  };
  EXPECT_TRUE(may("ann"));
  EXPECT_TRUE(may("ann"));
  EXPECT_FALSE(may("ann"));
  EXPECT_TRUE(may("bob"));
}

// A batch decides what its requests, one by one, would be told.
TEST_F(Requests, AreDecidedInBatches) {
  constexpr std::size_t kRequests = 100;
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/login"};
  use({rule("ips", {limit("3/1h")}, {per(Kind::ip)}), login});
  std::vector<std::string> targets;
  std::vector<RequestView> requests;
  std::vector<std::unique_ptr<Op>> ops;
  std::vector<Op*> pointers;
  for (std::size_t i = 0; i < kRequests; ++i) {
    requests.push_back({.method = "GET",
                        .host = "a",
                        .target = i % 10 == 3   ? "/login"
                                  : i % 10 == 7 ? "bad"
                                                : "/",
                        .peer = IpAddress::v4(static_cast<std::uint32_t>(i % 20))});
    ops.push_back(std::make_unique<Op>());
    pointers.push_back(ops.back().get());
  }
  worker_->decide_batch(pointers, requests, now_);
  int passes = 0;
  int bad = 0;
  for (Op* op : pointers) {
    EXPECT_FALSE(op->waiting());
    passes += op->action == Action::pass ? 1 : 0;
    bad += op->reason == Reason::bad_target ? 1 : 0;
    worker_->settle(*op, nullptr, now_);
  }
  EXPECT_EQ(bad, 10);
  EXPECT_EQ(passes, 16 * 3 + 1) << "16 addresses that ask for /, and one login";
}

}  // namespace
}  // namespace sluice::engine
