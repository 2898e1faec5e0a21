// The functions in Redis against the algorithms of core: random histories, the same behaviour.
//
// Many keys at once, each with its own virtual clock, limits and history, one operation of each in
// a pipeline. The functions are loaded with a clock that takes the time from the last argument and
// keeps a key's end of life in the key; everything else is the shipped text.
//
// A failure prints the seed and the history. SLUICE_SEED=N runs one seed.

#include "base/random.h"
#include "store/redis/call_codec.h"
#include "store/redis/function_library.h"
#include "store/redis/random_limits_fixture.h"
#include "store/redis/redis_fixture.h"
#include "store/redis/shared_model_fixture.h"
#include "store/redis/test_clock_fixture.h"
#include "support/effort.h"
#include "support/traffic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using core::Cost;

// ---- one key ----------------------------------------------------------------------------------

struct TwinCharge {
  SharedCharge here;  // as Redis names it
  ModelCharge there;  // as the model names it
};

struct Field {
  FieldId id = 0;
  LimitKind kind = LimitKind::bucket;
  std::vector<SharedLimitPtr> limits;
  std::size_t current = 0;
  OnChange change = OnChange::keep;
  ModelField model;
  std::vector<TwinCharge> charges;

  [[nodiscard]] const SharedLimitPtr& limit() const { return limits[current]; }
};

// What is expected of one command of a history, in the order of its answers.
struct Expectation {
  std::vector<Cost> capacities;
  std::vector<ModelAnswer> answers;
  std::vector<std::size_t> fields;  // where the charges go
  std::optional<ReplyStatus> status;
  bool charges_only = false;  // renewals tell nothing else
};

struct History {
  std::uint64_t seed = 0;
  Chance chance{0};
  std::string key;
  std::int64_t now = 0;
  std::int64_t earliest = 0;  // the clock stays in between
  std::int64_t latest = 0;
  std::optional<std::int64_t> ends;  // the key's end of life
  std::vector<Field> fields;
  std::vector<Expectation> expected;
  std::deque<std::string> story;
  std::string failure;

  void tell(std::string line) {
    story.push_back(std::move(line));
    if (story.size() > 40) story.pop_front();
  }
  void fail(std::string text) {
    if (failure.empty()) failure = std::move(text);
  }
};

Field random_field(Chance& chance, FieldId id, LimitKind kind) {
  return {.id = id, .kind = kind, .limits = random_limits(chance, kind)};
}

bool has_fast_buckets(const History& history) {
  return std::any_of(history.fields.begin(), history.fields.end(), [](const Field& field) {
    return std::any_of(field.limits.begin(), field.limits.end(), [](const SharedLimitPtr& limit) {
      const auto* bucket = std::get_if<core::GcraLimit>(&limit->steps);
      return bucket != nullptr && bucket->fraction_bits > 8;
    });
  });
}

History random_history(std::uint64_t seed, LimitKind kind) {
  History history{.seed = seed, .chance = Chance{seed}};
  Chance& chance = history.chance;
  history.key = shared_key({.low = seed, .high = 1});
  history.now = chance.between(1'000'000'000 * kSecond, 3'000'000'000 * kSecond);
  const std::int64_t count = chance.one_in(3) ? chance.between(2, 3) : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const LimitKind of = i == 0 ? kind : chance.pick(kLimitKinds);
    history.fields.push_back(random_field(chance, static_cast<FieldId>(i), of));
  }
  // Fast buckets have many ticks, which the reference counts in 64 bits.
  const std::int64_t span = has_fast_buckets(history) ? 90 * kDay : 10 * 365 * kDay;
  history.earliest = history.now - span;
  history.latest = history.now + span;
  return history;
}

// ---- operations: what is sent, and what the model makes of it ---------------------------------

class Differential {
 public:
  explicit Differential(LimitKind kind, std::uint64_t seed) : kind_(kind), seed_(seed) {
    const FunctionLibrary library = function_library_with(kClockOfArguments);
    name_ = library.name;
    const RedisReply loaded = redis_.ask({"FUNCTION", "LOAD", library.library});
    if (loaded.is_error()) throw std::runtime_error{loaded.text};
  }

