// The simulated Redis against a real redis-server: the same calls, the same times, the same replies
// and the same keys, byte for byte.
//
// Two ways to give both the same time. With the clock of tests it is an argument of each call, so
// that it may go anywhere. With the shipped text the real server's reply tells when it decided, and
// the simulated one decides at that instant. A failure prints the seed; SLUICE_SEED=N runs one.

#include "sim/redis_server.h"
#include "store/redis/call_codec.h"
#include "store/redis/function_library.h"
#include "store/redis/random_limits_fixture.h"
#include "store/redis/redis_fixture.h"
#include "store/redis/test_clock_fixture.h"
#include "support/effort.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {
namespace {

using store::Chance;
using store::LimitKind;
using store::RedisReply;
using store::SharedAnswer;
using store::SharedCharge;
using store::SharedCheck;
using store::SharedLimitPtr;

std::uint64_t chosen_seed() {
  const char* const chosen = std::getenv("SLUICE_SEED");
  return chosen != nullptr ? std::stoull(chosen) : 1;
}

// What the real server's client knows of a reply: it does not tell a status from a text.
RedisReply known_of(const Reply& reply) {
  using Kind = RedisReply::Kind;
  RedisReply known;
  known.text = reply.text;
  known.number = reply.integer;
  switch (reply.kind) {
    case Reply::Kind::status:
    case Reply::Kind::bulk: known.kind = Kind::text; break;
    case Reply::Kind::error: known.kind = Kind::error; break;
    case Reply::Kind::integer: known.kind = Kind::number; break;
    case Reply::Kind::nil: known.kind = Kind::nothing; break;
    case Reply::Kind::array: known.kind = Kind::list; break;
  }
  for (const Reply& item : reply.items) known.list.push_back(known_of(item));
  return known;
}

std::string described(const RedisReply& reply) {
  using Kind = RedisReply::Kind;
  switch (reply.kind) {
    case Kind::number: return std::to_string(reply.number);
    case Kind::text: return '"' + reply.text + '"';
    case Kind::error: return "-" + reply.text;
    case Kind::nothing: return "nil";
    case Kind::list: break;
  }
  std::string text = "[";
  for (const RedisReply& item : reply.list) text += described(item) + " ";
  return text + "]";
}

// Both servers.
class Twins {
 public:
  // The simulated one at `now`; empty, or what differs.
  std::string compare(const std::vector<std::string_view>& command, WallTime now) {
    return differing(command, real_.ask(command), simulated_.handle(command, now));
  }

  static std::string differing(const std::vector<std::string_view>& command, const RedisReply& real,
                               const Reply& simulated) {
    const std::string one = described(real);
    const std::string other = described(known_of(simulated));
    if (one == other) return {};
    return fmt::format("{}\n  real:      {}\n  simulated: {}", fmt::join(command, " "), one, other);
  }

  // The fields of a hash, sorted, and its end, which may be so many milliseconds `later` for the
  // real server.
  std::string compare_key(const std::string& key, WallTime now, std::int64_t later) {
    using Fields = std::vector<std::pair<std::string, std::string>>;
    Fields real;
    const RedisReply reply = real_.ask({"HGETALL", key});
    for (std::size_t i = 0; i + 1 < reply.list.size(); i += 2) {
      real.emplace_back(reply.list[i].text, reply.list[i + 1].text);
    }
    std::sort(real.begin(), real.end());
    Fields simulated;
    const Reply own = simulated_.handle(words({"HGETALL", key}), now);
    for (std::size_t i = 0; i + 1 < own.items.size(); i += 2) {
      simulated.emplace_back(own.items[i].text, own.items[i + 1].text);
    }
    if (real != simulated) {
      std::string text = "HGETALL " + key;
      for (const auto& [field, value] : real) text += "\n  real:      " + field + " = " + value;
      for (const auto& [field, value] : simulated)
        text += "\n  simulated: " + field + " = " + value;
      return text;
    }
    const std::int64_t real_end = real_.ask({"PEXPIRETIME", key}).number;
    const std::int64_t end = simulated_.handle(words({"PEXPIRETIME", key}), now).integer;
    if (real_end >= end && real_end - end <= later) return {};
    return fmt::format("PEXPIRETIME {}: real {}, simulated {}", key, real_end, end);
  }

