// What limiter.h promises about asking and correcting.
#include "base/random.h"
#include "store/binding.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>
#include <sluice/limiter.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Now kStart{.mono = MonoTime{Nanos{1h}}, .wall_offset = Nanos{1'700'000'000s}};

Limit limit_of(std::string_view text, std::optional<Algorithm> algorithm = std::nullopt) {
  return core::parse_limit(text, algorithm).value();
}

Limit slots(std::uint64_t amount, Nanos slot_ttl) {
  return {.algorithm = Algorithm::concurrency, .amount = amount, .slot_ttl = slot_ttl};
}

// A limiter on a clock of the test.
struct Stage {
  ManualClock clock{kStart};
  Limiter limiter;

  explicit Stage(std::initializer_list<std::string_view> limits) : limiter(limits, options()) {}
  explicit Stage(const std::vector<Limit>& limits) : limiter(std::span{limits}, options()) {}

  [[nodiscard]] LimiterOptions options() const { return {.clock = &clock}; }
};

// ---- asking -----------------------------------------------------------------------------------

TEST(Limiter, ThreeLinesAreEnough) {
  Limiter limiter{"2/1h"};
  EXPECT_TRUE(limiter.allow("alice"));
  const Decision decision = limiter.check("alice");
  EXPECT_TRUE(decision.allowed());
  EXPECT_EQ(decision.limit, 2U);
  EXPECT_EQ(decision.remaining, 0U);
  EXPECT_FALSE(limiter.allow("alice"));
  EXPECT_TRUE(limiter.allow("bob")) << "every key has counts of its own";
}

TEST(Limiter, WithoutAKeyThereIsOneCountForAll) {
  Stage stage{"2/1h"};
  EXPECT_TRUE(stage.limiter.allow());
  EXPECT_TRUE(stage.limiter.allow(""));
  EXPECT_FALSE(stage.limiter.allow());
  EXPECT_TRUE(stage.limiter.allow("somebody"));
}

TEST(Limiter, AnswersWhatTheAlgorithmSays) {
  Stage stage{"5/1s"};
  const Decision decision = stage.limiter.check("key", 5);
  EXPECT_EQ(decision, (Decision{.verdict = Verdict::allowed,
                                .limit = 5,
                                .remaining = 0,
                                .reset_after = 1s,
                                .retry_after = std::nullopt}));
  EXPECT_EQ(stage.limiter.check("key", 2).retry_after, Nanos{400ms});
  stage.clock.advance(400ms - 1ns);
  EXPECT_FALSE(stage.limiter.check("key", 2).allowed());
  stage.clock.advance(1ns);
  EXPECT_TRUE(stage.limiter.check("key", 2).allowed());
}

TEST(Limiter, ACostBeyondTheCapacityCanNeverPassAndConsumesNothing) {
  Stage stage{"5/1s"};
  const Decision decision = stage.limiter.check("key", 6);
  EXPECT_EQ(decision.verdict, Verdict::never);
  EXPECT_FALSE(decision.retry_after);
  EXPECT_EQ(decision.remaining, 5U);
  EXPECT_TRUE(stage.limiter.check("key", 5).allowed());
}

TEST(Limiter, APeekWritesNothing) {
  Stage stage{"5/1s"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stage.limiter.peek("key").remaining, 5U);
  EXPECT_EQ(stage.limiter.table()->status().inserted, 0U);
  (void)stage.limiter.check("key", 5);
  EXPECT_TRUE(stage.limiter.peek("key").allowed());
  EXPECT_EQ(stage.limiter.peek("key").remaining, 0U);
}

TEST(Limiter, TakesTheTimeFromItsCallerOrItsClock) {
  Stage stage{"1/1s"};
  EXPECT_EQ(stage.limiter.now().mono, kStart.mono);
  EXPECT_TRUE(stage.limiter.allow("key"));
  EXPECT_FALSE(stage.limiter.allow("key"));
  Now later = kStart;
  later.mono += 1s;
  EXPECT_TRUE(stage.limiter.check("key", 1, later).allowed()) << "its clock stands still";
  stage.clock.advance(1s);
  EXPECT_FALSE(stage.limiter.allow("key"));
  stage.clock.advance(1s);
  EXPECT_TRUE(stage.limiter.allow("key"));
}

