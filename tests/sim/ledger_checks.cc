// Whether what happened was allowed: see ledger.h.
#include "sim/ledger.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/int128.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice::sim {
namespace {

using store::AuthorityOutcome;
using store::GroupVerdict;
using store::Source;

// An admission as the bounds see it: times in microseconds.
struct Spent {
  std::int64_t at = 0;
  std::int64_t cost = 0;
};

// The most in a half-open window (t - length, t].
std::int64_t most_in(std::span<const Spent> spent, std::int64_t length) {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  std::size_t first = 0;
  for (const Spent& one : spent) {
    sum += one.cost;
    while (spent[first].at <= one.at - length) sum -= spent[first++].cost;
    most = std::max(most, sum);
  }
  return most;
}

// The most in a window that begins at a multiple of its length.
std::int64_t most_aligned(std::span<const Spent> spent, std::int64_t length) {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  std::int64_t window = -1;
  for (const Spent& one : spent) {
    if (std::exchange(window, one.at / length) != one.at / length) sum = 0;
    sum += one.cost;
    most = std::max(most, sum);
  }
  return most;
}

// The highest level of a meter that each cost raises and time drains, above `room`, in tokens
// rounded up; 0 if it stays within. `interval`: drained by whole amounts at the ends of periods.
std::int64_t excess_of_meter(std::span<const Spent> spent, const Limit& limit, std::int64_t room,
                             bool interval) {
  const std::int64_t period = limit.period.count() / 1'000;
  const auto amount = static_cast<std::int64_t>(limit.amount);
  Int128 level = 0;  // in tokens times the period
  Int128 highest = 0;
  std::int64_t before = spent.empty() ? 0 : spent[0].at;
  for (const Spent& one : spent) {
    const std::int64_t steps =
        interval ? (one.at / period - before / period) * period : one.at - before;
    level = std::max<Int128>(level - Int128{steps} * amount, 0) + Int128{one.cost} * period;
    highest = std::max(highest, level);
    before = one.at;
  }
  const Int128 over = highest - Int128{room} * period;
  return over <= 0 ? 0 : static_cast<std::int64_t>((over + period - 1) / period);
}

}  // namespace

void Ledger::finish(const std::map<Incarnation, Dropped>& alive) {
  for (Called& call : calls_) finish_call(call);
  for (const Ask& ask : asks_) {
    if (ask.outcome && *ask.outcome != AuthorityOutcome::failed) continue;
    for (const Part& part : ask.parts) {
      if (!part.probe) account(ask.node, part.field).unknown += part.cost;
    }
  }
  check_accounts(alive);
  check_admissions();
  check_shares();
}

// What had to be given back, and what had to be settled.
void Ledger::finish_call(Called& call) {
  if (call.is_lost) return;
  if (!call.is_completed && !call.is_cancelled) {
    return violated("I10", fmt::format("node {} never completed a call", call.node.node));
  }
  for (const CalledGroup& group : call.groups) {
    if (!group.is_shared) continue;
    const Ask* const ask = group.ask != kNone ? &asks_[group.ask] : nullptr;
    const bool was_charged = ask != nullptr && ask->outcome == AuthorityOutcome::done;
    const bool is_over = !call.is_cancelled && (call.is_admitted || call.is_independent);
    const bool is_in_effect =
        is_over && (group.verdict == GroupVerdict::admitted || group.verdict == GroupVerdict::open);
    const bool is_fallback =
        is_in_effect && (group.source == Source::share || group.source == Source::open);
    if (was_charged && !(is_in_effect && group.source == Source::exact)) ++summary_.late_charges;
    for (std::size_t i = 0; i < group.count; ++i) {
      const CalledCheck& check = call.checks[group.first + i];
      if (check.limit == nullptr) continue;
      Account& of_node = account(call.node, check.field);
      of_node.capacity = std::max<std::int64_t>(of_node.capacity, check.limit->capacity);
      if (was_charged && !is_in_effect) of_node.refunds_due += ask->parts.at(i).charged;
      const bool is_settled =
          !check.probe && check.limit->limit.algorithm != Algorithm::concurrency;
      if (is_fallback && !was_charged && is_settled) of_node.owed += check.cost;
    }
  }
}

