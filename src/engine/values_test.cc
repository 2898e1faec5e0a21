// What of a request tells counters, tiers, costs and exceptions apart: one row for each.
#include "engine/engine_fixture.h"
#include "engine/lists.h"
#include "engine/overrides.h"
#include "support/store_behind.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

// One request by somebody who is known.
struct Asking {
  identity::Identity client;
  std::string method = "GET";
  std::string target = "/";
  std::vector<HeaderView> headers;
  std::vector<DescriptorEntry> descriptor;
};

class Values : public EngineFixture {
 protected:
  using EngineFixture::passed;

  Action ask_as(const Asking& asking) {
    const RequestView request{.method = asking.method,
                              .host = "a",
                              .target = asking.target,
                              .headers = asking.headers,
                              .peer = {},
                              .tls_subject = {},
                              .domain = {},
                              .descriptor = asking.descriptor};
    EXPECT_EQ(worker_->decide(op_, request, asking.client, now_).completion,
              store::Completion::now);
    const Action action = op_.action;
    reason_ = op_.reason;
    decision_ = op_.decision;
    worker_->settle(op_, nullptr, now_);
    return action;
  }
  int passed(int requests, const Asking& asking) {
    int count = 0;
    for (int i = 0; i < requests; ++i) count += ask_as(asking) == Action::pass ? 1 : 0;
    return count;
  }
  static Asking from(const char* ip) { return {.client = {.address = *IpAddress::parse(ip)}}; }
  void use_with(std::vector<rules::Rule> all, std::vector<Override> overrides) {
    auto made = Snapshot::make(
        std::make_shared<const rules::RuleSet>(rules::RuleList{.rules = std::move(all)}),
        std::move(overrides), *limits_, now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  }

  const Claims gold_{{{"plan", "gold"}, {"org", "a"}}};
  const Claims other_{{{"plan", "none"}, {"org", "b"}}};
};

// ---- per --------------------------------------------------------------------------------------

struct Counted {
  const char* what;
  rules::Per per;
  Asking one;
  Asking same;  // by all that matters
  Asking other;
};

// Two that differ have two counters, two that do not share one.
TEST_F(Values, TellCountersApart) {
  const std::vector<Counted> rows{
      {"tenant",
       per(Kind::tenant),
       {.client = {.user = "u", .tenant = "a"}},
       {.client = {.user = "v", .tenant = "a"}},
       {.client = {.user = "u", .tenant = "b"}}},
      {"user",
       per(Kind::user),
       {.client = {.user = "u", .tenant = "a"}},
       {.client = {.user = "u", .tenant = "b"}},
       {.client = {.user = "v", .tenant = "a"}}},
      {"api_key",
       per(Kind::api_key),
       {.client = {.user = "u", .api_key = "k"}},
       {.client = {.user = "v", .api_key = "k"}},
       {.client = {.user = "u", .api_key = "l"}}},
      {"country",
       per(Kind::country),
       {.client = {.country = "DE", .asn = 1}},
       {.client = {.country = "DE", .asn = 2}},
       {.client = {.country = "FR", .asn = 1}}},
      {"asn",
       per(Kind::asn),
       {.client = {.country = "DE", .asn = 1}},
       {.client = {.country = "FR", .asn = 1}},
       {.client = {.country = "DE", .asn = 12}}},
      {"method",
       per(Kind::method),
       {.client = {}, .method = "GET", .target = "/a"},
       {.client = {}, .method = "GET", .target = "/b"},
       {.client = {}, .method = "POST", .target = "/a"}},
      {"route",
       per(Kind::route),
       {.client = {}, .target = "/users/1"},
       {.client = {}, .target = "/users/2"},
       {.client = {}, .target = "/orders/1"}},
      {"path",
       per(Kind::path, "id"),
       {.client = {}, .target = "/users/1"},
       {.client = {}, .target = "/users/1?x=2"},
       {.client = {}, .target = "/users/2"}},
      {"header",
       per(Kind::header, "x-a"),
       {.client = {}, .headers = {{"X-A", "1"}}},
       {.client = {}, .headers = {{"x-b", "2"}, {"x-a", "1"}}},
       {.client = {}, .headers = {{"X-A", "2"}}}},
      {"query",
       per(Kind::query, "q"),
       {.client = {}, .target = "/?q=a&x=1"},
       {.client = {}, .target = "/?x=2&q=%61"},
       {.client = {}, .target = "/?q=b&x=1"}},
      {"claim",
       per(Kind::claim, "org"),
       {.client = {.user = "u", .claims = &gold_}},
       {.client = {.user = "v", .claims = &gold_}},
       {.client = {.user = "u", .claims = &other_}}},
      {"descriptor",
       per(Kind::descriptor, "k"),
       {.client = {}, .descriptor = {{"k", "a"}}},
       {.client = {}, .descriptor = {{"x", "y"}, {"k", "a"}}},
       {.client = {}, .descriptor = {{"k", "b"}}}},
      {"ip", per(Kind::ip), from("192.0.2.1"), from("192.0.2.1"), from("192.0.2.2")},
      {"ip, v6", per(Kind::ip), from("2001:db8::1"), from("2001:db8::2"), from("2001:db8:0:1::1")},
      {"ip/24",
       {.kind = Kind::ip, .name = {}, .v4_bits = 24},
       from("192.0.2.1"),
       from("192.0.2.255"),
       from("192.0.3.1")},
      {"ip/24, v6",
       {.kind = Kind::ip, .name = {}, .v4_bits = 24},
       from("2001:db8::1"),
       from("2001:db8::2"),
       from("2001:db8:0:1::1")},
      {"ip/16/48",
       {.kind = Kind::ip, .name = {}, .v4_bits = 16, .v6_bits = 48},
       from("192.0.2.1"),
       from("192.0.9.1"),
       from("192.1.2.1")},
      {"ip/16/48, v6",
       {.kind = Kind::ip, .name = {}, .v4_bits = 16, .v6_bits = 48},
       from("2001:db8:1:2::1"),
       from("2001:db8:1:3::1"),
       from("2001:db8:2:2::1")}};
  for (const Counted& row : rows) {
    SCOPED_TRACE(row.what);
    rules::Rule made = rule(row.what, {limit("2/1h")}, {row.per});
    if (row.per.kind == Kind::route || row.per.kind == Kind::path) {
      made.match.paths = {"/users/{id}", "/orders/{id}"};
    }
    use({made});
    EXPECT_EQ(passed(1, row.one), 1);
    EXPECT_EQ(passed(3, row.same), 1) << "one of two is used";
    EXPECT_EQ(passed(3, row.one), 0);
    EXPECT_EQ(passed(3, row.other), 2) << "a counter of its own";
  }
}

// ---- tiers ------------------------------------------------------------------------------------

struct Tiered {
  const char* by;
  const char* tier;
  Asking of_it;
  Asking of_none;
};

TEST_F(Values, ChooseATier) {
  using identity::Proof;
  const std::vector<Tiered> rows{{"client.tier",
                                  "gold",
                                  {.client = {.user = "u", .tier = "gold"}},
                                  {.client = {.user = "v", .tier = "none"}}},
                                 {"client.tenant",
                                  "acme",
                                  {.client = {.user = "u", .tenant = "acme"}},
                                  {.client = {.user = "v", .tenant = "other"}}},
                                 {"client.country",
                                  "DE",
                                  {.client = {.user = "u", .country = "DE"}},
                                  {.client = {.user = "v", .country = "FR"}}},
                                 {"client.asn",
                                  "64500",
                                  {.client = {.user = "u", .asn = 64500}},
                                  {.client = {.user = "v", .asn = 6450}}},
                                 {"client.authenticated",
                                  "true",
                                  {.client = {.user = "u", .proof = Proof::good}},
                                  {.client = {.user = "v", .proof = Proof::invalid}}},
                                 {"client.authenticated",
                                  "false",
                                  {.client = {.user = "u"}},
                                  {.client = {.user = "v", .proof = Proof::good}}},
                                 {"claim.plan",
                                  "gold",
                                  {.client = {.user = "u", .claims = &gold_}},
                                  {.client = {.user = "v", .claims = &other_}}},
                                 {"claim.plan",
                                  "gold",
                                  {.client = {.user = "u", .claims = &gold_}},
                                  {.client = {.user = "v"}}}};
  int number = 0;
  for (const Tiered& row : rows) {
    SCOPED_TRACE(row.by);
    rules::Rule made = rule("r" + std::to_string(number++), {limit("2/1h")}, {per(Kind::user)});
    made.tiers = {.by = row.by, .values = {{"else", {limit("9/1h")}}, {row.tier, {limit("5/1h")}}}};
    use({made});
    EXPECT_EQ(passed(20, row.of_it), 5);
    EXPECT_EQ(passed(20, row.of_none), 2);
  }
}

// A tier may be the only one that counts requests in flight, or lend its slots for another time.
TEST_F(Values, ChooseHowLongALeaseLives) {
  const auto flight = [](Nanos slot_ttl) {
    rules::RuleLimit made = limit("1", Algorithm::concurrency);
    made.limit.slot_ttl = slot_ttl;
    return made;
  };
  const Asking gold{.client = {.user = "u", .tier = "gold"}};
  const Asking none{.client = {.user = "v"}};
  const auto every = [&](const Asking& asking) {
    const RequestView request{.method = "GET", .host = "a", .target = "/"};
    EXPECT_EQ(worker_->decide(op_, request, asking.client, now_).completion,
              store::Completion::now);
    const Nanos renewed = op_.renew_every();
    worker_->settle(op_, nullptr, now_);
    return renewed;
  };
  rules::Rule shorter = rule("shorter", {flight(60s)}, {per(Kind::user)});
  shorter.tiers = {.by = "client.tier", .values = {{"gold", {flight(10s)}}}};
  use({shorter});
  EXPECT_EQ(every(gold), 5s);
  EXPECT_EQ(every(none), 30s);
  rules::Rule only = rule("only", {limit("100/1h")}, {per(Kind::user)});
  only.tiers = {.by = "client.tier", .values = {{"gold", {flight(20s)}}}};
  use({only});
  EXPECT_EQ(every(gold), 10s);
  EXPECT_EQ(every(none), 0s);
}

// ---- costs ------------------------------------------------------------------------------------

TEST_F(Values, SayWhatARequestCosts) {
  using CostKind = rules::CostRule::Kind;
  const auto left_after = [&](rules::CostRule cost, const Asking& asking) {
    static int number = 0;
    rules::Rule made = rule("cost" + std::to_string(number++), {limit("100/1h")});
    made.cost = std::move(cost);
    use({made});
    EXPECT_EQ(ask_as(asking), Action::pass);
    return 100 - decision_.remaining;
  };
  const rules::CostRule by_query{
      .kind = CostKind::query, .constant = 2, .name = "n", .max = 50, .by_method = {}};
  for (const auto& [target, cost] :
       {std::pair{"/?n=7", 7U}, std::pair{"/?x=1&n=%37", 7U}, std::pair{"/?n=900", 50U},
        std::pair{"/?n=0", 1U}, std::pair{"/?n=x", 2U}, std::pair{"/", 2U}}) {
    EXPECT_EQ(left_after(by_query, {.client = {}, .target = target}), cost) << target;
  }
  const rules::CostRule by_method{.kind = CostKind::method,
                                  .constant = 3,
                                  .name = {},
                                  .max = 1,
                                  .by_method = {{"GET", 1}, {"POST", 10}}};
  for (const auto& [method, cost] :
       {std::pair{"GET", 1U}, std::pair{"POST", 10U}, std::pair{"PUT", 3U}}) {
    EXPECT_EQ(left_after(by_method, {.client = {}, .method = method}), cost) << method;
  }
}

// ---- lists and overrides ----------------------------------------------------------------------

TEST_F(Values, PutSomebodyOnAList) {
  use({rule("all", {limit("1/1h")}, {per(Kind::user)})});
  const auto entry = [](const char* subject) {
    return ListEntry{.subject = Subject::parse(subject).value(), .expires = {}, .note = {}};
  };
  worker_->use(std::make_shared<const Lists>(
      std::vector{entry("user=ann"), entry("tenant=acme"), entry("api_key=k1")},
      std::vector{entry("user=bob"), entry("tenant=evil"), entry("api_key=k2")}));
  for (const identity::Identity& client :
       {identity::Identity{.user = "ann"}, identity::Identity{.user = "x", .tenant = "acme"},
        identity::Identity{.user = "y", .api_key = "k1"}}) {
    EXPECT_EQ(passed(5, {.client = client}), 5);
    EXPECT_EQ(reason_, Reason::allow_listed);
  }
  for (const identity::Identity& client :
       {identity::Identity{.user = "bob"}, identity::Identity{.user = "z", .tenant = "evil"},
        identity::Identity{.user = "z", .api_key = "k2"}}) {
    EXPECT_EQ(passed(5, {.client = client}), 0);
    EXPECT_EQ(reason_, Reason::deny_listed);
  }
  EXPECT_EQ(passed(5, {.client = {.user = "carl", .tenant = "ann"}}), 1) << "a tenant, no user";
}

TEST_F(Values, ChangeALimitForSomebody) {
  const auto times = [](const char* subject, const char* multiplier) {
    return Override{.subject = Subject::parse(subject).value(),
                    .permille = parse_multiplier(multiplier).value(),
                    .expires = {},
                    .note = {}};
  };
  use_with({rule("users", {limit("4/1h")}, {per(Kind::user)})},
           {times("user=ann", "2"), times("user=bob", "0.5"), times("tenant=acme", "10")});
  EXPECT_EQ(passed(50, {.client = {.user = "ann", .tenant = "acme"}}), 8);
  EXPECT_EQ(passed(50, {.client = {.user = "bob"}}), 2);
  EXPECT_EQ(passed(50, {.client = {.user = "carl", .tenant = "acme"}}), 4)
      << "its tenant has no counter of its own here";
  use_with({rule("tenants", {limit("4/1h")}, {per(Kind::tenant)})},
           {times("user=ann", "10"), times("tenant=acme", "2")});
  EXPECT_EQ(passed(50, {.client = {.user = "ann", .tenant = "acme"}}), 8);
  EXPECT_EQ(passed(50, {.client = {.user = "ann", .tenant = "other"}}), 4);
}

// ---- several rules, several limits ------------------------------------------------------------

// Of several that refuse, the one with the longest wait speaks, in its own way.
TEST_F(Values, OfTheBindingRuleMakeTheAnswer) {
  for (const bool dropping_binds : {true, false}) {
    now_ = at(now_.mono - at(Nanos{0}).mono + 10h);
    rules::Rule drops = rule("drops", {limit(dropping_binds ? "1/1h" : "1/1m")});
    drops.action.kind = rules::Action::Kind::drop;
    rules::Rule says = rule("says", {limit(dropping_binds ? "1/1m" : "1/1h")});
    says.action.status = 420;
    use({drops, says});
    EXPECT_EQ(passed(1, Asking{.client = {}}), 1);
    EXPECT_EQ(ask_as({.client = {}}), dropping_binds ? Action::drop : Action::reject);
    EXPECT_EQ(op_.status, dropping_binds ? 429 : 420);
    EXPECT_EQ(decision_.retry_after, 1h);
  }
}

// Delays are those of the slowest queue, whichever limit is named.
TEST_F(Values, OfTheSlowestQueueMakeTheDelay) {
  const auto pacing = [](const char* name, const char* rate) {
    rules::Rule made = rule(name, {limit(rate, Algorithm::leaky_bucket)});
    made.limits[0].limit.max_delay = 60s;
    made.action = {.kind = rules::Action::Kind::queue, .max_delay = 60s};
    return made;
  };
  use({pacing("slow", "1/5s"), pacing("fast", "1/1s")});
  EXPECT_EQ(ask_as({.client = {}}), Action::pass);
  EXPECT_EQ(ask_as({.client = {}}), Action::pass);
  EXPECT_EQ(decision_.delay, 5s);
}

// A refused request is charged by those limits that refused it themselves, and by no other.
TEST_F(Values, OfRefusedRequestsCountWhereTheyWereRefused) {
  rules::Rule made = rule(
      "denied", {limit("2/1m", Algorithm::token_bucket), limit("50/1h", Algorithm::fixed_window)});
  for (rules::RuleLimit& one : made.limits) one.limit.count_rejected = true;
  rules::Rule other = rule("other", {limit("50/1h", Algorithm::fixed_window)});
  other.limits[0].limit.count_rejected = true;
  use({made, other});
  EXPECT_EQ(passed(12, Asking{.client = {}}), 2);
  now_ = at(29s);
  EXPECT_EQ(ask_as({.client = {}}), Action::reject) << "and fills the bucket up again";
  now_ = at(31s);
  EXPECT_EQ(ask_as({.client = {}}), Action::reject) << "where half a minute would have freed one";
  now_ = at(2min);
  const RequestView request{.method = "GET", .host = "a", .target = "/"};
  ASSERT_EQ(worker_->decide(op_, request, identity::Identity{}, now_).completion,
            store::Completion::now);
  ASSERT_EQ(op_.limits().size(), 3U);
  EXPECT_EQ(op_.action, Action::pass);
  EXPECT_EQ(op_.limits()[1].decision.remaining, 47U) << "three were admitted";
  EXPECT_EQ(op_.limits()[2].decision.remaining, 47U);
}

// ---- edits, and what the store is told --------------------------------------------------------

TEST_F(Values, OfAnEditedLimitAreKeptSharedOrForgotten) {
  for (const auto& [change, left] :
       {std::pair{OnChange::keep, 15}, std::pair{OnChange::proportional, 10},
        std::pair{OnChange::reset, 20}}) {
    for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::token_bucket}) {
      SCOPED_TRACE(::testing::Message() << to_string(change) << " " << to_string(algorithm));
      now_ = at(now_.mono - at(Nanos{0}).mono + 10h);
      rules::Rule made = rule("edited", {limit("10/1h", algorithm)}, {per(Kind::ip)});
      made.on_change = change;
      use({made});
      EXPECT_EQ(passed(5, from("192.0.2.1")), 5);
      made.limits = {limit("20/1h", algorithm)};
      use({made});
      EXPECT_EQ(passed(50, from("192.0.2.1")), left);
    }
  }
}