  // The first history that differs, if any.
  [[nodiscard]] std::string run(std::size_t operations) {
    constexpr std::size_t kAtOnce = 64;
    constexpr std::size_t kHistoryLength = 150;
    std::size_t done = 0;
    for (std::uint64_t batch = 0; done < operations; ++batch) {
      std::vector<History> histories;
      for (std::uint64_t i = 0; i < kAtOnce; ++i) {
        histories.push_back(random_history(seed_ + batch * kAtOnce + i, kind_));
      }
      for (std::size_t i = 0; i < kHistoryLength && done < operations; ++i) {
        for (History& history : histories) operate(history);
        for (History& history : histories) {
          verify(history);
          if (!history.failure.empty()) return report(history);
        }
        done += kAtOnce;
      }
      redis_.send({"FLUSHDB"});
      if (redis_.receive().is_error()) return "FLUSHDB failed";
    }
    return {};
  }

 private:
  [[nodiscard]] std::string report(const History& history) const {
    std::string text = fmt::format("SLUICE_SEED={} differs in {}\n", history.seed,
                                   kLimitKindNames[static_cast<std::size_t>(kind_)]);
    for (const Field& field : history.fields) {
      for (const SharedLimitPtr& limit : field.limits) {
        text += fmt::format("  field {}: {}\n", field.id, limit->text);
      }
    }
    for (const std::string& line : history.story) text += "  " + line + "\n";
    return text + history.failure;
  }