// What the store, the authority and the servers say of one another. Of a process that crashed, its
// last words may be lost.
void Ledger::check_accounts(const std::map<Incarnation, Dropped>& alive) {
  for (const auto& [id, sum] : accounts_) {
    const auto& field = id.first;
    const auto& node = id.second;
    const auto rule = fields_.contains(field) ? fields_.at(field).first : kNone;
    const auto fail = [&](std::string_view what, std::int64_t is, std::int64_t expected) {
      violated("I2", fmt::format("node {}: {}: {} instead of {} ({})", node.node, what, is,
                                 expected, named(field, rule)));
    };
    const std::int64_t more = sum.executed_done - sum.known_done;
    if (more < 0)
      fail("decisions charged less than was reported", sum.executed_done, sum.known_done);
    if (more > sum.unknown) {
      fail("decisions were carried out more than once", sum.executed_done,
           sum.known_done + sum.unknown);
    }
    if (sum.refunds_executed > sum.refunds_sent) {
      fail("refunds were carried out more than once", sum.refunds_executed, sum.refunds_sent);
    }
    if (sum.charges_asked > sum.charges_sent) {
      fail("charges were carried out more than once", sum.charges_asked, sum.charges_sent);
    }
    const std::int64_t due = sum.refunds_due + sum.refunds_late;
    if (!sum.is_inexact && sum.refunds_sent > due) {
      fail("more was refunded than was due", sum.refunds_sent, due);
    }
    if (sum.settled_sent > sum.owed) fail("more was settled than owed", sum.settled_sent, sum.owed);

    const auto living = alive.find(node);
    if (living == alive.end()) continue;
    const Dropped& dropped = living->second;
    if (!dropped.refunds && !sum.is_inexact && sum.refunds_sent < sum.refunds_due) {
      fail("less was refunded than was due", sum.refunds_sent, sum.refunds_due);
    }
    if (!dropped.refunds && sum.refunds_executed < sum.refunds_sent) {
      fail("refunds were lost", sum.refunds_executed, sum.refunds_sent);
    }
    if (!dropped.charges && sum.charges_asked < sum.charges_sent) {
      fail("charges were lost", sum.charges_asked, sum.charges_sent);
    }
    // An entry is cut off at the capacity, which is as much as can count.
    const std::int64_t owed = std::min(sum.owed - sum.owed_back, sum.capacity);
    if (!dropped.settlements && sum.settled_sent < owed) {
      fail("less was settled than owed", sum.settled_sent, owed);
    }
  }
}

// ---- I1 -----------------------------------------------------------------------------------------

void Ledger::check_admissions() {
  std::map<std::pair<FieldKey, std::uint32_t>, std::vector<Admission*>> by_life;
  for (Admission& admission : admissions_) {
    if (admission.cost > 0) by_life[{admission.field, admission.life}].push_back(&admission);
  }
  for (auto& [id, all] : by_life) {
    // At one instant in the order in which they happened, which is that of their addresses.
    std::ranges::sort(all, {}, [](const Admission* one) { return std::pair{one->server_us, one}; });
    check_field(all);
  }
}