TEST(Limiter, KnowsCalendarPeriodsByTheWallClock) {
  Stage stage{"1/day"};
  ASSERT_TRUE(stage.limiter.allow("key"));
  const Nanos until_midnight = stage.limiter.check("key").retry_after.value();
  EXPECT_LE(until_midnight, 24h);
  stage.clock.advance(until_midnight);
  EXPECT_TRUE(stage.limiter.allow("key"));
}

TEST(Limiter, CanBeMoved) {
  Stage stage{"1/1s"};
  ASSERT_TRUE(stage.limiter.allow("key"));
  Limiter moved = std::move(stage.limiter);
  EXPECT_FALSE(moved.allow("key"));
  moved = Limiter{"1/1s"};
  EXPECT_TRUE(moved.allow("key"));
}

// ---- several limits ---------------------------------------------------------------------------

TEST(SeveralLimits, ARefusedRequestConsumesNothingOfAny) {
  Stage stage{"2/1s", "3/1h"};
  EXPECT_TRUE(stage.limiter.allow("key"));
  EXPECT_TRUE(stage.limiter.allow("key"));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(stage.limiter.allow("key"));
  stage.clock.advance(1s);
  EXPECT_TRUE(stage.limiter.allow("key")) << "the third of this hour";
  const Decision refused = stage.limiter.check("key");
  EXPECT_EQ(refused.limit, 3U) << "now the hour binds";
  EXPECT_EQ(refused.retry_after, Nanos{20min - 1s});
}

TEST(SeveralLimits, TheDecisionIsThatOfTheLimitThatBinds) {
  Stage stage{"5/1s", "8/1h"};
  EXPECT_EQ(stage.limiter.check("key").limit, 5U);
  stage.clock.advance(1s);
  EXPECT_EQ(stage.limiter.check("key", 4).limit, 5U);
  stage.clock.advance(1s);
  EXPECT_EQ(stage.limiter.check("key").limit, 8U) << "5 - 1 and 8 - 6 are left";
}

TEST(SeveralLimits, AdmittedRequestsAreHeldForTheSlowestQueue) {
  Limit fast = limit_of("10/1s", Algorithm::leaky_bucket);
  fast.max_delay = 10s;
  Limit slow = limit_of("2/1s", Algorithm::leaky_bucket);
  slow.max_delay = 10s;
  Limit roomy = limit_of("1000/1s");
  Stage stage{std::vector{fast, slow, roomy}};
  EXPECT_EQ(stage.limiter.check("key").delay, 0ns);
  EXPECT_EQ(stage.limiter.check("key").delay, 500ms);
  const std::array asks{Limiter::Ask{.limiter = &stage.limiter, .key = "key"}};
  std::array<Decision, 1> decisions;
  EXPECT_TRUE(Limiter::check_all(asks, decisions, stage.limiter.now()));
  EXPECT_EQ(decisions[0].delay, 1s);
}

store::Answer allowed(std::uint64_t remaining, Nanos reset) {
  return {.decision = {.remaining = remaining, .reset_after = reset}, .charge = {}};
}
store::Answer refused(std::optional<Nanos> retry, Verdict verdict = Verdict::rejected) {
  return {.decision = {.verdict = verdict, .retry_after = retry}, .charge = {}};
}

// The first of the two binds, in whichever order they come.
void expect_first_binds(const store::Answer& first, const store::Answer& second) {
  EXPECT_EQ(store::binding(std::array{first, second}), 0U);
  EXPECT_EQ(store::binding(std::array{second, first}), 1U);
}

