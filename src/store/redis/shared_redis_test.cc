// Stores of several workers that share limits through a real redis-server.
//
// The transport is the test's: it decides when a reply arrives, and may lose commands and replies.

#include "base/random.h"
#include "store/local/local_store.h"
#include "store/redis/redis_authority.h"
#include "store/redis/redis_fixture.h"
#include "store/shared/shared_limits.h"
#include "store/shared/shared_store.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

// A connection of one worker.
class Wire final : public Transport {
 public:
  Wire(RedisServer& redis, std::uint64_t seed) : redis_(redis), random_(seed) {}

  std::uint64_t lost_in_ten = 0;  // commands, half of them after they were carried out

  [[nodiscard]] bool send(std::uint64_t tag, const Digest& /*key*/,
                          std::span<const std::string_view> words) noexcept override {
    const bool is_lost = random_.below(10) < lost_in_ten;
    Report report{.tag = tag};
    if (!is_lost || random_.below(2) == 0) {
      report.reply = redis_.ask({words.begin(), words.end()});
    }
    report.is_lost = is_lost;
    reports_.push_back(std::move(report));
    return true;
  }
  [[nodiscard]] bool receive(TransportReply& reply) noexcept override {
    if (may_arrive == 0 || reports_.empty()) return false;
    --may_arrive;
    current_ = std::move(reports_.front());
    reports_.pop_front();
    reply = {.tag = current_.tag, .kind = TransportReply::Kind::disconnected};
    if (current_.is_lost) return true;
    reply.kind = kind_of(current_.reply);
    reply.text = current_.reply.text;
    if (reply.kind == TransportReply::Kind::numbers) {
      numbers_ = current_.reply.numbers();
      reply.numbers = numbers_;
    }
    return true;
  }
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return {.mono = until}; }

  std::size_t may_arrive = 0;  // reports, before the next turn

 private:
  struct Report {
    std::uint64_t tag = 0;
    bool is_lost = false;
    RedisReply reply;
  };
  static TransportReply::Kind kind_of(const RedisReply& reply) {
    if (reply.kind == RedisReply::Kind::list) return TransportReply::Kind::numbers;
    if (reply.kind == RedisReply::Kind::error) return TransportReply::Kind::error;
    return TransportReply::Kind::text;
  }

  RedisServer& redis_;
  Random random_;
  std::deque<Report> reports_;
  Report current_;
  std::vector<std::int64_t> numbers_;
};

struct Worker {
  Worker(RedisServer& redis, const FunctionLibrary& library, LocalStore& table,
         const SharedLimits& limits, std::uint64_t number)
      : wire(redis, number),
        authority(wire, library, {.session = 1000 + number}),
        store(table, limits, authority, {.budget = 1h, .seed = number}) {}
  Wire wire;
  RedisAuthority authority;
  SharedStore store;
};