  store::RedisServer& real() { return real_; }
  RedisServer& simulated() { return simulated_; }

  static std::vector<std::string_view> words(std::initializer_list<std::string_view> list) {
    return list;
  }

 private:
  store::RedisServer real_;
  RedisServer simulated_;
};

// ---- random calls -----------------------------------------------------------------------------

// One key with one to three limits, and calls of every operation about them: also of charges that
// are void, of numbers that were used before, of leases that ended.
class RandomKey {
 public:
  RandomKey(std::uint64_t seed, LimitKind kind, std::int64_t now) : chance_(seed), now_(now) {
    key_ = store::shared_key({.low = seed, .high = 3});
    const std::int64_t count = chance_.one_in(3) ? chance_.between(2, 3) : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const LimitKind of = i == 0 ? kind : chance_.pick(store::kLimitKinds);
      fields_.push_back({.limits = store::random_limits(chance_, of)});
    }
  }

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] std::int64_t now() const { return now_; }
  void set_now(std::int64_t now) { now_ = now; }

  void pass_time() {
    const std::int64_t gap = store::random_gap(chance_, any_field().limit()->limit, now_);
    now_ = std::clamp(now_ + gap, 900'000'000 * store::kSecond, 3'100'000'000 * store::kSecond);
  }

  // The arguments of the next call, after FCALL NAME 1 KEY.
  const store::CallArguments& next_call() {
    capacities_.clear();
    charged_.clear();
    Field& field = any_field();
    if (chance_.one_in(8)) {
      constexpr std::array kChanges{OnChange::keep, OnChange::proportional, OnChange::reset};
      field.current = static_cast<std::size_t>(chance_.between(0, std::ssize(field.limits) - 1));
      field.change = chance_.pick(kChanges);
    }
    switch (chance_.between(0, 15)) {
      case 0: write_several(false); break;
      case 1: store::write_charge(arguments_, one_check(field), any_number(), wall()); break;
      case 2: store::write_settle(arguments_, one_check(field), any_number(), wall()); break;
      case 3:
      case 4:
      case 5: refund(field); break;
      case 6: correct(field); break;
      case 7:
      case 8: reserve(field); break;
      case 9: give_back(field); break;
      default: write_several(true); break;
    }
    return arguments_;
  }

  // Remembers the charges of a reply.
  void take(const std::vector<std::int64_t>& numbers) {
    std::vector<SharedAnswer> answers(capacities_.size());
    const auto reply = store::read_reply(numbers, capacities_, answers);
    if (!reply) return;  // the simulated one is the same
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].charge.cost == 0) continue;
      std::vector<SharedCharge>& charges = charged_[i]->charges;
      charges.push_back(answers[i].charge);
      if (charges.size() > 16) charges.erase(charges.begin());
    }
  }

 private:
  struct Field {
    std::vector<SharedLimitPtr> limits;
    std::size_t current = 0;
    OnChange change = OnChange::keep;
    std::vector<SharedCharge> charges;

    [[nodiscard]] const SharedLimitPtr& limit() const { return limits[current]; }
  };

  Field& any_field() {
    return fields_[static_cast<std::size_t>(chance_.between(0, std::ssize(fields_) - 1))];
  }
  [[nodiscard]] store::FieldId id_of(const Field& field) const {
    return static_cast<store::FieldId>(&field - fields_.data());
  }
  [[nodiscard]] WallTime wall() { return WallTime{store::micros(now_)}; }

  SharedCheck check_of(Field& field) {
    capacities_.push_back(field.limit()->capacity);
    charged_.push_back(&field);
    return {.limit = field.limit().get(),
            .field = id_of(field),
            .cost = store::random_cost(chance_, field.limit()->capacity),
            .change = field.change};
  }
  std::span<const SharedCheck> one_check(Field& field) {
    check_ = check_of(field);
    return {&check_, 1};
  }

  // Of two sessions; at times one that was sent before, at times none.
  store::SharedSequence any_number() {
    if (chance_.one_in(3)) return {};
    const auto session = static_cast<std::size_t>(chance_.between(0, 1));
    if (!chance_.one_in(4)) ++sequences_[session];
    return {.session = 77 + session, .sequence = std::max<std::uint64_t>(sequences_[session], 1)};
  }

  void write_several(bool decides) {
    std::vector<SharedCheck> checks;
    for (Field& field : fields_) {
      checks.push_back(check_of(field));
      checks.back().probe = chance_.one_in(8);
    }
    if (decides) return store::write_decide(arguments_, checks, wall());
    store::write_peek(arguments_, checks, wall());
  }

  SharedCharge any_charge(Field& field) {
    if (field.charges.empty()) return {.mark = now_ / 1'000'000, .edition = now_, .cost = 1};
    return chance_.pick(field.charges);
  }

  void refund(Field& field) {
    const SharedCharge charge = any_charge(field);
    const store::Refunding refunding{
        .field = id_of(field),
        .charge = charge,
        .amount = static_cast<core::Cost>(chance_.between(0, std::int64_t{charge.cost} * 3 / 2))};
    const std::span one{&refunding, 1};
    switch (chance_.between(0, 2)) {
      case 0: return store::write_refund(arguments_, one, any_number());
      case 1: return store::write_release(arguments_, one, any_number());
      default:
        capacities_.push_back(field.limit()->capacity);
        charged_.push_back(&field);
        return store::write_renew(arguments_, one, any_number());
    }
  }

  void correct(Field& field) {
    const SharedCharge charge = any_charge(field);
    store::write_correct(arguments_, check_of(field), charge, any_number(), wall());
  }

  void reserve(Field& field) {
    SharedCheck check = check_of(field);
    check.cost = std::max<core::Cost>(1, check.cost);
    const store::Reservation reservation{
        .check = check,
        .cap = static_cast<std::uint64_t>(chance_.magnitude(0, check.limit->capacity)),
        .duration = store::micros(chance_.magnitude(1'000, 60 * store::kSecond)),
        .seat = chance_.one_in(3)};
    const store::SharedSequence number = numbered();
    store::write_reserve(arguments_, reservation, number, wall());
  }

  store::SharedSequence numbered() {
    while (true) {
      const store::SharedSequence number = any_number();
      if (number.session != 0) return number;
    }
  }

  void give_back(Field& field) {
    const store::SharedSequence number = numbered();
    const store::GivingBack lease{
        .field = id_of(field),
        .sequence = static_cast<std::uint64_t>(
            chance_.between(0, static_cast<std::int64_t>(number.sequence))),
        .amount = static_cast<core::Cost>(chance_.magnitude(1, field.limit()->capacity))};
    store::write_give_back(arguments_, lease, number);
  }

  Chance chance_;
  std::int64_t now_;
  std::string key_;
  std::vector<Field> fields_;
  std::array<std::uint64_t, 2> sequences_{};
  SharedCheck check_;
  store::CallArguments arguments_;
  std::vector<core::Cost> capacities_;
  std::vector<Field*> charged_;
};

// ---- functions --------------------------------------------------------------------------------

class EveryKind : public ::testing::TestWithParam<LimitKind> {
 protected:
  Twins twins_;

  std::string load(const store::FunctionLibrary& library) {
    return twins_.compare({"FUNCTION", "LOAD", library.library}, WallTime{});
  }
};

// At any time, back and forth.
TEST_P(EveryKind, RepliesAndStoresAsTheRealServerDoes) {
  constexpr std::uint64_t kKeys = 40;
  const auto calls = testing::effort(75, 2'000);
  const store::FunctionLibrary library = store::function_library_with(store::kClockOfArguments);
  ASSERT_EQ(load(library), "");
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::uint64_t seed = chosen_seed() + i;
    RandomKey key{seed, GetParam(), 1'700'000'000 * store::kSecond};
    for (int j = 0; j < calls; ++j) {
      key.pass_time();
      const store::CallArguments& arguments = key.next_call();
      const std::string now = std::to_string(key.now());
      std::vector<std::string_view> command{"FCALL", library.name, "1", key.key()};
      for (std::size_t a = 0; a < arguments.size(); ++a) command.push_back(arguments[a]);
      command.push_back(now);
      const RedisReply real = twins_.real().ask(command);
      const Reply simulated = twins_.simulated().handle(command, WallTime{});
      ASSERT_EQ(Twins::differing(command, real, simulated), "") << "SLUICE_SEED=" << seed;
      if (!real.is_error()) key.take(real.numbers());
      // Reading it back takes longer than the call.
      if (j % 10 != 9) continue;
      ASSERT_EQ(twins_.compare_key(key.key(), WallTime{}, 0), "") << "SLUICE_SEED=" << seed;
    }
  }
}

// With the shipped clock and real ends of life.
TEST_P(EveryKind, DecidesAtTheServersTimeAndGivesKeysTheSameEnd) {
  constexpr std::uint64_t kKeys = 20;
  const auto calls = testing::effort(60, 500);
  const store::FunctionLibrary library = store::function_library();
  ASSERT_EQ(load(library), "");
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::uint64_t seed = chosen_seed() + 1'000 + i;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    RandomKey key{seed, GetParam(), std::chrono::floor<std::chrono::microseconds>(now).count()};
    // Redis counts a key's life from when PEXPIRE runs, a call decides when TIME does, which is
    // earlier: by at most as long as the client waited.
    std::int64_t longest_call_ms = 0;
    for (int j = 0; j < calls; ++j) {
      const store::CallArguments& arguments = key.next_call();
      std::vector<std::string_view> command{"FCALL", library.name, "1", key.key()};
      for (std::size_t a = 0; a < arguments.size(); ++a) command.push_back(arguments[a]);
      const RedisReply real = twins_.real().ask(command);
      ASSERT_FALSE(real.is_error()) << real.text;
      const std::vector<std::int64_t> numbers = real.numbers();
      key.set_now(numbers.at(1));
      const WallTime time{store::micros(key.now())};
      const Reply simulated = twins_.simulated().handle(command, time);
      ASSERT_EQ(Twins::differing(command, real, simulated), "") << "SLUICE_SEED=" << seed;
      key.take(numbers);
      const Nanos lasted =
          std::chrono::system_clock::now().time_since_epoch() - store::micros(key.now());
      longest_call_ms = std::max(longest_call_ms, lasted / std::chrono::milliseconds{1} + 1);
      if (j % 10 != 9) continue;
      ASSERT_EQ(twins_.compare_key(key.key(), time, longest_call_ms), "") << "SLUICE_SEED=" << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Redis, EveryKind, ::testing::ValuesIn(store::kLimitKinds),
                         [](const auto& subject) {
                           return std::string{
                               store::kLimitKindNames[static_cast<std::size_t>(subject.param)]};
                         });

// ---- commands ---------------------------------------------------------------------------------

class Commands : public ::testing::Test {
 protected:
  static WallTime now() { return WallTime{std::chrono::system_clock::now().time_since_epoch()}; }

  void expect_same(const std::vector<std::string_view>& command) {
    EXPECT_EQ(twins_.compare(command, now()), "");
  }

  Twins twins_;
};

// All commands, with keys that exist or not, of both types. Ends of life are absolute and far away,
// so that the two clocks do not matter.
TEST_F(Commands, ReplyAsThoseOfTheRealServer) {
  Chance chance{chosen_seed()};
  const std::array<std::string, 3> keys{"a", "b", "c"};
  const std::array<std::string, 4> fields{"f", "g", "h", ""};
  const std::array<std::string, 4> values{"", "1", "two\r\nlines", std::string("\0x", 2)};
  const std::array<std::string, 4> ends{"4000000000000", "4000000000001", "4100000000000", "x"};
  const int commands = testing::effort(3'000, 100'000);
  for (int i = 0; i < commands && !HasFailure(); ++i) {
    const std::string& key = chance.pick(keys);
    const std::string& field = chance.pick(fields);
    const std::string& value = chance.pick(values);
    switch (chance.between(0, 19)) {
      case 0: expect_same({"HSET", key, field, value}); break;
      case 1:
        expect_same({"hset", key, field, value, chance.pick(fields), chance.pick(values)});
        break;
      case 2: expect_same({"HGET", key, field}); break;
      case 3: expect_same({"HMGET", key, field, chance.pick(fields)}); break;
      case 4: expect_same({"HDEL", key, field}); break;
      case 5: expect_same({"HDEL", key, field, chance.pick(fields), chance.pick(fields)}); break;
      case 6: expect_same({"HLEN", key}); break;
      case 7: expect_same({"HEXISTS", key, field}); break;
      case 8: EXPECT_EQ(twins_.compare_key("a", now(), 0), ""); break;
      case 9: expect_same({"EXISTS", key, chance.pick(keys)}); break;
      case 10: expect_same({"TYPE", key}); break;
      case 11: expect_same({"PEXPIREAT", key, chance.pick(ends)}); break;
      case 12: expect_same({"PEXPIREAT", key, chance.pick(ends), "GT"}); break;
      case 13: expect_same({"PEXPIREAT", key, chance.pick(ends), "nx"}); break;
      case 14: expect_same({"PEXPIRETIME", key}); break;
      case 15: expect_same({"GET", key}); break;
      case 16: expect_same({"SET", key, value, "NX"}); break;
      case 17: expect_same({"SET", key, value, "PXAT", chance.pick(ends)}); break;
      case 18: expect_same({"SET", key, value, "XX"}); break;
      default:
        if (chance.one_in(2)) expect_same({"DEL", key, chance.pick(keys)});
        expect_same({"DBSIZE"});
    }
  }
}

TEST_F(Commands, RejectWhatTheRealServerRejects) {
  expect_same({"HSET", "k", "f"});
  expect_same({"HSET", "k", "f", "1", "g"});
  expect_same({"HGET", "k"});
  expect_same({"GET"});
  expect_same({"PEXPIRE", "k", "soon"});
  expect_same({"PEXPIRE", "k", "1", "NX", "GT"});
  expect_same({"SET", "k", "v", "PX", "0"});
  expect_same({"SET", "k", "v", "NX", "XX"});
  expect_same({"FCALL", "absent", "0"});
  expect_same({"EVALSHA", "0123456789012345678901234567890123456789", "0"});
  expect_same({"FUNCTION", "LOAD", "no header"});
}

// A key goes with its end, and with an end that has passed.
TEST_F(Commands, ExpireKeys) {
  expect_same({"HSET", "k", "f", "1"});
  expect_same({"PEXPIRE", "k", "-1"});
  expect_same({"EXISTS", "k"});
  expect_same({"SET", "k", "v"});
  expect_same({"PEXPIREAT", "k", "1000"});
  expect_same({"GET", "k"});
  expect_same({"PTTL", "k"});
  expect_same({"SET", "k", "v"});
  expect_same({"PTTL", "k"});
}

// ---- scripts ----------------------------------------------------------------------------------

TEST_F(Commands, ConvertWhatScriptsReturn) {
  for (const std::string_view result : {"1",
                                        "1.9",
                                        "-1.9",
                                        "9007199254740993",
                                        "'text'",
                                        "true",
                                        "false",
                                        "nil",
                                        "{}",
                                        "{1, 2.5, 'three', false, 5}",
                                        "{1, nil, 3}",
                                        "{{1}, {{2}}}",
                                        "{ok = 'fine'}",
                                        "{err = 'BAD news'}",
                                        "redis.error_reply('CODE text')",
                                        "redis.error_reply('-CODE text')",
                                        "redis.error_reply('bare')",
                                        "redis.status_reply('good')",
                                        "redis.call('GET', 'absent')",
                                        "redis.call('HMGET', 'absent', 'a', 'b')",
                                        "redis.call('SET', 'k', 'v')",
                                        "redis.call('SET', 'k', 1.5)",
                                        "redis.call('GET', 'k')",
                                        "redis.call('HSET', 'h', 'f', 0.1)",
                                        "redis.call('HGET', 'h', 'f')",
                                        "redis.call('HSET', 'h', 'f', 1e15)",
                                        "redis.call('HGET', 'h', 'f')",
                                        "KEYS[1]",
                                        "ARGV[2]",
                                        "#ARGV",
                                        "tostring(1/3)",
                                        "string.format('%.0f', 2^53)",
                                        "tostring(redis.register_function)"}) {
    const std::string script = fmt::format("return {}", result);
    expect_same({"EVAL", script, "1", "key", "one", "two"});
  }
}

TEST_F(Commands, TellErrorsOfScriptsInTheSameWords) {
  for (const std::string_view script :
       {"return absent", "x = 1", "error('gone')", "error({err = 'OWN words'})", "return 1 +",
        "local t\nreturn t.x", "return redis.call('HGET', 'k')", "return redis.call()",
        "return redis.call('GET', {})",
        "redis.call('SET', 'k', 'v') return redis.call('HGET', 'k', 'f')",
        "return redis.error_reply()", "return redis.absent()", "return math.huge < {}"}) {
    expect_same({"EVAL", script, "0"});
  }
}

TEST_F(Commands, LoadLibrariesAsTheRealServerDoes) {
  const auto library = [](std::string_view name, std::string_view text) {
    return fmt::format("#!lua name={}\n{}", name, text);
  };
  const std::string good = library("one", R"(
local calls = 0
local function count(keys, args) calls = calls + 1 return {calls, #keys, args[1]} end
redis.register_function('count', count)
redis.register_function({function_name = 'read', callback = count, flags = {'no-writes'}})
redis.register_function({function_name = 'sneak', flags = {'no-writes'},
                         callback = function(keys) return redis.call('DEL', keys[1]) end})
redis.register_function('late', function() redis.register_function('x', count) end)
redis.register_function('wrong', function() return count(nil, nil) end))");
  expect_same({"FUNCTION", "LOAD", good});
  expect_same({"FUNCTION", "LOAD", good});
  expect_same({"FUNCTION", "LOAD", library("two", "redis.register_function('count', print)")});
  expect_same({"FUNCTION", "LOAD", library("two", "local x = math.max(1, 2)")});
  expect_same({"FUNCTION", "LOAD", library("two", "x = 1")});
  expect_same({"FUNCTION", "LOAD", library("two", "local x = 1")});
  expect_same({"FUNCTION", "LOAD", library("two", "redis.register_function('other')")});
  expect_same({"FUNCTION", "LOAD", library("two", "redis.register_function('other', 1)")});
  expect_same({"FUNCTION", "LOAD", library("two", "redis.call('PING')")});
  expect_same({"FUNCTION", "LOAD", library("two", "local x =")});
  expect_same({"FCALL", "count", "0"});
  expect_same({"FCALL", "count", "2", "a", "b", "c"});
  expect_same({"FCALL_RO", "count", "0"});
  expect_same({"FCALL_RO", "read", "0"});
  expect_same({"FCALL", "sneak", "1", "k"});
  expect_same({"FCALL", "late", "0"});
  expect_same({"FCALL", "wrong", "0"});
  expect_same({"FCALL", "count", "x"});
  expect_same({"FCALL", "count", "2", "a"});
}

TEST_F(Commands, RunTheShippedTextAsAScriptToo) {
  const store::FunctionLibrary library = store::function_library_with(store::kClockOfArguments);
  expect_same({"FUNCTION", "LOAD", library.library});
  expect_same({"SCRIPT", "LOAD", library.script});
  const std::string sha = script_sha(library.script);
  const std::vector<std::string_view> call{
      "decide", "-", "0",      "00000001", "window,-,5,60000000",
      "keep",   "2", "charge", "-",        "1700000000000000"};
  for (const auto& [command, what] :
       {std::pair<std::string_view, std::string_view>{"FCALL", library.name},
        {"EVALSHA", sha},
        {"EVAL", library.script},
        {"FCALL_RO", library.read_only_name}}) {
    std::vector<std::string_view> words{command, what, "1", "key"};
    words.insert(words.end(), call.begin(), call.end());
    expect_same(words);
    EXPECT_EQ(twins_.compare_key("key", now(), 0), "");
  }
  expect_same({"FCALL", library.name, "1", "key", "forget", "-", "0", "1700000000000000"});
  expect_same({"FCALL", library.name, "1", "key", "decide", "-", "0", "f", "1700000000000000"});
}

// ---- servers that cannot write ----------------------------------------------------------------

// The errors of a server without memory, of a replica, and of a primary without replicas.
TEST_F(Commands, ReplyTheSameWhileNothingCanBeWritten) {
  const store::FunctionLibrary library = store::function_library_with(store::kClockOfArguments);
  expect_same({"FUNCTION", "LOAD", library.library});
  expect_same({"SET", "k", "v"});
  expect_same({"EVAL", "return 1", "0"});
  const auto expect_all_same = [&] {
    expect_same({"GET", "k"});
    expect_same({"SET", "k", "w"});
    expect_same({"DEL", "absent"});
    expect_same({"EVAL", "return redis.call('SET', 'k', 'x')", "0"});
    expect_same({"EVAL", "return redis.call('GET', 'k')", "0"});
    expect_same({"FCALL", library.name, "1", "h", "decide", "-", "0", "1", "window,-,5,60000000",
                 "keep", "2", "charge", "-", "1700000000000000"});
    expect_same({"FCALL", library.read_only_name, "1", "h", "peek", "-", "0", "1",
                 "window,-,5,60000000", "keep", "2", "charge", "-", "1700000000000000"});
    expect_same({"FCALL_RO", library.name, "1", "h", "peek", "-", "0", "1700000000000000"});
    expect_same({"FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('x', function() end)"});
    expect_same({"FCALL", "absent", "0"});
  };
  RedisServer& simulated = twins_.simulated();
  const auto configure = [&](std::string_view what, std::string_view value) {
    ASSERT_EQ(twins_.real().ask({"CONFIG", "SET", what, value}).text, "OK");
  };
  {
    SCOPED_TRACE("no memory");
    configure("maxmemory", "1");
    simulated.set_memory_full(true);
    expect_all_same();
    configure("maxmemory", "0");
    simulated.set_memory_full(false);
  }
  {
    SCOPED_TRACE("no replicas");
    configure("min-replicas-to-write", "1");
    simulated.set_replicas_missing(true);
    expect_all_same();
    configure("min-replicas-to-write", "0");
    simulated.set_replicas_missing(false);
  }
  {
    SCOPED_TRACE("replica");
    ASSERT_EQ(twins_.real().ask({"REPLICAOF", "127.0.0.1", "1"}).text, "OK");
    simulated.set_role(RedisServer::Role::replica);
    expect_all_same();
  }
}

}  // namespace
}  // namespace sluice::sim