TEST(Binding, ARefusalBindsRatherThanAnAdmission) {
  expect_first_binds(refused(1s), allowed(0, 1h));
}

TEST(Binding, OfRefusalsTheLongestWaitBindsAndWhatNobodyKnowsRanksBelowAnyNumber) {
  expect_first_binds(refused(2s), refused(1s));
  expect_first_binds(refused(0s), refused(std::nullopt));
  expect_first_binds(refused(std::nullopt, Verdict::never), refused(24h));
  expect_first_binds(refused(std::nullopt, Verdict::never), refused(std::nullopt));
}

TEST(Binding, OfAdmissionsTheLeastLeftBindsThenTheLongestReset) {
  expect_first_binds(allowed(1, 1s), allowed(2, 1h));
  expect_first_binds(allowed(1, 2s), allowed(1, 1s));
  EXPECT_EQ(store::binding(std::array{allowed(1, 1s), allowed(1, 1s)}), 0U);
}

TEST(SeveralLimits, AConcurrencyLimitSpeaksOnlyWhereNoOtherRefuses) {
  Stage stage{std::vector{slots(1, 1min), limit_of("2/1s")}};
  EXPECT_TRUE(stage.limiter.allow("key"));
  EXPECT_FALSE(stage.limiter.check("key").retry_after) << "nobody knows when the slot comes back";
  Stage both{std::vector{slots(1, 1min), limit_of("1/1s")}};
  EXPECT_TRUE(both.limiter.allow("key"));
  EXPECT_EQ(both.limiter.check("key").retry_after, Nanos{1s});
}

// ---- batches ----------------------------------------------------------------------------------

void expect_batch_equals_one_by_one(std::initializer_list<std::string_view> limits) {
  constexpr std::uint64_t kSeed = 20240521;
  Random random{kSeed};
  Stage one{limits};
  Stage many{limits};
  for (std::size_t size = 0; size < 70; ++size) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < size; ++i) keys.push_back("key " + std::to_string(random.below(9)));
    std::vector<Limiter::Request> requests;
    for (const std::string& key : keys) {
      requests.push_back({.key = key, .cost = static_cast<Cost>(random.below(4))});
    }
    std::vector<Decision> decisions(size);
    many.limiter.check(requests, decisions);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(decisions[i], one.limiter.check(requests[i].key, requests[i].cost))
          << "size " << size << ", request " << i << ", seed " << kSeed;
    }
    one.clock.advance(30ms);
    many.clock.advance(30ms);
  }
}

TEST(Batch, AnswersWhatOneByOneWould) { expect_batch_equals_one_by_one({"20/1s"}); }

TEST(Batch, AnswersWhatOneByOneWouldUnderSeveralLimits) {
  expect_batch_equals_one_by_one({"20/1s", "40/1m"});
}

TEST(Batch, TakesTheTimeFromItsCaller) {
  Stage stage{"1/1s"};
  const std::array<Limiter::Request, 2> requests{{{.key = "key"}, {.key = "key"}}};
  std::array<Decision, 2> decisions;
  Now now = kStart;
  stage.limiter.check(requests, decisions, now);
  EXPECT_TRUE(decisions[0].allowed());
  EXPECT_FALSE(decisions[1].allowed());
  now.mono += 1s;
  stage.limiter.check(requests, decisions, now);
  EXPECT_TRUE(decisions[0].allowed());
}

// ---- one request, several limiters ------------------------------------------------------------

struct Tenancy {
  ManualClock clock{kStart};
  Limiter user{"2/1s", {.name = "user", .clock = &clock}};
  Limiter tenant{"3/1s", {.name = "tenant", .table = user.table(), .clock = &clock}};
  std::array<Decision, 2> decisions;

  bool ask(std::string_view name, Cost cost = 1) {
    const std::array asks{
        Limiter::Ask{.limiter = &user, .key = name, .cost = cost},
        Limiter::Ask{.limiter = &tenant, .key = "acme", .cost = cost},
    };
    return Limiter::check_all(asks, decisions, clock.now());
  }
};

