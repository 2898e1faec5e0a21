// The authority over a transport that follows a script: late, lost, garbled and refused.
#include "store/redis/redis_authority.h"

#include "store/redis/scripted_transport_fixture.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

class RedisAuthorityTest : public ::testing::Test, protected AuthorityListener {
 protected:
  static constexpr Digest kKey{.low = 0x1122, .high = 0x3344};

  void replied(AuthorityTicket ticket, AuthorityOutcome outcome, std::span<Answer> answers,
               Now /*now*/) noexcept override {
    outcomes_[ticket].push_back(outcome);
    answers_[ticket].assign(answers.begin(), answers.end());
  }
  void advance(Nanos time = Nanos{0}) {
    now_.mono += time;
    authority_.advance(now_, *this);
  }
  AuthorityOutcome outcome(AuthorityTicket ticket) {
    EXPECT_EQ(outcomes_[ticket].size(), 1U);
    return outcomes_[ticket].empty() ? AuthorityOutcome::failed : outcomes_[ticket][0];
  }
  bool decide(AuthorityTicket ticket, Cost cost = 1, const Digest& key = kKey) {
    const AuthorityCheck check{.limit = limit_.get(), .salt = 9, .cost = cost};
    return authority_.decide(ticket, key, {&check, 1}, now_);
  }
  bool charge(AuthorityTicket ticket, Cost cost = 1, const Digest& key = kKey) {
    const AuthorityCheck check{.limit = limit_.get(), .salt = 9, .cost = cost};
    return authority_.charge(ticket, key, check, Authority::Reason::charge, now_);
  }
  bool refund(Cost amount, std::int64_t mark, const Digest& key = kKey) {
    const AuthorityRefund refund{
        .salt = 9,
        .charge = {.receipt = {.mark = mark, .cost = amount}, .edition = 3},
        .amount = amount};
    return authority_.refund(key, {&refund, 1}, now_.mono + 1h, now_);
  }

  Now now_ = testing::at(1'700'000'000'000'000'000);
  ScriptedTransport transport_;
  FunctionLibrary library_ = function_library();
  RedisAuthorityOptions options_{.session = 0xabcdef, .calls_max = 64, .numbered_max = 32};
  RedisAuthority authority_{transport_, library_, options_};
  std::unique_ptr<const AuthorityLimit> limit_ =
      RedisLimit::compile({.algorithm = Algorithm::fixed_window, .amount = 10, .period = 1h})
          .value();
  std::map<AuthorityTicket, std::vector<AuthorityOutcome>> outcomes_;
  std::map<AuthorityTicket, std::vector<Answer>> answers_;
};

TEST_F(RedisAuthorityTest, SendsADecisionAsOneCommand) {
  ASSERT_TRUE(decide(1));
  ASSERT_EQ(transport_.commands.size(), 1U);
  const auto& words = transport_.commands[0].words;
  EXPECT_EQ(words[0], "FCALL");
  EXPECT_EQ(words[1], library_.name);
  EXPECT_EQ(words[2], "1");
  EXPECT_EQ(words[3], shared_key(kKey));
  EXPECT_EQ(words[4], "decide");
  transport_.numbers(0, ScriptedTransport::done(1));
  advance();
  EXPECT_EQ(outcome(1), AuthorityOutcome::done);
  EXPECT_EQ(answers_[1][0].decision.remaining, 5U);
  EXPECT_EQ(answers_[1][0].charge.receipt.mark, 7);
  EXPECT_EQ(answers_[1][0].charge.edition, 3);
  EXPECT_EQ(authority_.calls_waiting(), 0U);
}

// A decision counts as spent where nobody knows: it is never sent again.
TEST_F(RedisAuthorityTest, NeverResendsADecision) {
  for (const AuthorityTicket ticket : {1U, 2U, 3U}) ASSERT_TRUE(decide(ticket));
  transport_.lose(0);
  transport_.error(0, "LOADING Redis is loading the dataset in memory");
  advance();
  advance(10s);
  EXPECT_EQ(outcome(1), AuthorityOutcome::failed);
  EXPECT_EQ(outcome(2), AuthorityOutcome::failed);
  EXPECT_EQ(outcome(3), AuthorityOutcome::failed) << "no reply";
  EXPECT_EQ(transport_.commands.size(), 1U) << "the one without a reply";
  transport_.numbers(0, ScriptedTransport::done(1));
  advance();
  EXPECT_EQ(outcome(3), AuthorityOutcome::failed) << "it stays so";
  EXPECT_EQ(authority_.counts().replies_late, 1U);
  EXPECT_EQ(authority_.counts().sent, 3U);
}

