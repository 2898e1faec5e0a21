#include "rules/rule.h"
#include "support/temp_folder.h"
#include <sluice/engine.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ManualClock final : public Clock {
 public:
  Now now() const noexcept override { return now_; }
  Now now_{.mono = MonoTime{1000h}, .wall_offset = std::chrono::seconds{1'700'000'000}};
};

class EmbeddedEngine : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> made(std::string_view rules) {
    auto engine = Engine::from_text(rules, "test.yaml", {.clock = &clock_});
    EXPECT_TRUE(engine) << engine.error().text();
    return *std::move(engine);
  }
  static RequestView get(std::string_view target) {
    RequestView request;
    request.method = "GET";
    request.target = target;
    return request;
  }
  ManualClock clock_;
};

constexpr const char* kLogin =
    "rules:\n"
    "  - {name: login, match: {path: /login}, per: [user], limit: 2/1h, count: {status: 401}}\n"
    "  - {name: all, limit: 100/1h}\n";

TEST_F(EmbeddedEngine, DecidesAndIsToldTheResponse) {
  const auto engine = made(kLogin);
  EngineWorker worker{*engine};
  for (int i = 0; i < 5; ++i) {
    Admission admission = worker.decide(get("/login"));
    EXPECT_TRUE(admission.allowed());
    admission.report({.status = 200});
  }
  for (int i = 0; i < 2; ++i) worker.decide(get("/login")).report({.status = 401});
  const Admission refused = worker.decide(get("/login"));
  EXPECT_FALSE(refused.allowed());
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.rule(), "login");
  EXPECT_EQ(refused.reason(), "limited");
  EXPECT_EQ(refused.decision().limit, 2U);
  EXPECT_GT(refused.decision().retry_after, 0s);
}

TEST_F(EmbeddedEngine, KeepsChargesOfRequestsWithoutAReport) {
  const auto engine = made(kLogin);
  EngineWorker worker{*engine};
  (void)worker.decide(get("/login"));
  (void)worker.decide(get("/login"));
  EXPECT_FALSE(worker.decide(get("/login")).allowed());
}

TEST_F(EmbeddedEngine, GivesBackWhatWasAbandoned) {
  const auto engine = made(kLogin);
  EngineWorker worker{*engine};
  for (int i = 0; i < 9; ++i) worker.decide(get("/login")).abandon();
  EXPECT_TRUE(worker.decide(get("/login")).allowed());
}