TEST(CheckAll, AdmitsOnlyWhatAllAdmitAndChargesNothingOtherwise) {
  Tenancy all;
  EXPECT_TRUE(all.ask("alice"));
  EXPECT_TRUE(all.ask("alice"));
  EXPECT_EQ(all.decisions[0].remaining, 0U);
  EXPECT_EQ(all.decisions[1].remaining, 1U);
  EXPECT_FALSE(all.ask("alice"));
  EXPECT_FALSE(all.decisions[0].allowed());
  EXPECT_TRUE(all.decisions[1].allowed());
  EXPECT_EQ(all.decisions[1].remaining, 1U) << "what is true without this request";
  EXPECT_TRUE(all.ask("bob"));
  EXPECT_FALSE(all.ask("carol")) << "the tenant's three are used";
  EXPECT_EQ(all.user.peek("carol").remaining, 2U);
}

TEST(CheckAll, OfNothingIsAdmitted) { EXPECT_TRUE(Limiter::check_all({}, {}, kStart)); }

TEST(CheckAll, RefusesLimitersOfDifferentTables) {
  Limiter one{"2/1s"};
  Limiter other{"2/1s"};
  const std::array asks{Limiter::Ask{.limiter = &one, .key = "a"},
                        Limiter::Ask{.limiter = &other, .key = "b"}};
  std::array<Decision, 2> decisions;
  EXPECT_THAT([&] { (void)Limiter::check_all(asks, decisions, kStart); },
              ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("share a table")));
  EXPECT_EQ(one.peek("a").remaining, 2U);
}

TEST(CheckAll, RefusesMoreLimitsThanItCanTake) {
  Limiter limiter{"2/1s"};
  const std::vector<Limiter::Ask> asks(65, {.limiter = &limiter, .key = "key"});
  std::vector<Decision> decisions(asks.size());
  EXPECT_THAT([&] { (void)Limiter::check_all(asks, decisions, kStart); },
              ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("64 limits at most")));
}

// ---- corrections ------------------------------------------------------------------------------

TEST(Refund, GivesBackAllOrAPart) {
  Stage stage{"5/1h"};
  const Reservation whole = stage.limiter.reserve("key", 3);
  ASSERT_TRUE(whole.decision.allowed());
  EXPECT_TRUE(whole.ticket);
  stage.limiter.refund(whole.ticket);
  EXPECT_EQ(stage.limiter.peek("key").remaining, 5U);
  const Reservation part = stage.limiter.reserve("key", 3);
  stage.limiter.refund(part.ticket, 2);
  EXPECT_EQ(stage.limiter.peek("key").remaining, 4U);
}

TEST(Refund, GivesBackUnderEveryLimit) {
  Stage stage{"5/1h", "7/1d"};
  const Reservation reservation = stage.limiter.reserve("key", 5);
  stage.limiter.refund(reservation.ticket);
  EXPECT_EQ(stage.limiter.peek("key").remaining, 5U);
  (void)stage.limiter.check("key", 5);
  EXPECT_EQ(stage.limiter.peek("key").remaining, 0U);
}

TEST(Refund, IsVoidOnceTheChargeHasExpired) {
  Stage stage{std::vector{limit_of("5/1s", Algorithm::fixed_window)}};
  const Reservation early = stage.limiter.reserve("key", 5);
  stage.clock.advance(1s);
  (void)stage.limiter.check("key", 2);
  stage.limiter.refund(early.ticket);
  EXPECT_EQ(stage.limiter.peek("key").remaining, 3U);
}

TEST(Refund, OfARefusedOrDroppedTicketDoesNothing) {
  Stage stage{"1/1h"};
  (void)stage.limiter.reserve("key");
  const Reservation refused = stage.limiter.reserve("key");
  EXPECT_FALSE(refused.decision.allowed());
  EXPECT_FALSE(refused.ticket);
  stage.limiter.refund(refused.ticket);
  stage.limiter.refund(Ticket{});
  EXPECT_FALSE(stage.limiter.allow("key"));
}

