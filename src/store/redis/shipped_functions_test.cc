// The shipped text, with the clock of a real redis-server.

#include "base/random.h"
#include "store/redis/call_codec.h"
#include "store/redis/function_library.h"
#include "store/redis/redis_fixture.h"
#include "store/redis/shared_limit.h"
#include <sluice/int128.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

class ShippedFunctions : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(redis_.ask({"FUNCTION", "LOAD", library_.library}).text, library_.name);
  }

  static SharedLimit limit_of(const Limit& limit) { return compile_shared(limit).value(); }

  // The command with the arguments that were written last.
  RedisReply call(std::string_view command, std::string_view what, const std::string& key) {
    std::vector<std::string_view> words{command, what, "1", key};
    for (std::size_t i = 0; i < arguments_.size(); ++i) words.push_back(arguments_[i]);
    return redis_.ask(words);
  }

  SharedAnswer answer_of(const RedisReply& reply, const SharedLimit& limit) {
    SharedAnswer answer;
    const auto read = read_reply(reply.numbers(), std::span{&limit.capacity, 1}, {&answer, 1});
    EXPECT_TRUE(read.has_value());
    if (read) status_ = read->status;
    return answer;
  }

  SharedAnswer decide(const SharedLimit& limit, const std::string& key, Cost cost = 1) {
    const SharedCheck check{.limit = &limit, .field = 7, .cost = cost};
    write_decide(arguments_, std::span{&check, 1}, wall());
    return answer_of(call("FCALL", library_.name, key), limit);
  }

  static WallTime wall() { return WallTime{std::chrono::system_clock::now().time_since_epoch()}; }

  RedisServer redis_;
  FunctionLibrary library_ = function_library();
  CallArguments arguments_;
  ReplyStatus status_ = ReplyStatus::done;
  const std::string key_ = shared_key({.low = 1, .high = 2});
};

TEST_F(ShippedFunctions, AdmitExactlyTheLimit) {
  const SharedLimit limit =
      limit_of({.algorithm = Algorithm::fixed_window, .amount = 5, .period = 366 * 24h});
  for (std::uint64_t left = 5; left-- > 0;) {
    const SharedAnswer answer = decide(limit, key_);
    EXPECT_TRUE(answer.decision.allowed());
    EXPECT_EQ(answer.decision.remaining, left);
    EXPECT_EQ(answer.charge.cost, 1U);
  }
  const SharedAnswer rejected = decide(limit, key_);
  EXPECT_EQ(rejected.decision.verdict, Verdict::rejected);
  EXPECT_EQ(status_, ReplyStatus::rejected);
  EXPECT_GT(*rejected.decision.retry_after, Nanos{0});
}