// Of one field in one life: the limit itself, by the authority's time. Where several limits count
// in one field, the greatest of them.
void Ledger::check_field(std::span<Admission*> admissions) {
  const RuleTraits& rule = rules_.at(admissions[0]->rule);
  if (rule.resets || rule.is_only_probed) return;
  // A charge that cannot be rejected converts the usage to its own limit, and a smaller one cuts it
  // off at its capacity: nothing is promised for the greater one then.
  const auto life = field_lives_.find({admissions[0]->field, admissions[0]->life});
  if (rule.has_variants && life != field_lives_.end() && life->second.was_forced) return;
  const auto greatest = std::ranges::max_element(
      admissions, {}, [](const Admission* one) { return one->limit->limit.amount; });
  const Limit& limit = (*greatest)->limit->limit;
  const auto amount = static_cast<std::int64_t>(limit.amount);
  const auto capacity = static_cast<std::int64_t>((*greatest)->limit->capacity);
  const std::int64_t period = limit.period.count() / 1'000;
  std::vector<Spent> spent;
  for (const Admission* const one : admissions) spent.push_back({one->server_us, one->cost});
  const auto require = [&](std::int64_t admitted, std::int64_t most, std::string_view where) {
    if (admitted <= most) return;
    violated("I1", fmt::format("{}: {} admitted {} instead of {} ({} {}/{} us)",
                               named(admissions[0]->field, admissions[0]->rule), admitted, where,
                               most, to_string(limit.algorithm), amount, period));
  };
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::gcra: {
      const bool interval = limit.refill == Refill::interval;
      const Nanos queue = limit.max_delay.value_or(Nanos{0});
      const std::int64_t queued =
          queue.count() == 0 ? 0 : mul_div_ceil(queue.count() / 1'000, amount, period);
      require(capacity + excess_of_meter(spent, limit, capacity + queued, interval), capacity,
              "above its rate");
      break;
    }
    case Algorithm::fixed_window:
      if (limit.align == Align::first_request) {
        std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> by_window;
        for (const Admission* const one : admissions) {
          require(by_window[{one->edition, one->mark}] += one->cost, amount, "in one window");
        }
        require(most_in(spent, period), 2 * amount, "in one period");
      } else {
        constexpr std::int64_t kDay = std::int64_t{86'400} * 1'000'000;
        require(most_aligned(spent, limit.unit ? kDay : period), amount, "in one window");
      }
      break;
    case Algorithm::sliding_log:
    case Algorithm::sliding_buckets:
      require(most_in(spent, period), amount, "in one period");
      break;
    case Algorithm::sliding_counter:
      require(most_aligned(spent, period), amount, "in one window");
      require(most_in(spent, period), 2 * amount, "in one period");
      break;
    case Algorithm::concurrency: {
      // Slots that were not renewed lapse.
      const Nanos ttl = limit.slot_ttl.value_or(core::kSlotTtlDefault);
      std::vector<std::pair<WorldTime, std::int64_t>> changes;
      for (const Admission* const one : admissions) {
        const WorldTime lapses = one->from + ttl - ttl / 500;
        const WorldTime to = one->is_over ? std::min(one->to, lapses) : lapses;
        if (to <= one->from) continue;
        changes.emplace_back(one->from, one->cost);
        changes.emplace_back(to, -static_cast<std::int64_t>(one->cost));
      }
      std::ranges::sort(changes);
      std::int64_t in_flight = 0;
      for (const auto& [at, change] : changes) require(in_flight += change, amount, "in flight");
      break;
    }
  }
}

// What each process admitted by its share, by its own clocks: the bounds of the algorithms for any
// window, for the share of the amount. A step of its wall clock may begin a window anew.
void Ledger::check_shares() {
  std::map<std::pair<FieldKey, Incarnation>, std::vector<const ByShare*>> all;
  for (const ByShare& one : by_share_) all[{one.field, one.node}].push_back(&one);
  for (const auto& [id, admitted] : all) {
    const auto greatest = std::ranges::max_element(
        admitted, {}, [](const ByShare* one) { return one->limit->limit.amount; });
    const Limit& limit = (*greatest)->limit->limit;
    if (limit.algorithm == Algorithm::concurrency || limit.max_delay) continue;
    const auto nodes = std::int64_t{nodes_};
    const std::int64_t share =
        std::max<std::int64_t>(static_cast<std::int64_t>(limit.amount) / nodes, 1);
    const std::int64_t burst =
        std::max<std::int64_t>(static_cast<std::int64_t>((*greatest)->limit->capacity) / nodes, 1);
    const std::uint32_t node = id.second.node;
    const auto steps = wall_steps_.contains(node) ? wall_steps_.at(node) : 0U;
    const std::int64_t most =
        (core::is_bucket(limit.algorithm) ? burst + share : 2 * share) * (1 + steps);
    std::vector<Spent> spent;
    for (const ByShare* const one : admitted) {
      spent.push_back({one->at.mono.time_since_epoch().count() / 1'000, one->cost});
    }
    std::ranges::sort(spent, {}, &Spent::at);
    const Nanos period = limit.unit ? std::chrono::hours{23} : limit.period;
    const std::int64_t is = most_in(spent, period.count() / 1'000);
    if (is <= most || rules_.at(admitted[0]->rule).resets) continue;
    violated("I1", fmt::format("{}: node {} admitted {} by its share in one period instead of {}",
                               named(id.first, admitted[0]->rule), node, is, most));
  }
}

// ---- what a server holds ------------------------------------------------------------------------

// Of windows that outlast the run, all of it can be compared.
void Ledger::compare_state(Address server, Peek peek, void* context, WallTime wall) {
  const std::uint32_t life = servers_.at(server);
  const std::int64_t now = wall.time_since_epoch().count() / 1'000;
  for (const auto& [field, known] : fields_) {
    const auto& [rule, kept] = known;
    const Limit& limit = kept->limit;
    const bool is_window = limit.algorithm == Algorithm::fixed_window ||
                           limit.algorithm == Algorithm::sliding_log ||
                           limit.algorithm == Algorithm::sliding_buckets ||
                           limit.algorithm == Algorithm::sliding_counter;
    if (!is_window || rules_.at(rule).has_variants || limit.count_rejected) continue;
    const Nanos period = limit.unit ? std::chrono::hours{24} : limit.period;
    if (period < std::chrono::hours{1}) continue;
    // What another life has left behind is not known.
    const auto first = field_lives_.lower_bound({field, 0});
    const auto mine = field_lives_.find({field, life});
    if (mine == field_lives_.end() || (first != mine && !lives_from_empty_[life])) continue;
    const std::int64_t micros = period.count() / 1'000;
    if (mine->second.first_us / micros != now / micros) continue;
    const std::optional<std::uint64_t> left = peek(context, field, *kept);
    if (!left) continue;
    const auto capacity = static_cast<std::int64_t>(kept->capacity);
    const std::int64_t used = capacity - static_cast<std::int64_t>(*left);
    const std::int64_t expected = mine->second.charged - mine->second.refunded;
    ++summary_.fields_compared;
    if (used != expected) {
      violated("I2",
               fmt::format("{}: the server holds {} instead of {} charged less {} refunded",
                           named(field, rule), used, mine->second.charged, mine->second.refunded));
    }
  }
}

}  // namespace sluice::sim
