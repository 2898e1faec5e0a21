// Equal histories give equal decisions: a store against one cell of src/core for each key.
//
// Limits here are such that every store keeps them exactly: all times are whole microseconds, and
// so is the interval of a token. A call is one group, which a store decides in one step; what
// happens between groups is in decisions_test.cc.
#include "base/random.h"
#include "contract/contract_fixture.h"
#include "support/effort.h"
#include <sluice/core/cell.h>
#include <sluice/core/compiled_limit.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

namespace sluice::contract {
namespace {

using core::Cell;
using core::CompiledLimit;
using core::Outcome;
using core::Receipt;

enum class Kind {
  token_bucket,
  gcra,
  leaky_bucket,
  queue,
  interval,
  fixed_window,
  calendar,
  first_request,
  sliding_log,
  sliding_counter,
  sliding_buckets,
  concurrency
};
constexpr std::array kKinds{Kind::token_bucket,    Kind::gcra,
                            Kind::leaky_bucket,    Kind::queue,
                            Kind::interval,        Kind::fixed_window,
                            Kind::calendar,        Kind::first_request,
                            Kind::sliding_log,     Kind::sliding_counter,
                            Kind::sliding_buckets, Kind::concurrency};
constexpr std::array kKindNames{
    "token_bucket",    "gcra",       "leaky_bucket",  "queue",       "interval",
    "fixed_window",    "calendar",   "first_request", "sliding_log", "sliding_counter",
    "sliding_buckets", "concurrency"};

// 27,720 is divided by all numbers up to 12, so that any such amount has a whole interval.
constexpr std::int64_t kStep = 27'720;
constexpr std::uint64_t kAmountMax = 12;

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + random_.below(most - least + 1);
  }
  std::int64_t time(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least) + 1));
  }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }

 private:
  Random random_;
};