TEST(Refund, EndsARequestInFlight) {
  Stage stage{std::vector{slots(2, 1min)}};
  const Reservation first = stage.limiter.reserve("key");
  const Reservation second = stage.limiter.reserve("key");
  ASSERT_TRUE(second.ticket);
  EXPECT_FALSE(stage.limiter.reserve("key").decision.allowed());
  stage.limiter.refund(first.ticket);
  EXPECT_TRUE(stage.limiter.reserve("key").decision.allowed());
}

TEST(Charge, SaturatesAtTheLimit) {
  Stage stage{"5/1s"};
  EXPECT_EQ(stage.limiter.charge("key", 3).remaining, 2U);
  EXPECT_EQ(stage.limiter.charge("key", 1000).remaining, 0U);
  EXPECT_EQ(stage.limiter.check("key", 1).retry_after, Nanos{200ms});
}

TEST(Renew, KeepsSlotsBeyondTheirLife) {
  Stage stage{std::vector{slots(1, 10s)}};
  Ticket ticket = stage.limiter.reserve("key").ticket;
  for (int i = 0; i < 6; ++i) {
    stage.clock.advance(5s);
    ticket = stage.limiter.renew(ticket);
    ASSERT_TRUE(ticket) << i;
    EXPECT_FALSE(stage.limiter.allow("key")) << i;
  }
  stage.limiter.refund(ticket);
  EXPECT_TRUE(stage.limiter.allow("key")) << "the renewed ticket gives the slot back";
}

TEST(Renew, IsEmptyWhenItComesTooLate) {
  Stage stage{std::vector{slots(1, 10s)}};
  const Ticket ticket = stage.limiter.reserve("key").ticket;
  stage.clock.advance(30s);
  EXPECT_FALSE(stage.limiter.renew(ticket));
  EXPECT_TRUE(stage.limiter.allow("key"));
}

TEST(Renew, DoesNotMindThatOtherChargesHaveExpired) {
  Stage stage{std::vector{limit_of("5/1s"), slots(1, 24h)}};
  Ticket ticket = stage.limiter.reserve("key").ticket;
  stage.clock.advance(12h);
  stage.limiter.table()->upkeep(stage.clock.now());  // sweeps the bucket away
  ticket = stage.limiter.renew(ticket);
  EXPECT_TRUE(ticket);
  stage.clock.advance(23h);
  EXPECT_FALSE(stage.limiter.allow("key"));
  stage.limiter.refund(ticket);
  EXPECT_TRUE(stage.limiter.allow("key"));
}

TEST(Forget, ForgetsOneKeyUnderEveryLimit) {
  Stage stage{"1/1s", "1/1h"};
  EXPECT_FALSE(stage.limiter.forget("key"));
  ASSERT_TRUE(stage.limiter.allow("key"));
  ASSERT_TRUE(stage.limiter.allow("other"));
  EXPECT_TRUE(stage.limiter.forget("key"));
  EXPECT_TRUE(stage.limiter.allow("key"));
  EXPECT_FALSE(stage.limiter.allow("other"));
}

// ---- construction -----------------------------------------------------------------------------

template <class Error, class Make>
void expect_thrown(std::string_view text, const Make& make) {
  EXPECT_THAT(make, ::testing::ThrowsMessage<Error>(HasSubstr(text)));
}

TEST(Construction, RefusesALimitThatMakesNoSenseAndSaysWhatToChange) {
  expect_thrown<std::invalid_argument>("100/1s", [] { Limiter{"a hundred"}; });
  expect_thrown<std::invalid_argument>("100/1s", [] { Limiter limiter({"5/1s", "?"}); });
  Limit wrong = limit_of("5/1s");
  wrong.bucket_width = 1s;
  expect_thrown<std::invalid_argument>("leave it out", [&] { Limiter{wrong}; });
  expect_thrown<std::invalid_argument>("as in 100/1s",
                                       [] { Limiter limiter{std::span<const Limit>{}}; });
  expect_thrown<std::invalid_argument>("use at most 8", [] {
    const std::vector<Limit> limits(9, limit_of("5/1s"));
    Limiter limiter{std::span{limits}};
  });
}