TEST_F(EmbeddedEngine, AnswersForOneRuleByItsName) {
  const auto engine = made(kLogin);
  EngineWorker worker{*engine};
  EXPECT_FALSE(worker.is_rate_limited("login", {.user = "ann"}));
  EXPECT_FALSE(worker.is_rate_limited("login", {.user = "ann"}));
  EXPECT_TRUE(worker.is_rate_limited("login", {.user = "ann"}));
  EXPECT_FALSE(worker.is_rate_limited("login", {.user = "bob"}));
  EXPECT_FALSE(worker.is_rate_limited("logout", {.user = "ann"})) << "no such rule";
  const auto none = worker.decide("logout", {.user = "ann"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text(), HasSubstr("no rule 'logout' in the domain 'default'"));
}

// A kind of value that a rule may count by, somebody with it and somebody with another.
struct KindOfValue {
  std::string per;
  Caller one;
  std::optional<Caller> other;  // absent: it does not depend on the caller
};

// The compiler names a kind that is not here. Absent: there is no such kind.
std::optional<KindOfValue> kind_of_value(rules::Per::Kind kind) {
  using Kind = rules::Per::Kind;
  static const std::vector<HeaderView> kRed{{"X-Team", "red"}};
  static const std::vector<HeaderView> kBlue{{"x-team", "blue"}};
  static const std::vector<HeaderView> kFirst{{"org", "1"}};
  static const std::vector<HeaderView> kSecond{{"org", "2"}};
  static const std::vector<DescriptorEntry> kShop1{{"shop", "1"}};
  static const std::vector<DescriptorEntry> kShop2{{"shop", "2"}};
  static const Caller kThing{.target = "/things/1?plan=a"};
  const auto from = [](const char* text) { return Caller{.address = IpAddress::parse(text)}; };
  switch (kind) {
    case Kind::user: return {{"user", {.user = "a"}, {{.user = "b"}}}};
    case Kind::api_key: return {{"api_key", {.api_key = "a"}, {{.api_key = "b"}}}};
    case Kind::tenant: return {{"tenant", {.tenant = "a"}, {{.tenant = "b"}}}};
    case Kind::ip: return {{"ip", from("192.0.2.1"), from("192.0.2.2")}};
    case Kind::country: return {{"country", {.country = "DE"}, {{.country = "FR"}}}};
    case Kind::asn: return {{"asn", {.asn = 1}, {{.asn = 2}}}};
    case Kind::method: return {{"method", {.method = "GET"}, {{.method = "PUT"}}}};
    case Kind::route: return {{"route", {}, std::nullopt}};
    case Kind::path: return {{"path.id", kThing, {{.target = "/things/2?plan=a"}}}};
    case Kind::query: return {{"query.plan", kThing, {{.target = "/things/1?plan=b"}}}};
    case Kind::header: return {{"header.x-team", {.headers = kRed}, {{.headers = kBlue}}}};
    case Kind::claim: return {{"claim.org", {.claims = kFirst}, {{.claims = kSecond}}}};
    case Kind::attribute:
      return {{"attribute.org", {.attributes = kFirst}, {{.attributes = kSecond}}}};
    case Kind::descriptor:
      return {{"descriptor.shop", {.descriptor = kShop1}, {{.descriptor = kShop2}}}};
  }
  return std::nullopt;
}

TEST_F(EmbeddedEngine, ByNameEveryValueCountsForItself) {
  for (unsigned number = 0; number < 256; ++number) {
    const auto kind = kind_of_value(static_cast<rules::Per::Kind>(number));
    if (!kind) continue;
    const std::string& per = kind->per;
    const auto engine = made("rules: [{name: it, match: {path: '/things/{id}'}, per: ['" + per +
                             "'], limit: 1/1h}]\n");
    EngineWorker worker{*engine};
    EXPECT_FALSE(worker.is_rate_limited("it", kind->one)) << per;
    EXPECT_TRUE(worker.is_rate_limited("it", kind->one)) << per;
    if (!kind->other) continue;
    EXPECT_FALSE(worker.is_rate_limited("it", *kind->other)) << per;
    // Nobody is counted as somebody else because a value is missing.
    const auto lacking = worker.decide("it", {});
    ASSERT_FALSE(lacking) << per;
    EXPECT_THAT(lacking.error().text(), HasSubstr("counts per " + per));
    EXPECT_THROW((void)worker.is_rate_limited("it", {}), std::invalid_argument) << per;
  }
}

// What is known of a caller's key chooses his tier, and how much he may have.
TEST_F(EmbeddedEngine, ByNameAttributesChooseTierAndAmount) {
  const auto engine = made(
      "rules:\n"
      "  - {name: tiered, per: [user], limit: 1/1h,"
      " tiers: {by: attribute.plan, values: {gold: 3/1h}}}\n"
      "  - {name: amount, per: [user], limit: {rate: 1/1h, from: {attribute: seats, max: 9}}}\n");
  EngineWorker worker{*engine};
  const std::vector<HeaderView> gold{{"plan", "gold"}, {"seats", "5"}};
  const auto passed = [&](const char* rule, const Caller& caller) {
    int count = 0;
    while (count < 20 && !worker.is_rate_limited(rule, caller)) ++count;
    return count;
  };
  EXPECT_EQ(passed("tiered", {.user = "ann", .attributes = gold}), 3);
  EXPECT_EQ(passed("tiered", {.user = "bob"}), 1);
  EXPECT_EQ(passed("amount", {.user = "ann", .attributes = gold}), 5);
  EXPECT_EQ(passed("amount", {.user = "bob"}), 1);
}

TEST_F(EmbeddedEngine, ByNameAnAddressStandsForWhatIsMissing) {
  const auto engine = made(kLogin);
  EngineWorker worker{*engine};
  const Caller somebody{.address = IpAddress::parse("192.0.2.1")};
  EXPECT_FALSE(worker.is_rate_limited("login", somebody));
  EXPECT_FALSE(worker.is_rate_limited("login", somebody));
  EXPECT_TRUE(worker.is_rate_limited("login", somebody));
  EXPECT_FALSE(worker.is_rate_limited("login", {.address = IpAddress::parse("192.0.2.2")}));
}

TEST_F(EmbeddedEngine, ByNameADomainAndACostCanBeGiven) {
  const auto engine = made(
      "rules:\n"
      "  - {name: it, limit: 1/1h}\n"
      "  - {name: it, domain: other, limit: 10/1h, cost: 2}\n");
  EngineWorker worker{*engine};
  EXPECT_FALSE(worker.is_rate_limited("it", {}));
  EXPECT_TRUE(worker.is_rate_limited("it", {}));
  EXPECT_EQ(worker.decide("it", {.domain = "other"})->decision().remaining, 8U);
  EXPECT_EQ(worker.decide("it", {.domain = "other", .cost = 7})->decision().remaining, 1U);
  EXPECT_TRUE(worker.is_rate_limited("it", {.domain = "other"}));
  EXPECT_FALSE(worker.decide("it", {.domain = "third"}));
}

// A rule is found and asked in the same rules, whatever another thread loads in between.
TEST_F(EmbeddedEngine, ARuleByItsNameIsOfOneConfiguration) {
  constexpr const char* kThree =
      "rules: [{name: a, limit: 1000/1s}, {name: b, limit: 1000/1s}, {name: c, limit: 1000/1s}]\n";
  constexpr const char* kOne = "rules: [{name: c, limit: 1000/1s}]\n";
  const auto engine = made(kThree);
  std::atomic<bool> is_loading = true;
  const std::jthread loader{[&] {
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(engine->load_text(i % 2 == 0 ? kOne : kThree));
    is_loading = false;
  }};
  EngineWorker worker{*engine};
  while (is_loading) {
    const Parsed<Admission> by_name = worker.decide("c", {});
    ASSERT_TRUE(by_name) << by_name.error().text();
    ASSERT_EQ(by_name->rule(), "c");
    ASSERT_NO_THROW((void)worker.is_rate_limited("a", {}));
  }
}

// The rules that it was decided by are gone, and AddressSanitizer would know.
TEST_F(EmbeddedEngine, TheRuleOfAnAdmissionOutlivesItsRules) {
  const auto engine = made("rules: [{name: a-rule-with-a-long-name-of-its-own, limit: 1/1h}]\n");
  EngineWorker worker{*engine};
  Admission reported = worker.decide(get("/"));
  reported.report({.status = 200});
  Admission abandoned = worker.decide(get("/"));
  abandoned.abandon();
  const Admission open = worker.decide(get("/"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(engine->load_text("rules: [{name: another, limit: 1/1h}]\n"));
    (void)worker.decide(get("/"));
  }
  EXPECT_EQ(reported.rule(), "a-rule-with-a-long-name-of-its-own");
  EXPECT_EQ(abandoned.rule(), "a-rule-with-a-long-name-of-its-own");
  EXPECT_EQ(open.rule(), "a-rule-with-a-long-name-of-its-own");
  EXPECT_EQ(worker.decide(get("/")).rule(), "another");
}

TEST_F(EmbeddedEngine, ReadsRulesFromAFileOfTheirOwn) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("sluice.yaml")} << "rules_from: {file: rules.yaml}\n";
  std::ofstream{folder.file("rules.yaml")} << "rules: [{name: it, limit: 1/1h}]\n";
  const auto engine = Engine::from_file(folder.file("sluice.yaml"), {.clock = &clock_});
  ASSERT_TRUE(engine) << engine.error().text();
  EngineWorker worker{**engine};
  EXPECT_EQ(worker.decide(get("/")).rule(), "it");
  std::ofstream{folder.file("rules.yaml")} << "rules: [{name: new, limit: 1/1h}]\n";
  ASSERT_TRUE((*engine)->load_file(folder.file("sluice.yaml")));
  EXPECT_EQ(worker.decide(get("/")).rule(), "new");
}

