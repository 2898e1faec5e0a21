#include "store/redis/call_codec.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

std::string joined(const CallArguments& arguments) {
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) text += '|';
    text += arguments[i];
  }
  return text;
}

SharedLimit bucket() {
  return compile_shared({.algorithm = Algorithm::gcra, .amount = 10, .period = 1s}).value();
}

TEST(CallCodec, KeysAreDigestsInAHashTag) {
  EXPECT_EQ(shared_key({.low = 0x0123456789abcdef, .high = 0xfedcba9876543210}),
            "sluice1:{fedcba98765432100123456789abcdef}");
}

TEST(CallCodec, WritesOneRecordPerLimit) {
  const SharedLimit limit = bucket();
  const std::vector<SharedCheck> checks{
      {.limit = &limit, .field = 0xab, .cost = 2},
      {.limit = &limit, .field = 1, .change = OnChange::reset, .probe = true}};
  CallArguments arguments;
  write_decide(arguments, checks, WallTime{});
  EXPECT_EQ(joined(arguments),
            "decide|-|0|000000ab|bucket,-,0,100000,10,0|keep|2|charge|-"
            "|00000001|bucket,-,0,100000,10,0|reset|1|probe|-");
  write_peek(arguments, std::span{checks}.first(1), WallTime{});
  EXPECT_EQ(joined(arguments), "peek|-|0|000000ab|bucket,-,0,100000,10,0|keep|0|probe|-");
}

TEST(CallCodec, NumbersCallsThatMayBeSentTwice) {
  const Refunding refund{
      .field = 3, .charge = {.mark = 11, .ticks = 12, .edition = 13, .cost = 14}, .amount = 5};
  CallArguments arguments;
  write_refund(arguments, std::span{&refund, 1}, {.session = 0xbeef, .sequence = 9});
  EXPECT_EQ(joined(arguments), "refund|000000000000beef|9|00000003|5|11|12|14|13");
  write_give_back(arguments, {.field = 3, .sequence = 8, .amount = 2},
                  {.session = 0xbeef, .sequence = 10});
  EXPECT_EQ(joined(arguments), "give_back|000000000000beef|10|00000003|8|2");
}

TEST(CallCodec, WritesReservationsAndCorrections) {
  const SharedLimit limit = bucket();
  CallArguments arguments;
  write_reserve(arguments,
                {.check = {.limit = &limit, .cost = 6}, .cap = 20, .duration = 2s, .seat = true},
                {.session = 1, .sequence = 2}, WallTime{});
  EXPECT_EQ(joined(arguments),
            "reserve|0000000000000001|2|00000000|bucket,-,0,100000,10,0|keep|6|seat|-|20|2000000");
  write_correct(arguments, {.limit = &limit, .cost = 6},
                {.mark = 11, .ticks = 12, .edition = 13, .cost = 14}, {}, WallTime{});
  EXPECT_EQ(joined(arguments),
            "correct|-|0|00000000|bucket,-,0,100000,10,0|keep|6|charge|-|11|12|14|13");
}

TEST(CallCodec, SendsThreeCalendarWindowsAlong) {
  Limit month{.algorithm = Algorithm::fixed_window, .amount = 5};
  month.align = Align::calendar;
  month.unit = CalendarUnit::month;
  const SharedLimit limit = compile_shared(month).value();
  const SharedCheck check{.limit = &limit};
  CallArguments arguments;
  write_decide(arguments, std::span{&check, 1}, WallTime{std::chrono::seconds{1'709'294'400}});
  // 2024: February, March (in which the call is made) and April.
  EXPECT_EQ(arguments[4], "calendar,-,5,month@UTC");
  EXPECT_EQ(arguments[8], "1706745600000000 1709251200000000 1711929600000000 1714521600000000");
}

TEST(CallCodec, ReadsAnswers) {
  std::vector<std::int64_t> two{0, 1'000'000};
  two.insert(two.end(), {1, 3, 20, 7, 0, 0, 0, 0, 0});
  two.insert(two.end(), {0, 5, 30, -1, 2, 11, 12, 4, 13});
  const std::vector<Cost> capacities{10, 8};
  std::vector<SharedAnswer> answers(2);
  const auto reply = read_reply(two, capacities, answers);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, ReplyStatus::rejected);
  EXPECT_EQ(reply->server_time, WallTime{Nanos{1s}});
  EXPECT_EQ(answers[0].decision, (Decision{.verdict = Verdict::rejected,
                                           .limit = 10,
                                           .remaining = 3,
                                           .reset_after = 20us,
                                           .retry_after = 7us}));
  EXPECT_EQ(answers[0].charge, SharedCharge{});
  EXPECT_EQ(answers[1].decision, (Decision{.verdict = Verdict::allowed,
                                           .limit = 8,
                                           .remaining = 5,
                                           .reset_after = 30us,
                                           .retry_after = std::nullopt,
                                           .delay = 2us}));
  EXPECT_EQ(answers[1].charge, (SharedCharge{.mark = 11, .ticks = 12, .edition = 13, .cost = 4}));
}

// What no function can have said is an error, never a decision.
TEST(CallCodec, RejectsNonsense) {
  const std::vector<std::int64_t> good{1, 5, 0, 3, 0, -1, 0, 0, 0, 0, 0};
  const std::vector<Cost> capacities{10};
  std::vector<SharedAnswer> answers(1);
  ASSERT_TRUE(read_reply(good, capacities, answers).has_value());
  const auto with = [&](std::size_t i, std::int64_t number) {
    std::vector<std::int64_t> bad = good;
    bad[i] = number;
    return read_reply(bad, capacities, answers).has_value();
  };
  EXPECT_FALSE(with(0, 4));  // no such status
  EXPECT_FALSE(with(0, -1));
  EXPECT_FALSE(with(0, 2));  // answers where there are none
  EXPECT_FALSE(with(1, -1));
  EXPECT_FALSE(with(2, 3));   // no such verdict
  EXPECT_FALSE(with(3, 11));  // more left than there is
  EXPECT_FALSE(with(3, -1));
  EXPECT_FALSE(with(4, -1));
  EXPECT_FALSE(with(5, -2));
  EXPECT_FALSE(with(6, std::int64_t{1} << 53U));  // not exact
  EXPECT_FALSE(with(9, std::int64_t{1} << 32U));
  EXPECT_FALSE(with(10, -1));
  EXPECT_FALSE(read_reply({}, capacities, answers).has_value());
  EXPECT_FALSE(read_reply(std::span{good}.first(10), capacities, answers).has_value());
  EXPECT_FALSE(read_reply(std::span{good}.first(2), capacities, answers).has_value());
}

TEST(CallCodec, ReadsRepliesWithoutAnswers) {
  const std::vector<Cost> capacities{10};
  std::vector<SharedAnswer> answers(1);
  const std::vector<std::int64_t> repeated{2, 5};
  const auto reply = read_reply(repeated, capacities, answers);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, ReplyStatus::repeated);
}

}  // namespace
}  // namespace sluice::store