  void send(History& history, Expectation expectation) {
    const std::string now = std::to_string(history.now);
    std::vector<std::string_view> command{"FCALL", name_, "1", history.key};
    std::string story = fmt::format("{}", history.now);
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      command.push_back(arguments_[i]);
      story += fmt::format(" {}", arguments_[i]);
    }
    history.tell(std::move(story));
    command.push_back(now);
    redis_.send(command);
    history.expected.push_back(std::move(expectation));
  }

  // Redis would have removed the key: then nothing may be in use any more.
  static void expire(History& history) {
    if (!history.ends || history.now < *history.ends) return;
    for (Field& field : history.fields) {
      if (!field.model.is_idle(history.now)) {
        history.fail(fmt::format("field {} expired while in use", field.id));
      }
      field.model.expire();
    }
    history.tell(fmt::format("{} expired", history.now));
    history.ends.reset();
  }

  void operate(History& history) {
    Chance& chance = history.chance;
    history.expected.clear();
    Field& field =
        history.fields[static_cast<std::size_t>(chance.between(0, std::ssize(history.fields) - 1))];
    history.now = std::clamp(history.now + random_gap(chance, field.limit()->limit, history.now),
                             history.earliest, history.latest);
    expire(history);
    if (chance.one_in(12)) {
      constexpr std::array kChanges{OnChange::keep, OnChange::proportional, OnChange::reset};
      field.current = static_cast<std::size_t>(chance.between(0, std::ssize(field.limits) - 1));
      field.change = chance.pick(kChanges);
    }
    switch (chance.between(0, 15)) {
      case 0: peek(history); break;
      case 1:
      case 2: charge(history, field); break;
      case 3:
      case 4:
      case 5: refund(history, field); break;
      case 6: renew(history, field); break;
      case 7: correct(history, field); break;
      default: decide(history); break;
    }
    redis_.send({"HGET", history.key, "!"});
  }

  // The node's clock is an hour off at times.
  static WallTime node_clock(History& history) {
    const std::int64_t off = history.chance.one_in(4) ? 3'600 * kSecond : 0;
    return WallTime{micros(history.now + history.chance.between(-off, off))};
  }

  [[nodiscard]] static SharedCheck check_of(const Field& field, Cost cost) {
    return {.limit = field.limit().get(), .field = field.id, .cost = cost, .change = field.change};
  }

  void decide(History& history) {
    std::vector<SharedCheck> checks;
    std::vector<ModelField::Trial> trials;
    bool admitted = true;
    for (Field& field : history.fields) {
      SharedCheck check = check_of(field, random_cost(history.chance, field.limit()->capacity));
      check.probe = history.chance.one_in(8);
      checks.push_back(check);
      trials.push_back(field.model.decide(field.limit(), field.change, history.now, check.cost));
      admitted &= trials.back().answer.decision.allowed();
    }
    Expectation expectation{.status = admitted ? ReplyStatus::done : ReplyStatus::rejected};
    for (std::size_t i = 0; i < checks.size(); ++i) {
      Field& field = history.fields[i];
      ModelAnswer answer = trials[i].answer;
      const Verdict verdict = answer.decision.verdict;
      if (verdict == Verdict::allowed && (!admitted || checks[i].probe)) answer.charge = {};
      if (verdict == Verdict::allowed && !admitted) {
        answer.decision = field.model.peek(field.limit(), field.change, history.now);
      }
      const bool counts = verdict == Verdict::rejected ||
                          (verdict == Verdict::allowed && admitted && !checks[i].probe);
      if (counts) field.model = trials[i].after;
      add_expected(expectation, field, i, answer);
    }
    write_decide(arguments_, checks, node_clock(history));
    send(history, std::move(expectation));
  }

  static void add_expected(Expectation& expectation, const Field& field, std::size_t i,
                           const ModelAnswer& answer) {
    expectation.capacities.push_back(field.limit()->capacity);
    expectation.answers.push_back(answer);
    expectation.fields.push_back(i);
  }

  void peek(History& history) {
    std::vector<SharedCheck> checks;
    Expectation expectation{.status = ReplyStatus::done};
    for (std::size_t i = 0; i < history.fields.size(); ++i) {
      const Field& field = history.fields[i];
      checks.push_back(check_of(field, 1));
      add_expected(expectation, field, i,
                   {.decision = field.model.peek(field.limit(), field.change, history.now)});
    }
    write_peek(arguments_, checks, node_clock(history));
    send(history, std::move(expectation));
  }

  static std::size_t index_of(const History& history, const Field& field) {
    return static_cast<std::size_t>(&field - history.fields.data());
  }

  void charge(History& history, Field& field) {
    const Cost cost = random_cost(history.chance, field.limit()->capacity);
    Expectation expectation{.status = ReplyStatus::done};
    add_expected(expectation, field, index_of(history, field),
                 field.model.charge(field.limit(), field.change, history.now, cost));
    const SharedCheck check = check_of(field, cost);
    write_charge(arguments_, std::span{&check, 1}, {}, node_clock(history));
    send(history, std::move(expectation));
  }

  // Of any charge, also one that is void, and more than it holds. What was given back of it is not
  // asked for again: the node lowers the cost.
  void refund(History& history, Field& field) {
    if (field.charges.empty()) return decide(history);
    TwinCharge& charge = field.charges[static_cast<std::size_t>(
        history.chance.between(0, std::ssize(field.charges) - 1))];
    const Cost held = charge.here.cost;
    const auto amount = static_cast<Cost>(
        history.chance.one_in(2) ? held : history.chance.between(0, std::int64_t{held} * 3 / 2));
    const Refunding refund{.field = field.id, .charge = charge.here, .amount = amount};
    field.model.refund(history.now, charge.there, amount);
    charge.here.cost -= std::min(amount, held);
    charge.there.receipt.cost -= std::min(amount, charge.there.receipt.cost);
    if (history.chance.one_in(2)) {
      write_refund(arguments_, std::span{&refund, 1}, {});
    } else {
      write_release(arguments_, std::span{&refund, 1}, {});
    }
    send(history, {.status = ReplyStatus::done});
    if (charge.here.cost == 0) {
      std::swap(charge, field.charges.back());
      field.charges.pop_back();
    }
    peek(history);
  }

  void renew(History& history, Field& field) {
    if (field.charges.empty()) return decide(history);
    const std::size_t chosen =
        static_cast<std::size_t>(history.chance.between(0, std::ssize(field.charges) - 1));
    const TwinCharge charge = field.charges[chosen];
    field.charges.erase(field.charges.begin() + static_cast<std::ptrdiff_t>(chosen));
    const Refunding lease{.field = field.id, .charge = charge.here, .amount = 0};
    Expectation expectation{.status = ReplyStatus::done, .charges_only = true};
    add_expected(expectation, field, index_of(history, field),
                 {.decision = {}, .charge = field.model.renew(history.now, charge.there)});
    write_renew(arguments_, std::span{&lease, 1}, {});
    send(history, std::move(expectation));
    peek(history);
  }

  // Less is a refund, more is a charge.
  void correct(History& history, Field& field) {
    if (field.charges.empty()) return decide(history);
    TwinCharge charge = field.charges.back();
    field.charges.pop_back();
    const Cost cost = history.chance.one_in(2)
                          ? static_cast<Cost>(history.chance.between(0, charge.here.cost))
                          : random_cost(history.chance, field.limit()->capacity);
    const SharedCheck check = check_of(field, cost);
    write_correct(arguments_, check, charge.here, {}, node_clock(history));
    ModelAnswer answer;
    if (cost > charge.here.cost) {
      answer =
          field.model.charge(field.limit(), field.change, history.now, cost - charge.here.cost);
      field.charges.push_back(charge);
    } else {
      field.model.refund(history.now, charge.there, charge.here.cost - cost);
      charge.there.receipt.cost = cost;
      answer = {.decision = field.model.peek(field.limit(), field.change, history.now),
                .charge = charge.there};
    }
    Expectation expectation{.status = ReplyStatus::done};
    add_expected(expectation, field, index_of(history, field), answer);
    send(history, std::move(expectation));
  }

  // ---- replies --------------------------------------------------------------------------------

  void verify(History& history) {
    for (const Expectation& expectation : history.expected) {
      const RedisReply reply = redis_.receive();
      if (reply.is_error()) {
        history.fail(reply.text);
        continue;
      }
      compare(history, expectation, reply.numbers());
    }
    const RedisReply ends = redis_.receive();
    if (ends.kind == RedisReply::Kind::text) history.ends = std::stoll(ends.text);
  }

  static void compare(History& history, const Expectation& expectation,
                      const std::vector<std::int64_t>& numbers) {
    std::vector<SharedAnswer> answers(expectation.capacities.size());
    const auto reply = read_reply(numbers, expectation.capacities, answers);
    if (!reply) return history.fail("not a reply: " + fmt::format("{}", fmt::join(numbers, " ")));
    if (reply->status != expectation.status) return history.fail("another status");
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const ModelAnswer& wanted = expectation.answers[i];
      const SharedAnswer& found = answers[i];
      const bool same = (expectation.charges_only || found.decision == wanted.decision) &&
                        found.charge.cost == wanted.charge.receipt.cost;
      if (!same) {
        std::ostringstream text;
        text << "answer " << i << "\n  core: ";
        showValue(wanted.decision, text);
        text << " charged=" << wanted.charge.receipt.cost << "\n  redis: ";
        showValue(found.decision, text);
        text << " charged=" << found.charge.cost;
        return history.fail(text.str());
      }
      if (found.charge.cost == 0) continue;
      std::vector<TwinCharge>& charges = history.fields[expectation.fields[i]].charges;
      charges.push_back({.here = found.charge, .there = wanted.charge});
      if (charges.size() > 24) charges.erase(charges.begin());
    }
  }

  LimitKind kind_;
  std::uint64_t seed_;
  RedisServer redis_;
  std::string name_;
  CallArguments arguments_;
};

class EveryFunction : public ::testing::TestWithParam<LimitKind> {};

TEST_P(EveryFunction, BehavesAsTheCoreDoes) {
  const char* const chosen = std::getenv("SLUICE_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::stoull(chosen) : 1;
  const auto operations = testing::effort<std::size_t>(20'000, 1'000'000);
  const std::string difference = Differential{GetParam(), seed}.run(operations);
  EXPECT_TRUE(difference.empty()) << difference;
}

INSTANTIATE_TEST_SUITE_P(Differential, EveryFunction, ::testing::ValuesIn(kLimitKinds),
                         [](const auto& subject) {
                           return std::string{
                               kLimitKindNames[static_cast<std::size_t>(subject.param)]};
                         });

}  // namespace
}  // namespace sluice::store