// A key that the first call makes has an end of life, after what it counts and not much later; a
// shorter need does not bring it forward.
TEST_F(ShippedFunctions, GiveEveryKeyAnEnd) {
  const SharedLimit minutes =
      limit_of({.algorithm = Algorithm::sliding_log, .amount = 5, .period = 5min});
  (void)decide(minutes, key_);
  const std::int64_t first = redis_.ask({"PTTL", key_}).number;
  EXPECT_GT(first, 300'000);
  EXPECT_LE(first, 305'001);
  const SharedLimit moment = limit_of({.algorithm = Algorithm::gcra, .amount = 5, .period = 1s});
  const SharedCheck check{.limit = &moment, .field = 8};
  write_decide(arguments_, std::span{&check, 1}, wall());
  (void)answer_of(call("FCALL", library_.name, key_), moment);
  EXPECT_GT(redis_.ask({"PTTL", key_}).number, 290'000);
}

// Refunds that were waiting for each other travel in one call.
TEST_F(ShippedFunctions, RefundAFieldSeveralTimesInOneCall) {
  const Limit buckets{.algorithm = Algorithm::token_bucket, .amount = 100, .period = 1h};
  const Limit windows{.algorithm = Algorithm::fixed_window, .amount = 100, .period = 366 * 24h};
  const Limit logs{.algorithm = Algorithm::sliding_log, .amount = 100, .period = 1h};
  const Limit slots{.algorithm = Algorithm::concurrency, .amount = 100};
  FieldId field = 20;
  for (const Limit& of : {buckets, windows, logs, slots}) {
    const SharedLimit limit = limit_of(of);
    const SharedCheck check{.limit = &limit, .field = ++field, .cost = 10};
    std::vector<Refunding> refunds;
    for (int i = 0; i < 3; ++i) {
      write_decide(arguments_, {&check, 1}, wall());
      const SharedAnswer answer = answer_of(call("FCALL", library_.name, key_), limit);
      refunds.push_back({.field = field, .charge = answer.charge, .amount = 7});
    }
    write_refund(arguments_, std::span{refunds}.first(1), {});
    append_refunds(arguments_, std::span{refunds}.subspan(1));
    (void)call("FCALL", library_.name, key_);
    write_peek(arguments_, {&check, 1}, wall());
    EXPECT_EQ(answer_of(call("FCALL_RO", library_.read_only_name, key_), limit).decision.remaining,
              91U)
        << limit.text;
  }
}

TEST_F(ShippedFunctions, PeekWithoutWriting) {
  const SharedLimit limit = limit_of({.algorithm = Algorithm::gcra, .amount = 5, .period = 1h});
  const SharedCheck check{.limit = &limit, .field = 7};
  write_peek(arguments_, std::span{&check, 1}, wall());
  EXPECT_EQ(answer_of(call("FCALL_RO", library_.read_only_name, key_), limit).decision.remaining,
            5U);
  EXPECT_EQ(redis_.ask({"EXISTS", key_}).number, 0);
  (void)decide(limit, key_);
  write_peek(arguments_, std::span{&check, 1}, wall());
  EXPECT_EQ(answer_of(call("FCALL_RO", library_.read_only_name, key_), limit).decision.remaining,
            4U);
}

// Where functions are not allowed, the same text runs as a script, on the same keys.
TEST_F(ShippedFunctions, RunAsAScript) {
  const SharedLimit limit =
      limit_of({.algorithm = Algorithm::leaky_bucket, .amount = 2, .period = 1h, .burst = 3});
  EXPECT_EQ(decide(limit, key_).decision.remaining, 2U);
  const std::string sha = redis_.ask({"SCRIPT", "LOAD", library_.script}).text;
  const SharedCheck check{.limit = &limit, .field = 7};
  write_decide(arguments_, std::span{&check, 1}, wall());
  EXPECT_EQ(answer_of(call("EVALSHA", sha, key_), limit).decision.remaining, 1U);
  write_decide(arguments_, std::span{&check, 1}, wall());
  EXPECT_EQ(answer_of(call("EVAL", library_.script, key_), limit).decision.remaining, 0U);
}

// Another release has another name: both are loaded and share keys. None replaces another.
TEST_F(ShippedFunctions, RunBesideThoseOfAnotherRelease) {
  const FunctionLibrary other =
      function_library_with(std::string{function_file("clock")} + "-- another release\n");
  EXPECT_NE(other.name, library_.name);
  EXPECT_EQ(redis_.ask({"FUNCTION", "LOAD", other.library}).text, other.name);
  EXPECT_TRUE(redis_.ask({"FUNCTION", "LOAD", library_.library}).is_error());

  const SharedLimit limit = limit_of({.algorithm = Algorithm::gcra, .amount = 5, .period = 1h});
  EXPECT_EQ(decide(limit, key_).decision.remaining, 4U);
  const SharedCheck check{.limit = &limit, .field = 7};
  write_decide(arguments_, std::span{&check, 1}, wall());
  EXPECT_EQ(answer_of(call("FCALL", other.name, key_), limit).decision.remaining, 3U);
}

// A calendar's windows come with the call; a node whose clock is months off is told so.
TEST_F(ShippedFunctions, SayThatTheClocksDiffer) {
  Limit day{.algorithm = Algorithm::fixed_window, .amount = 5};
  day.align = Align::calendar;
  day.unit = CalendarUnit::day;
  const SharedLimit limit = limit_of(day);
  EXPECT_TRUE(decide(limit, key_).decision.allowed());
  EXPECT_EQ(status_, ReplyStatus::done);
  const SharedCheck check{.limit = &limit, .field = 7};
  for (const Nanos off : {Nanos{-72h}, Nanos{72h}}) {
    write_decide(arguments_, std::span{&check, 1}, wall() + off);
    const auto reply = read_reply(call("FCALL", library_.name, key_).numbers(), {}, {});
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status, ReplyStatus::clocks_differ);
    EXPECT_LT(std::chrono::abs(reply->server_time - wall()), Nanos{1min});
  }
}

TEST_F(ShippedFunctions, RejectAnUnknownOperation) {
  const RedisReply reply = redis_.ask({"FCALL", library_.name, "1", key_, "forget", "-", "0"});
  EXPECT_TRUE(reply.is_error());
  EXPECT_NE(reply.text.find("unknown operation forget"), std::string::npos) << reply.text;
}

// Products far above 2^53, divided: quotients and remainders as 128-bit integers have them.
TEST_F(ShippedFunctions, DivideExactly) {
  const std::string script{std::string{function_file("numbers")} + R"(
local a, b, c = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local quotient, rest = multiply_divide(a, b, c)
return {quotient, rest, multiply_divide_up(a, b, c)})"};
  const std::string sha = redis_.ask({"SCRIPT", "LOAD", script}).text;
  Random random{1};
  const auto magnitude = [&](unsigned bits) {
    return static_cast<std::int64_t>(random.below(std::uint64_t{1} << (1 + random.below(bits))));
  };
  for (int i = 0; i < 5'000; ++i) {
    const std::int64_t a = magnitude(53);
    const std::int64_t b = magnitude(53);
    // Often a divisor of the product, or next to one: there a quotient is nearly whole.
    std::int64_t c = 1 + magnitude(45);
    if (i % 3 == 0 && a > 1 && a < std::int64_t{1} << 45U) c = a + i % 2;
    const Int128 quotient = Int128{a} * b / c;
    if (quotient >= (std::int64_t{1} << 53U) - 1) continue;
    const auto rest = static_cast<std::int64_t>(Int128{a} * b % c);
    const std::vector<std::int64_t> expected{static_cast<std::int64_t>(quotient), rest,
                                             static_cast<std::int64_t>(quotient) + (rest > 0)};
    const RedisReply reply =
        redis_.ask({"EVALSHA", sha, "0", std::to_string(a), std::to_string(b), std::to_string(c)});
    ASSERT_EQ(reply.numbers(), expected) << a << " * " << b << " / " << c;
  }
}

// docs/sharing.md shows this value.
TEST_F(ShippedFunctions, WriteValuesThatPeopleCanRead) {
  const SharedLimit limit =
      limit_of({.algorithm = Algorithm::token_bucket, .amount = 10, .period = 1s});
  (void)decide(limit, key_, 3);
  const std::string value = redis_.ask({"HGET", key_, "00000007"}).text;
  long long edition = 0;
  long long micros = 0;
  int ticks = -1;
  ASSERT_EQ(std::sscanf(value.c_str(), "bucket,-,0,100000,10,0 %lld %lld %d 0 0", &edition, &micros,
                        &ticks),
            3)
      << value;
  EXPECT_EQ(micros - edition, 300'000);
  EXPECT_EQ(ticks, 0);
}

}  // namespace
}  // namespace sluice::store