TEST(Construction, RefusesATableThatCannotBeOpened) {
  expect_thrown<std::runtime_error>(
      "use at least", [] { Limiter limiter{"5/1s", {.own_table = {.memory = 1000}}}; });
  expect_thrown<std::runtime_error>("/no/such/folder/counts", [] {
    Limiter limiter{"5/1s", {.own_table = {.file = "/no/such/folder/counts"}}};
  });
}

std::string thrown_by(const std::vector<Limit>& limits, const LimiterOptions& options) {
  try {
    const Limiter limiter{std::span{limits}, options};
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Construction, AnswersTheSameWithoutExceptions) {
  Limit wrong = limit_of("5/1s");
  wrong.bucket_width = 1s;
  const LimiterOptions small{.own_table = {.memory = 1000}};
  const std::vector<std::pair<std::vector<Limit>, LimiterOptions>> cases{
      {{}, {}},
      {{wrong}, {}},
      {std::vector<Limit>(9, limit_of("5/1s")), {}},
      {{limit_of("5/1s")}, small},
      {{limit_of("5/1s")}, {.own_table = {.file = "/no/such/folder/counts"}}}};
  for (const auto& [limits, options] : cases) {
    const Parsed<Limiter> made = Limiter::make(limits, options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().text(), thrown_by(limits, options));
  }
  Parsed<Limiter> made = Limiter::make(std::vector{limit_of("1/1h")});
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->allow());
  EXPECT_FALSE(made->allow());
}

TEST(Construction, KeepsTheLimitsItWasGiven) {
  const Limiter limiter{"5/1s", "100/1h"};
  ASSERT_EQ(limiter.limits().size(), 2U);
  EXPECT_EQ(limiter.limits()[0].amount, 5U);
  EXPECT_EQ(limiter.limits()[1].period, 1h);
}

TEST(Construction, TellsTheMostThatCanPass) {
  const Limiter limiter{"5/1s", "100/day"};
  EXPECT_EQ(limiter.most_admitted(), 9U) << "5 + 5 - 1, a bucket";
  EXPECT_EQ(limiter.most_admitted(1), 200U) << "windows";
  EXPECT_EQ(limiter.early_rejections(), 0U);
}

// ---- observers --------------------------------------------------------------------------------

struct Heard {
  std::string limiter;
  std::string key;
  Cost cost = 0;
  Verdict verdict{};

  friend bool operator==(const Heard&, const Heard&) = default;
};

class Recorder final : public Observer {
 public:
  std::vector<Heard> heard;

  void decided(std::string_view limiter, std::string_view key, Cost cost,
               const Decision& decision) noexcept override {
    heard.push_back({std::string{limiter}, std::string{key}, cost, decision.verdict});
  }
};

TEST(Observers, AreToldEachDecisionOnce) {
  ManualClock clock{kStart};
  Recorder recorder;
  Limiter limiter{"3/1h", {.name = "name", .clock = &clock, .observer = &recorder}};
  const auto expect_told = [&](const std::vector<Heard>& expected) {
    EXPECT_EQ(recorder.heard, expected);
    recorder.heard.clear();
  };
  (void)limiter.check("a", 2);
  expect_told({{"name", "a", 2, Verdict::allowed}});
  (void)limiter.check("a", 2);
  expect_told({{"name", "a", 2, Verdict::rejected}});
  (void)limiter.check("a", 4);
  expect_told({{"name", "a", 4, Verdict::never}});
  (void)limiter.reserve("b");
  expect_told({{"name", "b", 1, Verdict::allowed}});
  (void)limiter.charge("b", 7);
  expect_told({{"name", "b", 7, Verdict::allowed}});
  const std::array<Limiter::Request, 2> requests{{{.key = "c", .cost = 3}, {.key = "c"}}};
  std::array<Decision, 2> decisions;
  limiter.check(requests, decisions);
  expect_told({{"name", "c", 3, Verdict::allowed}, {"name", "c", 1, Verdict::rejected}});
  const std::array asks{Limiter::Ask{.limiter = &limiter, .key = "d"}};
  (void)Limiter::check_all(asks, decisions, clock.now());
  expect_told({{"name", "d", 1, Verdict::allowed}});
  (void)limiter.forget("d");
  expect_told({});
}

