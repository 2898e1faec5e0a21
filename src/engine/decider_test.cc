#include "engine/decider.h"

#include "engine/engine_fixture.h"
#include "engine/lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using rules::OnMissing;
using Kind = rules::Per::Kind;

class Engine : public EngineFixture {};

// ---- what decide() gives back -----------------------------------------------------------------

TEST_F(Engine, ReturnsTheRequestAsItsRulesSawIt) {
  use({rule("all", {limit("9/1h")}, {per(Kind::ip)})});
  const HeaderView key{"x-api-key", "paid-key"};
  RequestView request{.method = "GET",
                      .host = "API.Example.com:80",
                      .target = "/a/./b%2fc/%41?d=1",
                      .headers = {&key, 1},
                      .peer = *IpAddress::parse("192.0.2.7")};
  const Decided one = worker_->decide(op_, request, now_);
  EXPECT_EQ(one.completion, store::Completion::now);
  EXPECT_EQ(one.request.host, "api.example.com");
  EXPECT_EQ(one.request.path, "/a/b%2Fc/A");
  EXPECT_EQ(one.request.decoded_path, "/a/b/c/A");
  EXPECT_EQ(one.request.client.address, request.peer);
  EXPECT_EQ(one.request.client.api_key, "paid-key");
  worker_->settle(op_, nullptr, now_);

  request.target = "/b";
  const Decided other = worker_->decide(op_, request, {.user = "ann"}, now_);
  EXPECT_EQ(other.request.path, "/b");
  EXPECT_EQ(other.request.decoded_path, "") << "there is one reading";
  EXPECT_EQ(other.request.client.user, "ann");
  EXPECT_EQ(other.request.client.api_key, "") << "of the request before";
  worker_->settle(op_, nullptr, now_);
}

// A caller that routes a malformed request by mistake must not follow the request before it.
TEST_F(Engine, ReturnsNoHostAndNoPathOfAMalformedRequest) {
  use({rule("all", {limit("9/1h")}, {per(Kind::ip)})});
  const IpAddress peer = *IpAddress::parse("192.0.2.7");
  for (const auto& [host, target] : {std::pair{"a", "no-path"}, {"a b", "/"}, {"a", "/x/..%2fy"}}) {
    const RequestView good{.method = "GET", .host = "a", .target = "/b%2fc", .peer = {}};
    (void)worker_->decide(op_, good, now_);
    worker_->settle(op_, nullptr, now_);
    const RequestView bad{.method = "GET", .host = host, .target = target, .peer = peer};
    const Decided decided = worker_->decide(op_, bad, now_);
    EXPECT_EQ(op_.reason, Reason::bad_target) << host << target;
    EXPECT_EQ(decided.request.host, "") << host << target;
    EXPECT_EQ(decided.request.path, "") << host << target;
    EXPECT_EQ(decided.request.decoded_path, "") << host << target;
    EXPECT_EQ(decided.request.client.address, peer) << "the log names the client";
    worker_->settle(op_, nullptr, now_);
  }
}

// ---- the seeds' examples ----------------------------------------------------------------------

TEST_F(Engine, AdmitsTwelveHundredAnHourOfEachClient) {
  use({rule("hourly", {limit("1200/1h", Algorithm::sliding_log)}, {per(Kind::ip)})});
  EXPECT_EQ(passed(1300, {.ip = "192.0.2.1"}), 1200);
  EXPECT_EQ(passed(1300, {.ip = "192.0.2.2"}), 1200);
  EXPECT_EQ(status_, 429);
  EXPECT_EQ(rule_, "hourly");
}

TEST_F(Engine, LetsPaidCustomersDoMore) {
  rules::Rule plans = rule("plans", {limit("10/1h")}, {per(Kind::api_key)});
  plans.tiers = {.by = "client.tier", .values = {{"paid", {limit("50/1h")}}}};
  use({plans});
  EXPECT_EQ(passed(100, {.headers = {{"x-api-key", "paid-key"}}}), 50);
  EXPECT_EQ(passed(100, {.headers = {{"x-api-key", "free-key"}}}), 10);
  EXPECT_EQ(passed(100, {}), 10) << "by address";
}