// Keeps what it was asked.
class Witness final : public sluice::testing::StoreBehind {
 public:
  using StoreBehind::StoreBehind;
  store::Completion decide_all(store::Call& call, Now now) noexcept override {
    seen.assign(call.asked().begin(), call.asked().end());
    return StoreBehind::decide_all(call, now);
  }
  std::vector<store::Check> seen;
};

TEST_F(Values, OfARuleReachTheStore) {
  Witness witness{*local_};
  worker_ = new_worker(witness);
  rules::Rule strict = rule("strict", {limit("5/1h")}, {per(Kind::ip)});
  strict.on_table_full = OnTableFull::reject;
  rules::Rule hot = rule("hot", {limit("1000000/1s")});
  hot.thread_leases = true;
  rules::Rule share = rule("share", {limit("5/1h")});
  share.on_change = OnChange::proportional;
  share.count = rules::Count{.statuses = {{500, 599}}, .after = true};
  share.cost.constant = 3;
  use({strict, hot, share, rule("flight", {limit("9", Algorithm::concurrency)})});
  EXPECT_EQ(ask({}), Action::pass);
  ASSERT_EQ(witness.seen.size(), 4U);
  const auto has = [&](std::size_t i, const store::Check& expected) {
    const store::Check& check = witness.seen[i];
    EXPECT_EQ(check.on_table_full, expected.on_table_full) << i;
    EXPECT_EQ(check.thread_leases, expected.thread_leases) << i;
    EXPECT_EQ(check.change, expected.change) << i;
    EXPECT_EQ(check.probe, expected.probe) << i;
    EXPECT_EQ(check.may_be_refunded, expected.may_be_refunded) << i;
    EXPECT_EQ(check.cost, expected.cost) << i;
  };
  has(0, {.key = {}, .on_table_full = OnTableFull::reject});
  has(1, {.key = {}, .thread_leases = true});
  has(2, {.key = {},
          .cost = 3,
          .change = OnChange::proportional,
          .probe = true,
          .may_be_refunded = true});
  has(3, {.key = {}, .may_be_refunded = true});
}

}  // namespace
}  // namespace sluice::engine
