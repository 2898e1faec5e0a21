// A decision allocates nothing. A program of its own, since it counts every `new`.
#include "engine/engine_fixture.h"
#include "support/awkward_store.h"
#include "support/counted_new.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

namespace testing = sluice::testing;
using namespace std::chrono_literals;
using Kind = rules::Per::Kind;

class Allocations : public EngineFixture {};

// All that a rule can ask for, on requests that pass, that are refused, blocked, listed, held and
// settled.
TEST_F(Allocations, AreNotMadeByDecisions) {
  rules::Rule keys = rule("keys", {limit("50/1h"), limit("40/1h", Algorithm::sliding_counter)},
                          {per(Kind::api_key), per(Kind::route), per(Kind::header, "x-shard")});
  keys.match.paths = {"/v1/{id}/**"};
  keys.tiers = {.by = "client.tier", .values = {{"paid", {limit("60/1h")}}}};
  rules::Rule failures =
      rule("failures", {limit("30/1h", Algorithm::sliding_log)}, {per(Kind::ip)});
  failures.count = rules::Count{.statuses = {{400, 499}}};
  failures.block = rules::Block{.duration = 15min, .threshold = 3};
  rules::Rule early = rule("early", {limit("1000/1s")}, {per(Kind::ip)});
  early.before_auth = true;
  rules::Rule shadow = rule("shadow", {limit("3/1s")}, {per(Kind::path, "id")});
  shadow.match.paths = {"/v1/{id}/**"};
  shadow.action.kind = rules::Action::Kind::shadow;
  rules::Rule flying =
      rule("flying", {{.limit = {.algorithm = Algorithm::concurrency, .amount = 5}}});
  use({keys, failures, early, shadow, flying});
  const auto book = BlockBook::open("").value();
  worker_->use(book.get());
  worker_->use(std::make_shared<const Lists>(
      std::vector<ListEntry>{},
      std::vector<ListEntry>{{.subject = Subject::parse("ip=198.51.100.0/24").value()}}));

  const std::array headers{HeaderView{"X-Api-Key", "paid-key"}, HeaderView{"X-Shard", "7"},
                           HeaderView{"User-Agent", "test"}, HeaderView{"Accept", "*/*"}};
  std::array<int, 32> reasons{};
  const auto ask_often = [&] {
    for (std::uint32_t i = 0; i < 500; ++i) {
      const RequestView request{
          .method = i % 13 == 0 ? "post" : "POST",
          .host = "API.example.com:443",
          .target = i % 17 == 0   ? "/v1/%6cogin/../x?a=b"
                    : i % 23 == 0 ? "/v1%2Fusers/42%2Ffiles"
                                  : "/v1/users/42/files?a=b",
          .headers = std::span{headers}.first(i % 3 == 0 ? 4 : 1),
          .peer = i % 19 == 0 ? IpAddress::v4(0xc6336400U) : IpAddress::v4(i % 5)};
      (void)worker_->decide(op_, request, now_);
      ++reasons[static_cast<std::size_t>(op_.reason)];
      const ResponseView response{.status = static_cast<std::uint16_t>(i % 2 == 0 ? 200 : 401)};
      worker_->settle(op_, op_.action == Action::pass ? &response : nullptr, now_);
    }
  };
  ask_often();  // libraries make what they need the first time
  reasons = {};
  now_ = at(10h);
  const std::uint64_t before = sluice::testing::allocations();
  ask_often();
  const std::uint64_t after = sluice::testing::allocations();
  EXPECT_EQ(after, before);
  for (const Reason seen :
       {Reason::allowed, Reason::limited, Reason::blocked, Reason::deny_listed}) {
    EXPECT_GT(reasons[static_cast<std::size_t>(seen)], 0) << to_string(seen);
  }
}

// Nor are they where requests bring more amounts than there is room for: that is remembered.
TEST_F(Allocations, AreNotMadeByAmountsThatAreLeftOut) {
  rules::RuleLimit brought = limit("5/1h");
  brought.from = {.kind = rules::AmountFrom::Kind::claim, .name = "quota", .max = 1'000'000};
  use({rule("brought", {brought}, {per(Kind::user)})});
  const RequestView request{.method = "GET", .host = "a", .target = "/", .headers = {}, .peer = {}};
  const auto bring = [&](const Claims& claims) {
    (void)worker_->decide(op_, request, {.user = "ann", .claims = &claims}, now_);
    worker_->settle(op_, nullptr, now_);
  };
  for (std::size_t i = 0; i < table_->status().limits; ++i) {
    bring(Claims{{{"quota", std::to_string(100 + i)}}});
  }
  const Claims known{{{"quota", "107"}}};
  const Claims left_out{{{"quota", "500000"}}};
  bring(known);
  bring(left_out);
  const std::uint64_t counted = worker_->counters().dynamic_limits_skipped;
  const std::uint64_t before = sluice::testing::allocations();
  for (int i = 0; i < 100; ++i) {
    bring(known);
    bring(left_out);
  }
  EXPECT_EQ(sluice::testing::allocations(), before);
  EXPECT_EQ(worker_->counters().dynamic_limits_skipped, counted + 100);
}

// A connection may have a hundred requests at once.
TEST_F(Allocations, OfAnOpAreSmall) { EXPECT_LE(sizeof(Op), 1280U); }

// Nor are they where the store completes later, once as many requests were in flight before.
TEST_F(Allocations, AreNotMadeByDecisionsThatWait) {
  const auto far_table =
      store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, now_).value();
  store::LocalStores near{*table_};
  store::LocalStores far{*far_table};
  testing::AwkwardStores stores{near, far};
  const std::unique_ptr<store::Store> store = stores.for_worker(1);
  worker_ = new_worker(*store, &stores.limits());
  rules::Rule shared = rule("shared", {limit("1000/1h"), limit("500/1h")}, {per(Kind::ip)});
  shared.sharing = {.mode = Mode::exact};
  shared.count = rules::Count{.statuses = {{200, 200}}};
  rules::Rule shadow = shared;
  shadow.name = "shadow";
  shadow.action.kind = rules::Action::Kind::shadow;
  rules::Rule local = rule("local", {limit("400/1h")}, {per(Kind::ip)});
  local.sharing = {};
  worker_->use(Snapshot::make({.rules = {shared, shadow, local}}, stores.limits(), now_).value());

  std::array<Op, 16> ops;
  const auto ask_often = [&] {
    for (std::uint32_t i = 0; i < 20; ++i) {
      for (Op& op : ops) {
        const RequestView request{
            .method = "GET", .host = "a", .target = "/", .headers = {}, .peer = IpAddress::v4(i)};
        ASSERT_EQ(worker_->decide(op, request, now_).completion, store::Completion::later);
      }
      stores.workers().front()->answer_all(now_);
      store->advance(now_);
      for (Op& op : ops) {
        const ResponseView response{.status = static_cast<std::uint16_t>(i % 2 == 0 ? 200 : 500)};
        worker_->settle(op, &response, now_);
      }
      stores.workers().front()->answer_all(now_);
      store->advance(now_);
    }
  };
  ask_often();
  const std::uint64_t before = sluice::testing::allocations();
  ask_often();
  EXPECT_EQ(sluice::testing::allocations(), before);
  worker_ = nullptr;  // before its store
}

}  // namespace
}  // namespace sluice::engine