Nanos micros(std::int64_t count) { return Nanos{count * 1'000}; }

Algorithm algorithm_of(Kind kind) {
  switch (kind) {
    case Kind::token_bucket:
    case Kind::interval: return Algorithm::token_bucket;
    case Kind::gcra: return Algorithm::gcra;
    case Kind::leaky_bucket:
    case Kind::queue: return Algorithm::leaky_bucket;
    case Kind::fixed_window:
    case Kind::calendar:
    case Kind::first_request: return Algorithm::fixed_window;
    case Kind::sliding_log: return Algorithm::sliding_log;
    case Kind::sliding_counter: return Algorithm::sliding_counter;
    case Kind::sliding_buckets: return Algorithm::sliding_buckets;
    case Kind::concurrency: break;
  }
  return Algorithm::concurrency;
}

Limit random_limit(Chance& chance, Kind kind) {
  Limit limit{.algorithm = algorithm_of(kind)};
  limit.amount = chance.between(1, kAmountMax);
  limit.period = micros(kStep * 8 * chance.time(1, chance.one_in(2) ? 8 : 100'000));
  if (core::is_bucket(limit.algorithm)) limit.burst = chance.between(1, kAmountMax);
  switch (kind) {
    case Kind::queue: limit.max_delay = limit.period / chance.time(1, 8); break;
    case Kind::interval: limit.refill = Refill::interval; break;
    case Kind::first_request: limit.align = Align::first_request; break;
    case Kind::sliding_buckets:
      if (chance.one_in(2)) limit.bucket_width = limit.period / 4;
      break;
    case Kind::calendar:
      limit.align = Align::calendar;
      limit.unit = chance.one_in(2) ? CalendarUnit::day : CalendarUnit::month;
      limit.period = Nanos{0};
      break;
    case Kind::concurrency: limit.slot_ttl = std::exchange(limit.period, Nanos{0}); return limit;
    default: break;
  }
  limit.count_rejected = chance.one_in(5);
  return limit;
}

// An edit, a tier or an override: other numbers in the same windows.
Limit varied(Chance& chance, Limit limit) {
  limit.amount = chance.between(1, kAmountMax);
  if (limit.burst) limit.burst = chance.between(1, kAmountMax);
  limit.stands_in = chance.one_in(4);
  return limit;
}

std::int64_t period_of(const Limit& limit) {
  if (limit.unit) return Nanos{24h}.count() / 1'000;
  return limit.slot_ttl.value_or(limit.period).count() / 1'000;
}

// In microseconds: edges and one beside them, often.
std::int64_t random_gap(Chance& chance, const Limit& limit, Now now) {
  const std::int64_t period = period_of(limit);
  const std::int64_t interval =
      std::max<std::int64_t>(1, period / static_cast<std::int64_t>(limit.amount));
  const std::int64_t wall = now.wall().time_since_epoch().count() / 1'000;
  const std::int64_t beside = chance.time(-1, 1);
  switch (chance.between(0, 11)) {
    case 0:
    case 1:
    case 2: return 0;
    case 3: return 1;
    case 4:
    case 5: return std::max<std::int64_t>(0, interval * chance.time(1, 4) + beside);
    case 6: return std::max<std::int64_t>(0, period - wall % period + beside);
    case 7: return std::max<std::int64_t>(0, period / 8 * chance.time(1, 16) + beside);
    case 8: return chance.one_in(8) ? 400 * period : period;
    default: return chance.time(0, interval);
  }
}

struct Variant {
  LimitNumber number = 0;
  Limit limit;
  CompiledLimit compiled;
};

// A key under the limits it has, as src/core alone would keep it.
struct Twin {
  Check check;
  std::vector<Variant> variants;
  std::size_t current = 0;
  Cell cell;
  std::optional<std::size_t> written_by;  // which variant wrote the cell
  struct Held {
    Holding holding;
    Receipt receipt;
    Cost cost = 0;
  };
  std::vector<Held> held;

  [[nodiscard]] const Variant& variant() const { return variants[current]; }

  // Whether there is nothing to convert. Variants may be equal by chance: one number, one limit.
  [[nodiscard]] bool is_own() const {
    return !written_by || variants[*written_by].number == variant().number;
  }
  // The cell as the current variant finds it.
  [[nodiscard]] Cell found(Now now) const {
    Cell copy = cell;
    if (is_own()) return copy;
    const Variant& before = variants[*written_by];
    const bool is_edit = !before.limit.stands_in && !variant().limit.stands_in;
    copy.convert(before.compiled, variant().compiled, now, is_edit ? check.change : OnChange::keep);
    return copy;
  }
  void write(const Cell& changed) {
    cell = changed;
    written_by = current;
  }
  [[nodiscard]] Decision peek(Now now) const {
    return found(now).decide(variant().compiled, now, 0).decision;
  }
};

std::string shown(const Decision& decision) {
  std::ostringstream text;
  showValue(decision, text);
  return text.str();
}

class Histories : public ContractFixture {
 protected:
  // A key is used under several limits, or the wall clock is set, or neither: what a clock that was
  // set back means for a limit that was edited meanwhile is left to each store.
  enum class Course { plain, edited, stepped };

  void run(Kind kind, std::uint64_t seed) {
    Chance chance{seed};
    open(seed);
    course_ = std::array{Course::plain, Course::edited, Course::stepped}[seed % 3];
    plain_requests_ = chance.one_in(3) && course_ == Course::plain;
    now_ = at(kStart + micros(chance.time(0, 1'000'000'000)).count());
    twins_.clear();
    story_.clear();
    for (std::size_t i = 0; i < 3; ++i) add_twin(chance, kind, i);
    for (int step = 0; step < 60 && !HasFatalFailure(); ++step) {
      SCOPED_TRACE(::testing::Message() << "step " << step);
      now_.mono += micros(random_gap(chance, twins_[0].variant().limit, now_));
      if (course_ == Course::stepped && chance.one_in(10)) {
        // Whether usage that the clock went back behind is kept beyond its time, a store may
        // choose.
        const bool may_go_back = kind != Kind::sliding_buckets;
        now_.wall_offset += micros(chance.time(may_go_back ? -90'000'000 : 0, 90'000'000));
      }
      Twin& twin = twins_[chance.between(0, twins_.size() - 1)];
      if (course_ == Course::edited && chance.one_in(6)) {
        twin.current = chance.between(0, twin.variants.size() - 1);
        twin.check.limit = twin.variant().number;
      }
      operate(chance, twin);
      compare_peeks();
    }
    for (Twin& twin : twins_) {
      for (Twin::Held& held : twin.held) store_->keep(held.holding);
    }
  }

 private:
  void add_twin(Chance& chance, Kind kind, std::size_t i) {
    constexpr std::array kChanges{OnChange::keep, OnChange::proportional, OnChange::reset};
    Twin& twin = twins_.emplace_back();
    twin.check.change = kChanges[chance.between(0, 2)];
    // The same limit twice, and another one.
    Limit base = i == 1 ? twins_[0].variants[0].limit : random_limit(chance, kind);
    // A store may or may not write an edit down with a step that changes nothing else.
    if (course_ == Course::edited) base.count_rejected = false;
    for (std::size_t variant = 0; variant < (course_ == Course::edited ? 3U : 1U); ++variant) {
      const Limit limit = variant == 0 ? base : varied(chance, base);
      std::ostringstream text;
      showValue(limit, text);
      if (limit.stands_in) text << " stands_in";
      tell(i, "limit " + std::to_string(variant) + ": " + text.str() + ", " +
                  std::string{to_string(twin.check.change)});
      twin.variants.push_back(
          {.number = use(limit), .limit = limit, .compiled = testing::compiled(limit)});
    }
    const OnChange change = twin.check.change;
    twin.check = check(twin.variants[0].number, std::to_string(i));
    twin.check.change = change;
    twin.check.may_be_refunded = !plain_requests_;
  }

  // What happened to a key, for the message of a failure.
  void tell(std::size_t key, const std::string& text) {
    story_.push_back(std::to_string((now_.mono - at(kStart).mono).count() / 1'000) + " us, key " +
                     std::to_string(key) + ": " + text);
  }
  void tell(const Twin& twin, const std::string& text) {
    tell(static_cast<std::size_t>(&twin - twins_.data()),
         "limit " + std::to_string(twin.current) + " " + text);
  }
  [[nodiscard]] std::string story() const {
    std::string text;
    for (const std::string& line : story_) text += "\n  " + line;
    return text;
  }

  void operate(Chance& chance, Twin& twin) {
    const bool has_holdings = !twin.held.empty();
    const bool is_bucket = core::is_bucket(twin.variant().limit.algorithm);
    const std::uint64_t action = plain_requests_ ? 9 : chance.between(0, 9);
    if (action == 0) {
      charge(chance, twin);
    } else if (action <= 2 && has_holdings) {
      give_back(chance, twin, is_bucket);
    } else if (action == 3 && has_holdings) {
      renew(chance, twin);
    } else if (action <= 5) {
      decide_together(chance);
    } else {
      decide_one(chance, twin);
    }
  }

  static Cost random_cost(Chance& chance, const Twin& twin) {
    const auto capacity = static_cast<Cost>(core::capacity(twin.variant().limit));
    if (chance.one_in(2)) return 1;
    return static_cast<Cost>(chance.between(0, chance.one_in(4) ? capacity + 1 : capacity));
  }

  void decide_one(Chance& chance, Twin& twin) {
    Check of = twin.check;
    of.cost = random_cost(chance, twin);
    of.probe = chance.one_in(8);
    decide_group({&twin}, {of});
  }

  // All keys, in one group: all or nothing.
  void decide_together(Chance& chance) {
    std::vector<Twin*> twins;
    std::vector<Check> checks;
    for (Twin& twin : twins_) {
      Check of = twin.check;
      of.cost = random_cost(chance, twin);
      of.probe = chance.one_in(8);
      twins.push_back(&twin);
      checks.push_back(of);
    }
    decide_group(twins, checks);
  }

  void decide_group(const std::vector<Twin*>& twins, const std::vector<Check>& checks) {
    Request request;
    request.add_group(checks);
    decide(request);

    std::vector<Cell> after;
    std::vector<Outcome> outcomes;
    bool admitted = true;
    for (std::size_t i = 0; i < twins.size(); ++i) {
      Cell& cell = after.emplace_back(twins[i]->found(now_));
      outcomes.push_back(cell.decide(twins[i]->variant().compiled, now_, checks[i].cost));
      admitted &= outcomes.back().decision.allowed();
    }
    ASSERT_EQ(request.call.admitted, admitted);
    // What an earlier reply said holds, and its numbers may be older than those of today.
    if (request.call.groups[0].source == Source::denied_until) return;
    for (std::size_t i = 0; i < twins.size(); ++i) {
      take_outcome(*twins[i], checks[i], admitted, after[i], outcomes[i], request, i);
    }
  }

  void take_outcome(Twin& twin, const Check& of, bool admitted, const Cell& after,
                    const Outcome& outcome, const Request& request, std::size_t i) {
    const bool has_room = outcome.decision.allowed();
    const bool is_charged = has_room && admitted && !of.probe;
    const Decision expected = has_room && !admitted ? twin.peek(now_) : outcome.decision;
    ASSERT_EQ(request.decision(i), expected)
        << "core: " << shown(expected) << "\nstore: " << shown(request.decision(i)) << "\ncost "
        << of.cost << (of.probe ? ", a probe" : "") << story();
    tell(twin,
         (of.probe ? "probe " : "decide ") + std::to_string(of.cost) + ": " + shown(expected));
    const bool is_rejected = outcome.decision.verdict == Verdict::rejected;
    const bool writes = is_charged ? of.cost > 0 || twin.is_own() : is_rejected && twin.is_own();
    if (writes) twin.write(after);
    if (!is_charged || outcome.receipt.cost == 0) return;
    if (plain_requests_) return;
    twin.held.push_back(
        {.holding = request.holding(i), .receipt = outcome.receipt, .cost = of.cost});
  }

  void charge(Chance& chance, Twin& twin) {
    Check of = twin.check;
    of.cost = std::max<Cost>(random_cost(chance, twin), 1);
    if (course_ == Course::edited && twin.peek(now_).remaining == 0) return;
    tell(twin, "charge " + std::to_string(of.cost));
    store_->charge(of, now_);
    Cell cell = twin.found(now_);
    (void)cell.charge(twin.variant().compiled, now_, of.cost);
    twin.write(cell);
  }

  // Of a bucket a part, since a store may know more exactly than a cell where the whole of the last
  // charge is. None where limits change: which receipts survive that, each store says. Nor where
  // the clock is set: a window that was given back entirely may be forgotten, or not.
  void give_back(Chance& chance, Twin& twin, bool is_bucket) {
    const std::size_t which = chance.between(0, twin.held.size() - 1);
    Twin::Held& held = twin.held[which];
    if (course_ != Course::plain || (is_bucket && held.cost < 2)) {
      store_->keep(held.holding);
      twin.held.erase(twin.held.begin() + static_cast<std::ptrdiff_t>(which));
      return;
    }
    const Cost amount = is_bucket ? static_cast<Cost>(chance.between(1, held.cost - 1)) : held.cost;
    tell(twin, "refund " + std::to_string(amount));
    twin.cell.refund(twin.variant().compiled, now_, held.receipt, amount);
    if (is_bucket) {
      held.cost -= amount;
      held.receipt.cost -= std::min(amount, held.receipt.cost);
      store_->correct(twin.check, held.holding, held.cost, now_);
      return;
    }
    store_->refund(twin.check, held.holding, now_);
    twin.held.erase(twin.held.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void renew(Chance& chance, Twin& twin) {
    Twin::Held& held = twin.held[chance.between(0, twin.held.size() - 1)];
    if (!twin.variant().limit.slot_ttl || course_ == Course::edited) return;
    tell(twin, "renew");
    store_->renew(twin.check, held.holding, now_);
    held.receipt = twin.cell.renew(twin.variant().compiled, now_, held.receipt);
  }

  void compare_peeks() {
    for (Twin& twin : twins_) {
      if (HasFatalFailure()) return;
      const Decision expected = twin.peek(now_);
      const Decision found = peek(twin.check);
      ASSERT_EQ(found, expected) << "core: " << shown(expected) << "\nstore: " << shown(found)
                                 << story();
    }
  }

  Course course_ = Course::plain;
  bool plain_requests_ = false;  // nothing but decisions, so that a store may remember rejections
  std::vector<Twin> twins_;
  std::vector<std::string> story_;
};

TEST_P(Histories, GiveTheDecisionsOfTheCore) {
  const auto seeds = testing::effort<std::uint64_t>(30, 300);
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(::testing::Message() << kKindNames[kind] << ", seed " << seed);
      run(kKinds[kind], seed);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Histories, ::testing::ValuesIn(subjects()), subject_name());

}  // namespace
}  // namespace sluice::contract
