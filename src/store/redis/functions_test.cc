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

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;

// ---- random limits ----------------------------------------------------------------------------

enum class Kind { bucket, interval, window, calendar, first, counter, log, slices, slots };
constexpr std::array kKinds{Kind::bucket,   Kind::interval, Kind::window,
                            Kind::calendar, Kind::first,    Kind::counter,
                            Kind::log,      Kind::slices,   Kind::slots};
constexpr std::array kKindNames{"bucket",  "interval", "window", "calendar", "first",
                                "counter", "log",      "slices", "slots"};

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least) + 1));
  }
  // All magnitudes alike.
  std::int64_t magnitude(std::int64_t least, std::int64_t most) {
    std::int64_t reach = 1;
    for (std::int64_t bits = between(0, 62); bits > 0 && reach < most - least; --bits) reach *= 2;
    return least + between(0, std::min(reach, most - least));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <class Range>
  const auto& pick(const Range& range) {
    return range[static_cast<std::size_t>(between(0, std::ssize(range) - 1))];
  }

 private:
  Random random_;
};

Nanos micros(std::int64_t count) { return Nanos{count * 1'000}; }

std::int64_t random_period(Chance& chance) {
  constexpr std::array kUsual{1'000L, 7'000L, kSecond, 60 * kSecond, 3'600 * kSecond, kDay};
  if (chance.one_in(3)) return chance.magnitude(1'000, 366 * kDay);
  return chance.pick(kUsual);
}

std::uint64_t random_amount(Chance& chance, std::int64_t most) {
  const std::int64_t reach = chance.one_in(4) ? most : std::min<std::int64_t>(most, 20);
  return static_cast<std::uint64_t>(chance.magnitude(1, reach));
}

Limit random_bucket(Chance& chance, std::int64_t period, std::int64_t fastest) {
  constexpr std::array kBuckets{Algorithm::token_bucket, Algorithm::gcra, Algorithm::leaky_bucket};
  Limit limit{.algorithm = chance.pick(kBuckets)};
  limit.period = micros(period);
  limit.amount = random_amount(chance, fastest);
  const auto most = static_cast<std::int64_t>(
      std::min<Int128>(Int128{2 * 365 * kDay} * limit.amount / period, 1'000'000'000));
  limit.burst = random_amount(chance, std::max<std::int64_t>(most, 1));
  if (limit.algorithm == Algorithm::leaky_bucket && chance.one_in(2)) {
    limit.max_delay = micros(chance.magnitude(0, std::min(4 * period, kDay)));
  }
  return limit;
}

Limit random_limit(Chance& chance, Kind kind) {
  const std::int64_t period = random_period(chance);
  const std::int64_t fastest = std::min<std::int64_t>(1'000'000'000, period * 1'000);
  Limit limit{.algorithm = Algorithm::fixed_window};
  limit.period = micros(period);
  limit.amount = random_amount(chance, fastest);
  switch (kind) {
    case Kind::bucket: limit = random_bucket(chance, period, fastest); break;
    case Kind::interval: {
      const Limit bucket = random_bucket(chance, period, fastest);
      limit.algorithm = Algorithm::token_bucket;
      limit.refill = Refill::interval;
      limit.amount = bucket.amount;
      limit.burst = bucket.burst;
      break;
    }
    case Kind::window: break;
    case Kind::calendar: {
      constexpr std::array kUnits{CalendarUnit::day, CalendarUnit::week, CalendarUnit::month,
                                  CalendarUnit::year};
      const std::array<std::string, 3> zones{"UTC", "America/New_York", "Europe/Berlin"};
      limit.align = Align::calendar;
      limit.period = Nanos{0};
      limit.unit = chance.pick(kUnits);
      limit.timezone = chance.pick(zones);
      limit.amount = random_amount(chance, 1'000'000'000);
      break;
    }
    case Kind::first: limit.align = Align::first_request; break;
    case Kind::counter: limit.algorithm = Algorithm::sliding_counter; break;
    case Kind::log:
      limit.algorithm = Algorithm::sliding_log;
      limit.amount = random_amount(chance, std::min<std::int64_t>(fastest, core::kLogAmountMax));
      break;
    case Kind::slices: {
      limit.algorithm = Algorithm::sliding_buckets;
      const std::int64_t most = chance.one_in(20) ? 4'000 : 200;
      const std::int64_t count = chance.magnitude(1, std::min(most, period));
      if (count != 8) limit.bucket_width = micros(ceil_div(period, count));
      break;
    }
    case Kind::slots:
      limit.algorithm = Algorithm::concurrency;
      limit.slot_ttl = limit.period;
      limit.period = Nanos{0};
      limit.amount = random_amount(chance, 1'000);
      return limit;
  }
  limit.count_rejected = chance.one_in(5);
  return limit;
}

// Another limit for the same field: an edit, a tier, an override.
Limit varied(Chance& chance, const Limit& of, Kind kind) {
  Limit limit = of;
  const std::int64_t most = kind == Kind::log ? core::kLogAmountMax
                            : of.period > Nanos{0}
                                ? std::min<std::int64_t>(1'000'000'000, of.period.count())
                                : 1'000'000'000;
  limit.amount = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      chance.one_in(2) ? static_cast<std::int64_t>(of.amount) * chance.between(1, 4) / 2
                       : chance.magnitude(1, std::min<std::int64_t>(most, 40)),
      1, most));
  if (of.burst) limit.burst = static_cast<std::uint64_t>(chance.magnitude(1, 40));
  if (kind == Kind::slots && chance.one_in(2)) limit.slot_ttl = micros(random_period(chance));
  limit.stands_in = chance.one_in(4);
  if (kind != Kind::slots && chance.one_in(4)) limit.count_rejected = !of.count_rejected;
  return limit;
}

SharedLimitPtr shared(const Limit& limit) {
  Parsed<SharedLimit> compiled = compile_shared(limit);
  return compiled ? std::make_shared<const SharedLimit>(*std::move(compiled)) : nullptr;
}

// Which windows a calendar has, the functions know only from the edges that a call brings along, so
// that a clock that was set back may be noticed a little earlier or later when a field changes from
// one calendar to something else. Days of UTC have one length.
bool changes_freely(const Limit& limit) {
  return !limit.unit || (*limit.unit == CalendarUnit::day && *limit.timezone == "UTC");
}

// ---- one key ----------------------------------------------------------------------------------

struct TwinCharge {
  SharedCharge here;  // as Redis names it
  ModelCharge there;  // as the model names it
};

struct Field {
  FieldId id = 0;
  Kind kind = Kind::bucket;
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

Field random_field(Chance& chance, FieldId id, Kind kind) {
  Field field{.id = id, .kind = kind};
  while (field.limits.empty()) {
    if (SharedLimitPtr limit = shared(random_limit(chance, kind))) field.limits.push_back(limit);
  }
  const Limit base = field.limits[0]->limit;
  for (std::int64_t more = chance.one_in(2) ? chance.between(1, 3) : 0; more > 0; --more) {
    Limit limit = varied(chance, base, kind);
    if (chance.one_in(4) && changes_freely(base)) {
      limit = random_limit(chance, chance.one_in(2) ? kind : chance.pick(kKinds));
      if (!changes_freely(limit)) continue;
    }
    if (SharedLimitPtr variant = shared(limit)) field.limits.push_back(variant);
  }
  return field;
}

bool has_fast_buckets(const History& history) {
  return std::any_of(history.fields.begin(), history.fields.end(), [](const Field& field) {
    return std::any_of(field.limits.begin(), field.limits.end(), [](const SharedLimitPtr& limit) {
      const auto* bucket = std::get_if<core::GcraLimit>(&limit->steps);
      return bucket != nullptr && bucket->fraction_bits > 8;
    });
  });
}

History random_history(std::uint64_t seed, Kind kind) {
  History history{.seed = seed, .chance = Chance{seed}};
  Chance& chance = history.chance;
  history.key = shared_key({.low = seed, .high = 1});
  history.now = chance.between(1'000'000'000 * kSecond, 3'000'000'000 * kSecond);
  const std::int64_t count = chance.one_in(3) ? chance.between(2, 3) : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const Kind of = i == 0 ? kind : chance.pick(kKinds);
    history.fields.push_back(random_field(chance, static_cast<FieldId>(i), of));
  }
  // Fast buckets have many ticks, which the reference counts in 64 bits.
  const std::int64_t span = has_fast_buckets(history) ? 90 * kDay : 10 * 365 * kDay;
  history.earliest = history.now - span;
  history.latest = history.now + span;
  return history;
}

std::int64_t period_of(const Limit& limit) {
  if (limit.unit) return kDay;
  const Nanos period = limit.slot_ttl.value_or(limit.period);
  return period.count() / 1'000;
}

// How far the clock goes: edges and one microsecond beside them, often; back, now and then.
std::int64_t random_gap(Chance& chance, const Limit& limit, std::int64_t now) {
  const std::int64_t period = period_of(limit);
  const std::int64_t interval =
      std::max<std::int64_t>(1, period / static_cast<std::int64_t>(limit.amount));
  const std::int64_t width = limit.bucket_width.value_or(micros(interval)).count() / 1'000;
  const std::int64_t beside = chance.between(-1, 1);
  switch (chance.between(0, 19)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: return 0;
    case 5: return 1;
    case 6:
    case 7: return std::max<std::int64_t>(0, interval * chance.magnitude(1, 20) + beside);
    case 8: return width * chance.magnitude(1, 20) + std::abs(beside);
    case 9:
    case 10: return std::max<std::int64_t>(0, period - now % period + beside);  // the next edge
    case 11: return std::max<std::int64_t>(0, period * chance.magnitude(1, 4) + beside);
    case 12:
    case 13:
    case 14: return chance.between(0, period);
    case 15: return chance.magnitude(0, period);
    case 16: return chance.one_in(4) ? chance.magnitude(0, 3 * 365 * kDay) : 0;
    case 17: return -chance.magnitude(0, 60 * kSecond);
    case 18: return chance.one_in(4) ? -(60 * kSecond + beside) : 0;
    default: return chance.one_in(4) ? -chance.magnitude(61 * kSecond, 400 * kDay) : 0;
  }
}

Cost random_cost(Chance& chance, Cost capacity) {
  switch (chance.between(0, 9)) {
    case 0: return 0;
    case 1: return capacity;
    case 2: return capacity < UINT32_MAX ? capacity + 1 : capacity;
    case 3:
    case 4: return static_cast<Cost>(chance.magnitude(1, capacity));
    case 5: return static_cast<Cost>(chance.between(1, capacity));
    default: return 1;
  }
}

// ---- operations: what is sent, and what the model makes of it ---------------------------------

class Differential {
 public:
  explicit Differential(Kind kind, std::uint64_t seed) : kind_(kind), seed_(seed) {
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
                                   kKindNames[static_cast<std::size_t>(kind_)]);
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

  Kind kind_;
  std::uint64_t seed_;
  RedisServer redis_;
  std::string name_;
  CallArguments arguments_;
};

class EveryFunction : public ::testing::TestWithParam<Kind> {};

TEST_P(EveryFunction, BehavesAsTheCoreDoes) {
  const char* const chosen = std::getenv("SLUICE_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::stoull(chosen) : 1;
  const auto operations = testing::effort<std::size_t>(20'000, 1'000'000);
  const std::string difference = Differential{GetParam(), seed}.run(operations);
  EXPECT_TRUE(difference.empty()) << difference;
}

INSTANTIATE_TEST_SUITE_P(Differential, EveryFunction, ::testing::ValuesIn(kKinds),
                         [](const auto& subject) {
                           return std::string{kKindNames[static_cast<std::size_t>(subject.param)]};
                         });

}  // namespace
}  // namespace sluice::store