TEST_F(RedisAuthorityTest, SaysSoWhenNothingCanBeSent) {
  transport_.is_connected = false;
  EXPECT_FALSE(decide(1));
  EXPECT_EQ(authority_.calls_waiting(), 0U);
}

// Replies that no function can have sent to this very call.
TEST_F(RedisAuthorityTest, BelievesNoImpossibleReply) {
  auto too_much = ScriptedTransport::done(2);
  auto nothing = ScriptedTransport::done(0);
  auto other_verdict = ScriptedTransport::done(1);
  other_verdict[2] = 1;
  auto no_verdict = ScriptedTransport::rejected();
  no_verdict[2] = 0;
  auto ticks = ScriptedTransport::done(1);
  ticks[8] = std::int64_t{1} << 40U;
  auto longer = ScriptedTransport::done(1);
  longer.push_back(0);
  const std::vector<std::vector<std::int64_t>> wrong{
      too_much, nothing, other_verdict, no_verdict, ticks, longer, {}, {1}, {2, 1}, {7, 1}};
  AuthorityTicket ticket = 0;
  for (const auto& numbers : wrong) {
    ASSERT_TRUE(decide(++ticket));
    transport_.numbers(0, numbers);
    advance();
    EXPECT_EQ(outcome(ticket), AuthorityOutcome::failed) << ticket;
  }
  ASSERT_TRUE(decide(++ticket));
  transport_.text(0, "OK");
  advance();
  EXPECT_EQ(outcome(ticket), AuthorityOutcome::failed);
  EXPECT_EQ(authority_.counts().malformed, wrong.size() + 1);
}

TEST_F(RedisAuthorityTest, CountsClocksThatDiffer) {
  ASSERT_TRUE(decide(1));
  transport_.numbers(0, {3, 1});
  advance();
  EXPECT_EQ(outcome(1), AuthorityOutcome::clocks_differ);
  EXPECT_EQ(authority_.counts().clocks_differ, 1U);
}