TEST_F(EmbeddedEngine, SaysThatTreesAreNotForIt) {
  const auto engine = Engine::from_text("rules_from: {envoy: /no/such/folder}\n");
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().text(), HasSubstr("not for an embedded engine"));
}

// With `thread_leases` each worker takes units ahead, and all of them together leave the others
// some.
TEST_F(EmbeddedEngine, ManyWorkersDoNotTakeAllAheadForOne) {
  const auto refused_early = [&](unsigned workers) {
    const auto engine = Engine::from_text(
        "rules: [{name: all, limit: {rate: 1000000/1s, burst: 1000}, thread_leases: true}]\n",
        "test", {.clock = &clock_, .workers = workers});
    std::vector<std::unique_ptr<EngineWorker>> all;
    for (int i = 0; i < 8; ++i) all.push_back(std::make_unique<EngineWorker>(**engine));
    for (const auto& worker : all) (void)worker->decide(get("/"));
    // The others have what they took ahead; this one asks until nothing is left for it.
    int admitted = 8;
    while (all[0]->decide(get("/")).allowed()) ++admitted;
    return 1000 - admitted;
  };
  EXPECT_LT(refused_early(8), refused_early(1));
}

TEST_F(EmbeddedEngine, DecidesManyAtOnce) {
  const auto engine = made("rules: [{name: all, limit: 30/1h}]\n");
  EngineWorker worker{*engine};
  const std::vector<RequestView> requests(50, get("/"));
  std::vector<Admission> admissions(50);
  worker.decide(requests, admissions, clock_.now());
  int allowed = 0;
  for (const Admission& one : admissions) allowed += one.allowed() ? 1 : 0;
  EXPECT_EQ(allowed, 30);
}