// Three failures an hour; requests that succeed are not counted.
TEST_F(Engine, CountsFailuresOnly) {
  rules::Rule failures = rule("failures", {limit("3/1h")}, {per(Kind::ip)});
  failures.count = rules::Count{.statuses = {{400, 499}}};
  use({failures});
  EXPECT_EQ(passed(50, {}, 200), 50);
  EXPECT_EQ(passed(10, {}, 402), 3);
  EXPECT_EQ(passed(1, {}, 200), 0) << "nobody knows yet that this one would succeed";
}

TEST_F(Engine, HasALimitForAllAndOneForSomePaths) {
  rules::Rule all = rule("all", {limit("100/1h", Algorithm::sliding_log)}, {per(Kind::ip)});
  rules::Rule create = rule("create", {limit("3/1m", Algorithm::sliding_log)}, {per(Kind::ip)});
  create.match.paths = {"/createURL"};
  use({all, create});
  EXPECT_EQ(passed(10, {.target = "/createURL"}), 3);
  EXPECT_EQ(rule_, "create");
  EXPECT_EQ(passed(200, {.target = "/other"}), 97) << "refused ones cost nothing elsewhere";
}

TEST_F(Engine, RejectsWhatNoRuleConcernsIfToldTo) {
  rules::Rule login = rule("login", {limit("5/1m")});
  login.match.paths = {"/login"};
  use({login}, rules::Unmatched::reject);
  EXPECT_EQ(ask({.target = "/other"}), Action::reject);
  EXPECT_EQ(status_, 503);
  EXPECT_EQ(reason_, Reason::no_rule);
  EXPECT_EQ(ask({.target = "/login"}), Action::pass);
}

TEST_F(Engine, RequiresAProofIfToldTo) {
  use({rule("all", {limit("5/1h")})});
  worker_->use(identifier_, {.require_auth = true});
  EXPECT_EQ(ask({}), Action::reject);
  EXPECT_EQ(status_, 401);
  EXPECT_EQ(ask({.headers = {{"x-api-key", "nobody's"}}}), Action::reject);
  EXPECT_EQ(ask({.headers = {{"x-api-key", "free-key"}}}), Action::pass);
}

// ---- preflights -------------------------------------------------------------------------------

class Preflights : public EngineFixture {
 protected:
  const Sent preflight_{
      .method = "OPTIONS",
      .headers = {{"Origin", "https://shop.example"}, {"Access-Control-Request-Method", "PUT"}}};
};

// Browsers send no credentials with them, so 401 would shut out every page of another origin.
TEST_F(Preflights, NeedNotProveAnything) {
  use({rule("all", {limit("2/1h")})});
  worker_->use(identifier_, {.require_auth = true});
  EXPECT_EQ(passed(3, preflight_), 2) << "they count";
  EXPECT_EQ(reason_, Reason::limited);
  Sent half = preflight_;
  half.headers.pop_back();
  EXPECT_EQ(ask(half), Action::reject);
  EXPECT_EQ(reason_, Reason::unauthenticated);
  Sent other = preflight_;
  other.method = "PUT";
  EXPECT_EQ(ask(other), Action::reject);
  EXPECT_EQ(reason_, Reason::unauthenticated);
}

TEST_F(Preflights, PassUncountedIfToldTo) {
  rules::Rule early = rule("early", {limit("2/1h")}, {per(Kind::ip)});
  early.before_auth = true;
  rules::Rule refusing = rule("users", {limit("2/1h")}, {per(Kind::user)});
  refusing.on_missing = rules::OnMissing::reject;
  use({early, rule("all", {limit("3/1h")}), refusing}, rules::Unmatched::reject);
  worker_->use(identifier_, {.require_auth = true, .exempt_preflights = true});
  EXPECT_EQ(passed(100, preflight_), 100);
  EXPECT_EQ(reason_, Reason::preflight);
  use({rule("all", {limit("3/1h")})});
  EXPECT_EQ(passed(9, {.method = "OPTIONS", .headers = {{"x-api-key", "free-key"}}}), 3)
      << "another OPTIONS, and nothing was counted yet";
}