// Charges of one request that follow each other are one, of every kind of limit.
TEST(RedisLimit, JoinsAdjacentCharges) {
  const auto charge = [](std::int64_t mark, std::uint32_t ticks, Cost cost) {
    return Charge{.ticks = ticks, .receipt = {.mark = mark, .cost = cost}, .edition = 9};
  };
  const auto compile = [](const Limit& limit) { return RedisLimit::compile(limit).value(); };
  // 427 ticks for a token, 128 of them in a microsecond.
  const auto fast = compile({.algorithm = Algorithm::gcra, .amount = 300'000, .period = 1s});
  const auto joined = fast->joined(charge(1000, 100, 1), charge(1007, 58, 2));
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->receipt.mark, 1007);
  EXPECT_EQ(joined->ticks, 58U);
  EXPECT_EQ(joined->receipt.cost, 3U);
  EXPECT_FALSE(fast->joined(charge(1000, 100, 1), charge(1007, 59, 2))) << "another one's between";
  EXPECT_FALSE(fast->joined(charge(1000, 100, 1), charge(1000, 100, 2)));
  const auto interval = compile({.algorithm = Algorithm::token_bucket,
                                 .amount = 10,
                                 .period = 1s,
                                 .burst = 50,
                                 .refill = Refill::interval});
  EXPECT_TRUE(interval->joined(charge(5, 8, 1), charge(6, 1, 3)));
  EXPECT_FALSE(interval->joined(charge(5, 8, 1), charge(6, 2, 3)));
  const auto window = compile({.algorithm = Algorithm::fixed_window, .amount = 10, .period = 1s});
  EXPECT_TRUE(window->joined(charge(5, 0, 1), charge(5, 0, 3)));
  EXPECT_FALSE(window->joined(charge(5, 0, 1), charge(6, 0, 3)));
}

// ---- numbered calls -----------------------------------------------------------------------------

TEST_F(RedisAuthorityTest, ResendsANumberedCallAsItWas) {
  ASSERT_TRUE(charge(1, 4));
  const auto first = transport_.commands[0].words;
  EXPECT_EQ(first[4], "charge");
  EXPECT_EQ(first[5], "0000000000abcdef");
  for (int i = 0; i < 3; ++i) {
    if (i == 0) transport_.lose(0);
    if (i == 1) transport_.error(0, "READONLY You can't write against a read only replica.");
    if (i == 2) transport_.commands.clear();  // no reply at all
    advance(i == 2 ? 1s : 0s);
    EXPECT_TRUE(transport_.commands.empty()) << "not at once";
    advance(3s);
    ASSERT_EQ(transport_.commands.size(), 1U) << i;
    EXPECT_EQ(transport_.commands[0].words, first);
  }
  EXPECT_TRUE(outcomes_.empty());
  transport_.numbers(0, {2, 1});
  advance();
  EXPECT_EQ(outcome(1), AuthorityOutcome::applied_before);
  EXPECT_EQ(authority_.counts().resent, 3U);
  EXPECT_EQ(authority_.calls_waiting(), 0U);
}

// The next number of a key goes out when the outcome of the one before is known: the key would
// not apply a lower number after a higher one.
TEST_F(RedisAuthorityTest, SendsTheNumbersOfAKeyInOrder) {
  ASSERT_TRUE(charge(1));
  ASSERT_TRUE(charge(2));
  ASSERT_TRUE(charge(3, 1, {.low = 1, .high = kKey.high + 1}));
  ASSERT_EQ(transport_.commands.size(), 2U) << "another key does not wait";
  transport_.lose(0);
  advance();
  advance(3s);
  ASSERT_EQ(transport_.commands.size(), 2U);
  EXPECT_EQ(transport_.commands.back().sequence(), "1");
  transport_.numbers(1, ScriptedTransport::done(1));
  advance();
  EXPECT_EQ(transport_.commands.back().sequence(), "2");
}

// A hot key with a refund for each request: they do not queue one by one.
TEST_F(RedisAuthorityTest, SendsWaitingRefundsOfAKeyTogether) {
  for (std::int64_t mark = 1; mark <= 30; ++mark) ASSERT_TRUE(refund(1, mark));
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words.size(), 4U + 3 + 6);
  transport_.numbers(0, {1, 1});
  advance();
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words.size(), 4U + 3 + 29 * 6);
  EXPECT_EQ(transport_.commands[0].sequence(), "2");
  transport_.numbers(0, {1, 1});
  advance();
  EXPECT_EQ(authority_.calls_waiting(), 0U);
}

// The refunds of a call that may have arrived are fixed: another one gets another number.
TEST_F(RedisAuthorityTest, AddsNothingToACallThatWasSent) {
  ASSERT_TRUE(refund(1, 1));
  const auto first = transport_.commands[0].words;
  transport_.lose(0);
  advance();
  ASSERT_TRUE(refund(1, 2));
  advance(3s);
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words, first);
}

// After its usage has drained, a charge means nothing; the key may be gone, and would apply it once
// more.
TEST_F(RedisAuthorityTest, DropsACallWithoutEffect) {
  ASSERT_TRUE(charge(1));
  transport_.lose(0);
  transport_.is_connected = false;
  advance();
  advance(59min);
  EXPECT_TRUE(outcomes_.empty());
  advance(1min + 3s);
  transport_.is_connected = true;
  advance(3s);
  EXPECT_EQ(outcome(1), AuthorityOutcome::failed);
  EXPECT_TRUE(transport_.commands.empty());
  EXPECT_EQ(authority_.counts().calls_expired, 1U);
  EXPECT_EQ(authority_.counts().calls_dropped, 1U);
}

TEST_F(RedisAuthorityTest, GivesUpAfterManyErrors) {
  ASSERT_TRUE(charge(1));
  for (std::uint32_t i = 0; i < RedisAuthority::kTriesMax; ++i) {
    ASSERT_EQ(transport_.commands.size(), 1U);
    transport_.error(0, "ERR no");
    advance();
    advance(3s);
  }
  EXPECT_EQ(outcome(1), AuthorityOutcome::failed);
  EXPECT_EQ(authority_.counts().calls_dropped, 1U);
  EXPECT_EQ(authority_.calls_waiting(), 0U);
}