TEST(Observers, AreToldOneDecisionForSeveralLimits) {
  Recorder recorder;
  Limiter limiter{{"3/1h", "5/1h"}, {.observer = &recorder}};
  (void)limiter.check("a");
  EXPECT_EQ(recorder.heard.size(), 1U);
}

// ---- many threads -----------------------------------------------------------------------------

constexpr int kThreads = 4;

template <class Work>
std::uint64_t sum_over_threads(const Work& work) {
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { sum += work(); });
  threads.clear();
  return sum;
}

// All at one instant, so that nothing flows in.
std::uint64_t admitted_at_once(Limiter& limiter, int requests) {
  return sum_over_threads([&] {
    std::uint64_t admitted = 0;
    for (int i = 0; i < requests; ++i) admitted += limiter.check("key", 1, kStart).allowed();
    return admitted;
  });
}

TEST(Threads, AdmitExactlyTheLimit) {
  ManualClock clock{kStart};
  Limiter limiter{"1000/1h", {.clock = &clock}};
  EXPECT_EQ(admitted_at_once(limiter, 1000), 1000U);
}

TEST(ThreadLeases, AdmitsNeverMoreThanTheLimitAndRefusesFewEarly) {
  ManualClock clock{kStart};
  Limiter limiter{"1000000/10s", {.thread_leases = true, .clock = &clock}};
  ASSERT_GT(limiter.early_rejections(), 0U);
  (void)limiter.charge("key", 960'000, kStart);
  const std::uint64_t admitted = admitted_at_once(limiter, 15'000);
  EXPECT_LE(admitted, 40'000U);
  EXPECT_GE(admitted + limiter.early_rejections(), 40'000U);
}

TEST(ThreadLeases, LeavesASmallLimitExact) {
  ManualClock clock{kStart};
  Limiter limiter{"500/1s", {.thread_leases = true, .clock = &clock}};
  EXPECT_EQ(limiter.early_rejections(), 0U);
  EXPECT_EQ(admitted_at_once(limiter, 500), 500U);
}

TEST(ThreadLeases, LeavesSeveralLimitsExact) {
  ManualClock clock{kStart};
  Limiter limiter{{"1000000/1s", "2000/1h"}, {.thread_leases = true, .clock = &clock}};
  EXPECT_EQ(limiter.early_rejections(), 0U);
  EXPECT_EQ(admitted_at_once(limiter, 1000), 2000U);
}

TEST(ThreadLeases, ForgetsRefusalsAfterARefundAResetAndANewLimit) {
  ManualClock clock{kStart};
  Limiter limiter{"1/1h", {.thread_leases = true, .clock = &clock}};
  const Ticket ticket = limiter.reserve("key").ticket;
  EXPECT_FALSE(limiter.allow("key"));
  limiter.refund(ticket);
  EXPECT_TRUE(limiter.allow("key"));
  EXPECT_FALSE(limiter.allow("key"));
  limiter.forget("key");
  EXPECT_TRUE(limiter.allow("key"));
  EXPECT_FALSE(limiter.allow("key"));
  Limiter raised{"3/1h", {.table = limiter.table(), .thread_leases = true, .clock = &clock}};
  EXPECT_TRUE(raised.allow("key"));
}

}  // namespace
}  // namespace sluice