TEST_F(Preflights, AreDeniedAndBlockedThoughTheyAreNotCounted) {
  rules::Rule strict = rule("strict", {limit("1/1h")}, {per(Kind::ip)});
  strict.block = rules::Block{.duration = 15min, .threshold = 1};
  use({strict});
  worker_->use(identifier_, {.exempt_preflights = true});
  EXPECT_EQ(ask(preflight_), Action::pass);
  EXPECT_EQ(passed(2, {}), 1);
  EXPECT_EQ(ask(preflight_), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
  now_ = at(16min);
  EXPECT_EQ(ask(preflight_), Action::pass);
  worker_->use(std::make_shared<const Lists>(
      std::vector<ListEntry>{},
      std::vector<ListEntry>{
          {.subject = Subject::parse("ip=192.0.2.1").value(), .expires = {}, .note = {}}}));
  EXPECT_EQ(ask(preflight_), Action::reject);
  EXPECT_EQ(reason_, Reason::deny_listed);
}

// A block by who is asking, which is known only after the proof. Scripts may send one with
// preflights, though browsers do not.
TEST_F(Preflights, AreBlockedByWhatTheyProve) {
  rules::Rule strict = rule("strict", {limit("1/1h")}, {per(Kind::api_key)});
  strict.block = rules::Block{.duration = 15min, .threshold = 1};
  strict.match.paths = {"/a"};
  use({strict});
  worker_->use(identifier_, {.exempt_preflights = true});
  const auto with = [&](const char* key, const char* path = "/a") {
    Sent sent = preflight_;
    sent.target = path;
    sent.headers.push_back({"x-api-key", key});
    return sent;
  };
  EXPECT_EQ(passed(9, with("free-key")), 9) << "they are not counted";
  EXPECT_EQ(passed(2, {.target = "/a", .headers = {{"x-api-key", "free-key"}}}), 1);
  EXPECT_EQ(ask(with("free-key")), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
  EXPECT_EQ(rule_, "strict");
  EXPECT_EQ(ask(with("free-key", "/b")), Action::pass) << "the rule does not concern it";
  EXPECT_EQ(ask(with("paid-key")), Action::pass) << "another key";
  EXPECT_EQ(ask(preflight_), Action::pass) << "no key";
  now_ = at(16min);
  EXPECT_EQ(ask(with("free-key")), Action::pass);
  EXPECT_EQ(reason_, Reason::preflight);
}

// The same of a rule that is asked before the proof, and whose block is not among the first.
TEST_F(Preflights, AreBlockedByRulesThatWantNoProof) {
  rules::Rule strict = rule("strict", {limit("1/1h")}, {per(Kind::header, "x-device")});
  strict.block = rules::Block{.duration = 15min, .threshold = 1};
  strict.before_auth = true;
  strict.on_missing = rules::OnMissing::skip;
  strict.match.paths = {"/a"};
  use({strict, rule("other", {limit("9/1h")})});
  worker_->use(identifier_, {.exempt_preflights = true});
  Sent device = preflight_;
  device.target = "/a";
  device.headers.push_back({"x-device", "d1"});
  EXPECT_EQ(passed(9, device), 9);
  EXPECT_EQ(passed(2, {.target = "/a", .headers = {{"x-device", "d1"}}}), 1);
  EXPECT_EQ(ask(device), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
  device.headers.back().value = "d2";
  EXPECT_EQ(ask(device), Action::pass);
}

// ---- several rules ----------------------------------------------------------------------------

TEST_F(Engine, ChargesAllLimitsOrNone) {
  use({rule("wide", {limit("100/1h"), limit("5/1m", Algorithm::fixed_window)}, {per(Kind::ip)}),
       rule("narrow", {limit("3/1h")})});
  EXPECT_EQ(passed(10, {.ip = "192.0.2.1"}), 3);
  EXPECT_EQ(rule_, "narrow");
  use({rule("wide", {limit("100/1h"), limit("5/1m", Algorithm::fixed_window)}, {per(Kind::ip)})});
  EXPECT_EQ(passed(10, {.ip = "192.0.2.1"}), 2) << "three of five were charged";
}

TEST_F(Engine, NamesTheLimitWithTheLongestWait) {
  use({rule("minute", {limit("1/1m")}), rule("hour", {limit("1/1h")}),
       rule("many", {limit("9/1h")})});
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(ask({}), Action::reject);
  EXPECT_EQ(rule_, "hour");
  EXPECT_EQ(decision_.retry_after, 1h);
}

TEST_F(Engine, ShedsRequestsThatTooManyLimitsConcern) {
  std::vector<rules::Rule> all;
  for (int i = 0; i < 33; ++i) all.push_back(rule("r" + std::to_string(i), {limit("5/1s")}));
  use(all);
  EXPECT_EQ(ask({}), Action::reject);
  EXPECT_EQ(status_, 503);
  EXPECT_EQ(reason_, Reason::too_many_rules);
  EXPECT_EQ(worker_->counters().too_many_rules, 1U);
}

TEST_F(Engine, TellsWhatEveryLimitSaid) {
  use({rule("a", {limit("5/1s"), limit("100/1h")}), rule("b", {limit("7/1m")})});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  ASSERT_EQ(op_.limits().size(), 3U);
  EXPECT_EQ(op_.limits()[0].decision.remaining, 4U);
  EXPECT_EQ(op_.limits()[1].decision.remaining, 99U);
  EXPECT_EQ(op_.limits()[2].rule->name, "b");
  EXPECT_EQ(op_.decision.remaining, 4U);
}

// ---- shadow, before_auth ----------------------------------------------------------------------

TEST_F(Engine, NeverRefusesByAShadow) {
  rules::Rule shadow = rule("shadow", {limit("2/1h")});
  shadow.action.kind = rules::Action::Kind::shadow;
  use({shadow, rule("real", {limit("5/1h")})});
  EXPECT_EQ(passed(10, {}), 5);
  EXPECT_EQ(rule_, "real");
  EXPECT_EQ(worker_->counters().would_refuse, 3U) << "of the five that passed";
}

TEST_F(Engine, LeavesShadowsOutOfWhatIsMatched) {
  rules::Rule shadow = rule("shadow", {limit("2/1h")});
  shadow.action.kind = rules::Action::Kind::shadow;
  use({shadow}, rules::Unmatched::reject);
  EXPECT_EQ(ask({}), Action::reject);
  EXPECT_EQ(reason_, Reason::no_rule);
}

// Every attempt counts, also those that a later rule refuses.
TEST_F(Engine, CountsEveryAttemptBeforeVerification) {
  rules::Rule early = rule("early", {limit("5/1h")}, {per(Kind::ip)});
  early.before_auth = true;
  use({early, rule("late", {limit("1/1h")})});
  EXPECT_EQ(passed(3, {}), 1);
  EXPECT_EQ(rule_, "late");
  EXPECT_EQ(passed(3, {}), 0);
  EXPECT_EQ(rule_, "early") << "the sixth attempt";
}

// ---- blocks -----------------------------------------------------------------------------------

TEST_F(Engine, BlocksWhoWasRefused) {
  rules::Rule made = rule("login", {limit("2/1s")}, {per(Kind::ip)});
  made.block = rules::Block{.duration = 15min, .threshold = 1};
  use({made});
  EXPECT_EQ(passed(3, {}), 2);
  EXPECT_EQ(reason_, Reason::limited);
  EXPECT_EQ(decision_.retry_after, 15min) << "who comes when the limit is free finds the block";
  EXPECT_EQ(decision_.reset_after, 15min);
  now_ = at(10min);
  EXPECT_EQ(ask({}), Action::reject) << "the limit itself has long been free";
  EXPECT_EQ(reason_, Reason::blocked);
  EXPECT_EQ(status_, 429);
  EXPECT_EQ(rule_, "login");
  EXPECT_EQ(decision_.retry_after, 5min);
  EXPECT_EQ(ask({.ip = "192.0.2.7"}), Action::pass) << "somebody else";
  now_ = at(15min - 1ns);
  EXPECT_EQ(ask({}), Action::reject) << "not extended, not shortened";
  now_ = at(15min);
  EXPECT_EQ(ask({}), Action::pass);
}

TEST_F(Engine, BlocksAfterSoManyRefusals) {
  rules::Rule made = rule("login", {limit("1/1s")}, {per(Kind::ip)});
  made.block = rules::Block{.duration = 10min, .threshold = 3};
  use({made});
  for (int round = 0; round < 2; ++round) {
    const Nanos begin = 20min * round;
    for (int i = 0; i < 3; ++i) {
      now_ = at(begin + 10s * i);
      EXPECT_EQ(ask({}), Action::pass) << round << " " << i;
      EXPECT_EQ(ask({}), Action::reject);
      EXPECT_EQ(reason_, Reason::limited);
      EXPECT_EQ(decision_.retry_after, i < 2 ? Nanos{1s} : Nanos{10min}) << round << " " << i;
    }
    now_ = at(begin + 1min);
    EXPECT_EQ(ask({}), Action::reject);
    EXPECT_EQ(reason_, Reason::blocked);
    EXPECT_EQ(decision_.retry_after, 9min + 20s);
  }
  EXPECT_EQ(worker_->counters().blocks, 2U);
}

// A rule that had no objection punishes nobody.
TEST_F(Engine, BlocksByTheRuleThatRefusedOnly) {
  rules::Rule strict = rule("strict", {limit("1/1s")}, {per(Kind::ip)});
  rules::Rule generous = rule("generous", {limit("100/1s")}, {per(Kind::ip)});
  generous.block = rules::Block{.duration = 1h, .threshold = 1};
  use({strict, generous});
  EXPECT_EQ(passed(5, {}), 1);
  now_ = at(10s);
  EXPECT_EQ(ask({}), Action::pass);
}

// ---- keys -------------------------------------------------------------------------------------

TEST_F(Engine, TellsAUserFromAnAddressOfTheSameText) {
  use({rule("both", {limit("1/1h")}, {per(Kind::header, "x-user")})});
  EXPECT_EQ(passed(2, {.headers = {{"X-User", "192.0.2.1"}}, .ip = "198.51.100.1"}), 1);
  EXPECT_EQ(passed(2, {.ip = "192.0.2.1"}), 1) << "missing, so by address";
}

TEST_F(Engine, TreatsMissingValuesAsTold) {
  const auto with = [](OnMissing on_missing) {
    rules::Rule made = rule("by-header", {limit("1/1h")}, {per(Kind::header, "x-user")});
    made.on_missing = on_missing;
    return made;
  };
  use({with(OnMissing::ip)});
  EXPECT_EQ(passed(2, {.ip = "192.0.2.1"}), 1);
  EXPECT_EQ(passed(2, {.ip = "192.0.2.2"}), 1);
  use({with(OnMissing::shared)});
  EXPECT_EQ(passed(1, {.ip = "192.0.2.3"}) + passed(1, {.ip = "192.0.2.4"}), 1);
  use({with(OnMissing::skip)});
  EXPECT_EQ(passed(5, {.ip = "192.0.2.5"}), 5);
  use({with(OnMissing::reject)});
  EXPECT_EQ(ask({.ip = "192.0.2.6"}), Action::reject);
  EXPECT_EQ(status_, 403);
  EXPECT_EQ(reason_, Reason::missing_value);
  EXPECT_EQ(rule_, "by-header");
}

TEST_F(Engine, CountsIpv6ClientsByTheirNetwork) {
  use({rule("net", {limit("1/1h")}, {per(Kind::ip)})});
  EXPECT_EQ(passed(1, {.ip = "2001:db8::1"}), 1);
  EXPECT_EQ(passed(1, {.ip = "2001:db8::ffff:1"}), 0);
  EXPECT_EQ(passed(1, {.ip = "2001:db8:0:1::1"}), 1);
}

TEST_F(Engine, CombinesSeveralValues) {
  rules::Rule made = rule("both", {limit("1/1h")}, {per(Kind::path, "id"), per(Kind::ip)});
  made.match.paths = {"/users/{id}"};
  use({made});
  EXPECT_EQ(passed(2, {.target = "/users/1"}), 1);
  EXPECT_EQ(passed(2, {.target = "/users/2"}), 1);
  EXPECT_EQ(passed(2, {.target = "/users/1", .ip = "192.0.2.9"}), 1);
}

// One rule on /login, and the ways around it.
TEST_F(Engine, IsNotDodgedByOtherSpellingsOfAPath) {
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/login"};
  use({login});
  ASSERT_EQ(ask({.target = "/login"}), Action::pass);
  for (const char* other : {"/login/", "/login/.", "/%6cogin", "//login", "/login/../login",
                            "/./login", "/x/%2e%2e/login", "/login?x=1", "http://h/login"}) {
    EXPECT_EQ(ask({.target = other}), Action::reject) << other;
    EXPECT_EQ(reason_, Reason::limited) << other;
  }
  EXPECT_EQ(ask({.target = "/login%00"}), Action::reject);
  EXPECT_EQ(status_, 400);
}

TEST_F(Engine, ChargesWhatARequestCosts) {
  rules::Rule made = rule("weighted", {limit("10/1h")});
  made.cost = {.kind = rules::CostRule::Kind::header, .constant = 1, .name = "x-cost", .max = 4};
  use({made});
  EXPECT_EQ(passed(5, {.headers = {{"X-Cost", "3"}}}), 3);
  EXPECT_EQ(passed(5, {}), 1);
}

TEST_F(Engine, ClampsACostThatTheClientNames) {
  rules::Rule made = rule("weighted", {limit("10/1h")});
  made.cost = {.kind = rules::CostRule::Kind::header, .constant = 2, .name = "x-cost", .max = 4};
  use({made});
  for (const char* sent : {"0", "999", "-1", "x", ""}) (void)ask({.headers = {{"X-Cost", sent}}});
  // 1 + 4 + 2 + 2, and then 2 do not fit into what is left of 10.
  EXPECT_EQ(decision_.remaining, 1U);
}

// ---- tiers and edits --------------------------------------------------------------------------

// Tier and amount are not part of the key.
TEST_F(Engine, KeepsWhatWasUsedWhenTheTierChanges) {
  rules::Rule plans = rule("plans", {limit("10/1h")}, {per(Kind::ip)});
  plans.tiers = {.by = "client.tier", .values = {{"paid", {limit("50/1h")}}}};
  use({plans});
  EXPECT_EQ(passed(20, {}), 10);
  EXPECT_EQ(passed(100, {.headers = {{"x-api-key", "paid-key"}}}), 40);
  EXPECT_EQ(passed(100, {}), 0);
}

TEST_F(Engine, KeepsCountsWhenRulesAreReplaced) {
  use({rule("a", {limit("10/1h")}, {per(Kind::ip)})});
  EXPECT_EQ(passed(4, {}), 4);
  use({rule("other", {limit("9/1s")}), rule("a", {limit("20/1h")}, {per(Kind::ip)})});
  EXPECT_EQ(passed(9, {}), 9);
  EXPECT_EQ(passed(20, {}), 0) << "by the other rule";
  now_ = at(1s);
  EXPECT_EQ(passed(20, {}), 7) << "of twenty, thirteen were used";
  use({rule("renamed", {limit("20/1h")}, {per(Kind::ip)})});
  EXPECT_EQ(passed(30, {}), 20);
}

TEST_F(Engine, DecidesRequestsUnderWayByTheirOwnRules) {
  use({rule("old", {limit("1/1h", Algorithm::sliding_log)})});
  rules::Rule counting = rule("old", {limit("1/1h", Algorithm::sliding_log)});
  counting.count = rules::Count{.statuses = {{500, 599}}};
  use({counting});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  use({rule("new", {limit("5/1h")})});
  const ResponseView good{.status = 200, .grpc_status = {}, .headers = {}};
  worker_->settle(op_, &good, now_);  // by the rule it was decided by: given back
  use({counting});
  EXPECT_EQ(ask({}), Action::pass);
}

// ---- after the decision -----------------------------------------------------------------------

// All guesses are on their way before the first answer comes back.
TEST_F(Engine, AdmitsNoMoreParallelGuessesThanTheLimit) {
  rules::Rule failures = rule("guesses", {limit("3/1h")}, {per(Kind::ip)});
  failures.count = rules::Count{.statuses = {{401, 401}}};
  use({failures});
  std::array<Op, 10> ops;
  int admitted = 0;
  for (Op& op : ops) {
    (void)decide(op, {});
    admitted += op.action == Action::pass ? 1 : 0;
  }
  EXPECT_EQ(admitted, 3);
  const ResponseView wrong{.status = 401, .grpc_status = {}, .headers = {}};
  for (Op& op : ops) worker_->settle(op, &wrong, now_);
  EXPECT_EQ(ask({}), Action::reject);
}

TEST_F(Engine, KeepsTheChargeWhenNoAnswerCame) {
  rules::Rule failures = rule("failures", {limit("1/1h")}, {per(Kind::ip)});
  failures.count = rules::Count{.statuses = {{500, 599}}};
  use({failures});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->settle(op_, nullptr, now_);
  EXPECT_EQ(ask({}), Action::reject);
}

TEST_F(Engine, GivesBackWhatWasNeverPassedOn) {
  use({rule("a", {limit("1/1h")}, {per(Kind::ip)})});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->abandon(op_, now_);
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(ask({}), Action::reject);
}

TEST_F(Engine, CountsRequestsInFlight) {
  use({rule("flight", {limit("2", Algorithm::concurrency)})});
  std::array<Op, 3> ops;
  for (Op& op : ops) (void)decide(op, {});
  EXPECT_EQ(ops[1].action, Action::pass);
  EXPECT_EQ(ops[2].action, Action::reject);
  worker_->settle(ops[0], nullptr, now_);
  (void)decide(ops[2], {});
  EXPECT_EQ(ops[2].action, Action::pass);
}

// A lease that nobody renews lapses; one that is renewed does not.
TEST_F(Engine, RenewsRequestsInFlight) {
  use({rule("flight", {limit("1", Algorithm::concurrency)})});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  for (int i = 1; i <= 4; ++i) {
    now_ = at(30s * i);
    worker_->renew(op_, now_);
  }
  Op other;
  (void)decide(other, {});
  EXPECT_EQ(other.action, Action::reject) << "two minutes on";
  worker_->settle(op_, nullptr, now_);
  (void)decide(other, {});
  EXPECT_EQ(other.action, Action::pass);
}

TEST_F(Engine, CorrectsACostOnceItIsKnown) {
  use({rule("a", {limit("10/1h")})});
  ASSERT_EQ(decide(op_, {}), store::Completion::now);
  worker_->correct_cost(op_, 6, now_);
  worker_->settle(op_, nullptr, now_);
  EXPECT_EQ(passed(10, {}), 4);
}

TEST_F(Engine, HoldsRequestsInAQueue) {
  rules::Rule queue = rule("queue", {limit("1/1s", Algorithm::leaky_bucket)});
  queue.limits[0].limit.max_delay = 2s;
  queue.action.kind = rules::Action::Kind::queue;
  use({queue});
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(decision_.delay, 0s);
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(decision_.delay, 1s);
  EXPECT_EQ(passed(5, {}), 1);
}

TEST_F(Engine, DropsWithoutAnAnswerIfToldTo) {
  rules::Rule drop = rule("drop", {limit("1/1h")});
  drop.action.kind = rules::Action::Kind::drop;
  use({drop});
  EXPECT_EQ(ask({}), Action::pass);
  EXPECT_EQ(ask({}), Action::drop);
}

TEST_F(Engine, AnswersWithTheStatusOfTheRule) {
  rules::Rule made = rule("busy", {limit("1/1h")});
  made.action.status = 420;
  use({made});
  EXPECT_EQ(passed(2, {}), 1);
  EXPECT_EQ(status_, 420);
}

}  // namespace
}  // namespace sluice::engine