TEST_F(RedisAuthorityTest, IsBounded) {
  std::size_t numbered = 0;
  while (charge(1)) ++numbered;
  EXPECT_EQ(numbered, options_.numbered_max);
  std::size_t decisions = 0;
  while (decide(2)) ++decisions;
  EXPECT_EQ(decisions, options_.calls_max - options_.numbered_max);
}

TEST_F(RedisAuthorityTest, NamesWhenItHasToWake) {
  EXPECT_EQ(authority_.wake_at(), MonoTime::max());
  ASSERT_TRUE(decide(1));
  EXPECT_EQ(authority_.wake_at(), now_.mono + options_.reply_timeout);
  transport_.numbers(0, ScriptedTransport::done(1));
  advance();
  ASSERT_TRUE(charge(0));
  transport_.lose(0);
  advance();
  EXPECT_EQ(authority_.wake_at(), now_.mono + RedisAuthority::kResendFirst);
}

// ---- the functions ------------------------------------------------------------------------------

TEST_F(RedisAuthorityTest, LoadsTheLibraryOnce) {
  ASSERT_TRUE(decide(1));
  ASSERT_TRUE(decide(2));
  ASSERT_TRUE(charge(3));
  for (int i = 0; i < 3; ++i) transport_.error(0, "ERR Function not found");
  advance();
  ASSERT_EQ(transport_.commands.size(), 1U) << "one load for three calls";
  EXPECT_EQ(transport_.commands[0].words,
            (std::vector<std::string>{"FUNCTION", "LOAD", library_.library}));
  ASSERT_TRUE(decide(4));
  EXPECT_EQ(transport_.commands.size(), 1U) << "it waits, too";
  transport_.text(0, library_.name);
  advance();
  ASSERT_EQ(transport_.commands.size(), 4U);
  for (int i = 0; i < 4; ++i) transport_.numbers(0, ScriptedTransport::done(1));
  advance();
  for (const AuthorityTicket ticket : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(outcome(ticket), AuthorityOutcome::done);
  }
}

TEST_F(RedisAuthorityTest, AcceptsALibraryThatIsThereAlready) {
  ASSERT_TRUE(decide(1));
  transport_.error(0, "ERR Function not found");
  advance();
  transport_.error(0, "ERR Library '" + library_.name + "' already exists");
  advance();
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words[0], "FCALL");
}

// Without functions, the script; without the right to load scripts, its text.
TEST_F(RedisAuthorityTest, RunsScriptsWhereFunctionsAreForbidden) {
  ASSERT_TRUE(decide(1));
  transport_.error(0, "NOPERM this user has no permissions to run the 'fcall' command");
  advance();
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words,
            (std::vector<std::string>{"SCRIPT", "LOAD", library_.script}));
  const std::string digest(40, 'a');
  transport_.text(0, digest);
  advance();
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words[0], "EVALSHA");
  EXPECT_EQ(transport_.commands[0].words[1], digest);
  transport_.error(0, "NOSCRIPT No matching script. Please use EVAL.");
  advance();
  transport_.error(0, "NOPERM this user has no permissions to run the 'script|load' command");
  advance();
  ASSERT_EQ(transport_.commands.size(), 1U);
  EXPECT_EQ(transport_.commands[0].words[0], "EVAL");
  EXPECT_EQ(transport_.commands[0].words[1], library_.script);
  transport_.numbers(0, ScriptedTransport::done(1));
  advance();
  EXPECT_EQ(outcome(1), AuthorityOutcome::done);
}

// Whatever happens to the load, calls do not wait for ever.
TEST_F(RedisAuthorityTest, FailsWithALoadThatFails) {
  AuthorityTicket ticket = 0;
  for (int how = 0; how < 4; ++how) {
    ASSERT_TRUE(decide(++ticket));
    transport_.error(0, "ERR Function not found");
    advance();
    if (how == 0) transport_.lose(0);
    if (how == 1) transport_.error(0, "OOM command not allowed when used memory > 'maxmemory'.");
    if (how == 2) transport_.numbers(0, {1});
    if (how == 3) transport_.commands.clear();
    advance(how == 3 ? 1s : 0s);
    EXPECT_EQ(outcome(ticket), AuthorityOutcome::failed) << how;
    EXPECT_EQ(authority_.calls_waiting(), 0U);
  }
  ASSERT_TRUE(decide(++ticket));
  EXPECT_EQ(transport_.commands.at(0).words[0], "FCALL") << "it is tried again";
}

}  // namespace
}  // namespace sluice::store