class SharedRedisTest : public ::testing::Test {
 protected:
  SharedRedisTest() {
    limits_.set_shared_secret({.first = 1, .second = 2});
    for (std::uint64_t i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<Worker>(redis_, library_, *table_, limits_, i));
    }
  }
  LimitNumber use(const Limit& limit) {
    return limits_.use(limit, {.mode = Mode::exact, .on_failure = OnFailure::closed}, now_).value();
  }
  void turn(Worker& worker, std::size_t arrivals, Nanos time = 1ms) {
    now_.mono += time;
    worker.wire.may_arrive = arrivals;
    worker.store.advance(now_);
  }
  // Until nothing is on its way, and everything has been sent again.
  void drain() {
    for (int i = 0; i < 400; ++i) {
      for (const auto& worker : workers_) turn(*worker, 1000, 100ms);
    }
    for (const auto& worker : workers_) ASSERT_EQ(worker->authority.calls_waiting(), 0U);
  }
  // A window, as Redis has it: the limit, its edition, start, end and count.
  struct Field {
    std::int64_t edition = 0;
    std::int64_t start = 0;
    std::int64_t stop = 0;
    std::int64_t count = 0;
  };
  Field field_of(const Check& check) {
    std::array<char, 9> name{};
    std::snprintf(name.data(), name.size(), "%08x", RedisAuthority::field_of(check.salt));
    std::istringstream words{redis_.ask({"HGET", shared_key(check.group_key()), name.data()}).text};
    std::string limit;
    Field field;
    words >> limit >> field.edition >> field.start >> field.stop >> field.count;
    return field;
  }
  std::int64_t count_of(const Check& check) { return field_of(check).count; }

  Now now_{.mono = MonoTime{1h},
           .wall_offset = std::chrono::system_clock::now().time_since_epoch() - 1h};
  RedisServer redis_;
  FunctionLibrary library_ = function_library();
  std::unique_ptr<LocalStore> table_ =
      LocalStore::open({.mapping = {.memory = Mapping::kMemoryMin}}, now_).value();
  SharedLimits limits_{*table_, &RedisLimit::compile, 2};
  std::vector<std::unique_ptr<Worker>> workers_;
};

constexpr Limit kYearly{
    .algorithm = Algorithm::fixed_window, .amount = 100, .period = std::chrono::hours{24 * 366}};

// Two workers, one limit, replies at any time, cancelled calls, refunds: what Redis counts is what
// was admitted and not given back, to the unit.
TEST_F(SharedRedisTest, TwoStoresHoldOneLimitExactly) {
  struct Request : Call {
    bool is_over = false;
  };
  const LimitNumber limit = use(kYearly);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random{seed};
    const Check check{.key = {.low = seed, .high = 77}, .salt = 5, .limit = limit};
    std::int64_t admitted = 0;
    std::int64_t refunded = 0;
    std::deque<std::pair<std::size_t, std::unique_ptr<Request>>> open;
    for (int i = 0; i < 400; ++i) {
      const std::size_t who = random.below(2);
      SharedStore& store = workers_[who]->store;
      if (random.below(3) > 0) {
        auto request = std::make_unique<Request>();
        request->checks[0] = check;
        request->checks[0].cost = static_cast<Cost>(1 + random.below(3));
        request->count = 1;
        request->group_from(0);
        request->completed = [](Call& done) noexcept {
          static_cast<Request&>(done).is_over = true;
        };
        request->is_over = store.decide_all(*request, now_) == Completion::now;
        open.emplace_back(who, std::move(request));
      }
      turn(*workers_[who], random.below(4));
      for (std::size_t n = 0; n < open.size();) {
        auto& [whose, request] = open[n];
        SharedStore& of = workers_[whose]->store;
        const bool cancels = !request->is_over && random.below(40) == 0;
        if (cancels) of.cancel(*request, now_);
        if (request->is_over && request->admitted) {
          const Cost cost = request->answers[0].charge.receipt.cost;
          admitted += cost;
          if (random.below(8) == 0) {
            Holding held = holding(request->answers[0].charge, cost);
            of.refund(check, held, now_);
            refunded += cost;
          }
        }
        if (cancels || request->is_over) {
          open.erase(open.begin() + static_cast<std::ptrdiff_t>(n));
        } else {
          ++n;
        }
      }
      ASSERT_LE(admitted - refunded, 100) << seed;
    }
    for (auto& [who, request] : open) {
      workers_[who]->store.cancel(*request, now_);
    }
    drain();
    EXPECT_EQ(count_of(check), admitted - refunded) << "seed " << seed;
    EXPECT_GT(admitted, 90);
  }
}