TEST_F(EmbeddedEngine, ReportsEverythingThatIsWrongAndKeepsTheOldRules) {
  const auto engine = made("rules: [{name: all, limit: 3/1h}]\n");
  EngineWorker worker{*engine};
  const auto wrong = engine->load_text("rules: [{name: a, limt: 3/1h}, {nam: b, limit: 3}]\n");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("limt"));
  EXPECT_THAT(wrong.error().text(), HasSubstr("nam"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(worker.decide(get("/")).allowed());
  EXPECT_FALSE(worker.decide(get("/")).allowed());
  ASSERT_TRUE(engine->load_text("rules: [{name: all, limit: 5/1h}]\n"));
  EXPECT_TRUE(worker.decide(get("/")).allowed());
  EXPECT_FALSE(Engine::from_file("/no/such/file.yaml"));
}

TEST_F(EmbeddedEngine, ListsClientsAtRunTime) {
  const auto engine = made("rules: [{name: all, per: [ip], limit: 1/1h}]\n");
  EngineWorker worker{*engine};
  using Kind = ListedClient::Kind;
  ASSERT_TRUE(engine->list({.kind = Kind::override, .subject = "ip=0.0.0.0", .multiplier = "3"}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(worker.decide(get("/")).allowed());
  EXPECT_FALSE(worker.decide(get("/")).allowed());
  ASSERT_TRUE(engine->list({.kind = Kind::allow, .subject = "ip=0.0.0.0"}));
  EXPECT_TRUE(worker.decide(get("/")).allowed());
  EXPECT_EQ(engine->listed().size(), 2U);
  EXPECT_TRUE(engine->unlist(Kind::allow, "ip=0.0.0.0"));
  EXPECT_FALSE(engine->unlist(Kind::allow, "ip=0.0.0.0"));
  EXPECT_FALSE(engine->unlist(Kind::allow, "nonsense"));
  EXPECT_FALSE(engine->list({.kind = Kind::deny, .subject = "nonsense"}));
  EXPECT_FALSE(engine->list({.kind = Kind::override, .subject = "user=a", .multiplier = "lots"}));
}

TEST_F(EmbeddedEngine, TellsWhoIsBlocked) {
  const auto engine = made("rules: [{name: all, per: [ip], limit: 1/1h, block: {duration: 1h}}]\n");
  EngineWorker worker{*engine};
  for (int i = 0; i < 3; ++i) (void)worker.decide(get("/"));
  ASSERT_EQ(engine->blocked().size(), 1U);
  EXPECT_EQ(engine->blocked()[0].who, "ip=unix") << "a client without an address";
  EXPECT_TRUE(engine->unblock(engine->blocked()[0].id));
  EXPECT_TRUE(engine->blocked().empty());
}

}  // namespace
}  // namespace sluice
