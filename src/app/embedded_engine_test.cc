#include <sluice/engine.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
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
  EXPECT_FALSE(worker.decide("logout", {.user = "ann"}));
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
  ASSERT_TRUE(engine->list({.kind = Kind::override, .subject = "ip=0.0.0.0", .factor = "3x"}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(worker.decide(get("/")).allowed());
  EXPECT_FALSE(worker.decide(get("/")).allowed());
  ASSERT_TRUE(engine->list({.kind = Kind::allow, .subject = "ip=0.0.0.0"}));
  EXPECT_TRUE(worker.decide(get("/")).allowed());
  EXPECT_EQ(engine->listed().size(), 2U);
  EXPECT_TRUE(engine->unlist(Kind::allow, "ip=0.0.0.0"));
  EXPECT_FALSE(engine->unlist(Kind::allow, "ip=0.0.0.0"));
  EXPECT_FALSE(engine->unlist(Kind::allow, "nonsense"));
  EXPECT_FALSE(engine->list({.kind = Kind::deny, .subject = "nonsense"}));
  EXPECT_FALSE(engine->list({.kind = Kind::override, .subject = "user=a", .factor = "lots"}));
}

TEST_F(EmbeddedEngine, TellsWhoIsBlocked) {
  const auto engine = made("rules: [{name: all, per: [ip], limit: 1/1h, block: {for: 1h}}]\n");
  EngineWorker worker{*engine};
  for (int i = 0; i < 3; ++i) (void)worker.decide(get("/"));
  ASSERT_EQ(engine->blocked().size(), 1U);
  EXPECT_EQ(engine->blocked()[0].who, "ip=0.0.0.0");
  EXPECT_TRUE(engine->unblock(engine->blocked()[0].id));
  EXPECT_TRUE(engine->blocked().empty());
}

}  // namespace
}  // namespace sluice