// Charges, refunds and corrections whose commands or replies are lost: each is applied once.
TEST_F(SharedRedisTest, LostCallsAreAppliedOnce) {
  Limit wide = kYearly;
  wide.amount = 1'000'000;
  const LimitNumber limit = use(wide);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random{seed};
    std::int64_t expected = 0;
    for (const auto& worker : workers_) worker->wire.lost_in_ten = seed % 7;
    const Check check{.key = {.low = seed, .high = 78}, .salt = 5, .limit = limit};
    for (int i = 0; i < 200; ++i) {
      Worker& worker = *workers_[random.below(2)];
      Check more = check;
      more.cost = static_cast<Cost>(1 + random.below(9));
      if (random.below(2) == 0) {
        worker.store.charge(more, now_);
        expected += more.cost;
      } else if (expected > 100) {
        // Of this window, whoever charged it.
        const Field field = field_of(check);
        if (field.count < 300) continue;  // refunds that are on their way find enough
        Holding held = holding({.limit = limit,
                                .receipt = {.mark = field.start, .cost = more.cost},
                                .edition = field.edition},
                               more.cost);
        worker.store.refund(check, held, now_);
        expected -= more.cost;
      }
      turn(worker, random.below(4), 5ms);
    }
    drain();
    EXPECT_EQ(count_of(check), expected) << "seed " << seed;
  }
  EXPECT_GT(workers_[0]->authority.counts().resent, 0U);
  EXPECT_EQ(workers_[0]->authority.counts().calls_dropped, 0U);
}

// A rejection in one group costs nothing in the other, at the server.
TEST_F(SharedRedisTest, GivesTheOtherGroupBack) {
  Limit narrow = kYearly;
  narrow.amount = 1;
  const Check wide_check{.key = {.low = 1, .high = 79}, .salt = 5, .limit = use(kYearly)};
  const Check narrow_check{.key = {.low = 2, .high = 80}, .salt = 5, .limit = use(narrow)};
  for (int i = 0; i < 5; ++i) {
    Call call;
    call.checks[0] = wide_check;
    call.checks[1] = narrow_check;
    call.count = 1;
    call.group_from(0);
    call.count = 2;
    call.group_from(1);
    if (workers_[0]->store.decide_all(call, now_) == Completion::later) drain();
    EXPECT_EQ(call.admitted, i == 0);
  }
  EXPECT_EQ(count_of(wide_check), 1);
  EXPECT_EQ(count_of(narrow_check), 1);
}

TEST_F(SharedRedisTest, LoadsTheFunctionsByItself) {
  ASSERT_EQ(redis_.ask({"FUNCTION", "LIST"}).list.size(), 0U);
  const Check check{.key = {.low = 1, .high = 81}, .salt = 5, .limit = use(kYearly)};
  Call call;
  call.checks[0] = check;
  call.count = 1;
  call.group_from(0);
  ASSERT_EQ(workers_[0]->store.decide_all(call, now_), Completion::later);
  drain();
  EXPECT_TRUE(call.admitted);
  EXPECT_EQ(redis_.ask({"FUNCTION", "LIST"}).list.size(), 1U);
  (void)redis_.ask({"FUNCTION", "FLUSH"});
  ASSERT_EQ(workers_[1]->store.decide_all(call, now_), Completion::later);
  drain();
  EXPECT_TRUE(call.admitted) << "and again after they were lost";
}

// A server that forbids functions: scripts do the same, on the same keys.
TEST_F(SharedRedisTest, RunsScriptsWhereFunctionsAreForbidden) {
  for (const char* const forbidden : {"-fcall", "-script"}) {
    (void)redis_.ask({"ACL", "SETUSER", "default", forbidden});
    (void)redis_.ask({"SCRIPT", "FLUSH"});
    const Check check{.key = {.low = 1, .high = 82}, .salt = 5, .limit = use(kYearly)};
    Call call;
    call.checks[0] = check;
    call.count = 1;
    call.group_from(0);
    ASSERT_EQ(workers_[0]->store.decide_all(call, now_), Completion::later);
    drain();
    EXPECT_TRUE(call.admitted) << forbidden;
  }
}

}  // namespace
}  // namespace sluice::store
