#include "sim/drawn.h"

#include <sluice/core/compiled_limit.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using rules::Per;
using rules::Rule;
using rules::RuleLimit;

constexpr std::uint32_t percent(std::uint32_t of_hundred) { return of_hundred * 10'000; }

// Kinds of limits that can be shared; a queue is a kind of its own here.
enum class Kind : std::uint8_t {
  bucket,
  gcra,
  leaky,
  interval,
  window,
  long_window,
  calendar,
  first_request,
  log,
  counter,
  buckets,
  concurrency,
  kinds
};

Limit draw_limit(Stream& stream, Kind kind) {
  constexpr std::array<Nanos, 7> kPeriods{200ms, 500ms, 700ms, 1s, 2s, 5s, 1h};
  Limit limit;
  limit.amount = static_cast<std::uint64_t>(stream.between(3, 60));
  limit.period = kPeriods[stream.below(kPeriods.size())];
  switch (kind) {
    case Kind::bucket: limit.algorithm = Algorithm::token_bucket; break;
    case Kind::gcra: limit.algorithm = Algorithm::gcra; break;
    case Kind::leaky: limit.algorithm = Algorithm::leaky_bucket; break;
    case Kind::interval:
      limit.algorithm = Algorithm::token_bucket;
      limit.refill = Refill::interval;
      break;
    case Kind::window: limit.algorithm = Algorithm::fixed_window; break;
    case Kind::long_window:
      limit.algorithm = Algorithm::fixed_window;
      limit.period = 1h;
      limit.amount *= 5;
      break;
    case Kind::calendar:
      limit.algorithm = Algorithm::fixed_window;
      limit.align = Align::calendar;
      limit.unit = stream.happens(percent(50)) ? CalendarUnit::day : CalendarUnit::month;
      limit.period = 0s;
      limit.amount *= 5;
      break;
    case Kind::first_request:
      limit.algorithm = Algorithm::fixed_window;
      limit.align = Align::first_request;
      break;
    case Kind::log: limit.algorithm = Algorithm::sliding_log; break;
    case Kind::counter: limit.algorithm = Algorithm::sliding_counter; break;
    case Kind::buckets: limit.algorithm = Algorithm::sliding_buckets; break;
    case Kind::concurrency:
    case Kind::kinds:
      limit.algorithm = Algorithm::concurrency;
      limit.period = 0s;
      limit.amount = static_cast<std::uint64_t>(stream.between(2, 12));
      limit.slot_ttl = std::array<Nanos, 3>{500ms, 1s, 3s}[stream.below(3)];
      break;
  }
  if (core::is_bucket(limit.algorithm) && stream.happens(percent(50))) {
    limit.burst = static_cast<std::uint64_t>(stream.between(1, 80));
  }
  return limit;
}

std::vector<RuleLimit> draw_limits(Stream& stream, bool is_only_probed) {
  std::vector<RuleLimit> limits;
  const std::uint64_t count = 1 + stream.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto kind = static_cast<Kind>(stream.below(static_cast<std::uint64_t>(Kind::kinds)));
    if (is_only_probed && kind == Kind::concurrency) kind = Kind::window;
    // Each has a name: the counters of a rule are told apart by it.
    limits.push_back({.limit = draw_limit(stream, kind), .name = fmt::format("limit-{}", i)});
  }
  return limits;
}

void multiply(std::vector<RuleLimit>& limits, std::uint64_t by) {
  for (RuleLimit& limit : limits) {
    limit.limit.amount *= by;
    if (limit.limit.burst) *limit.limit.burst *= by;
  }
}

Rule draw_rule(Stream& stream, std::size_t number, RuleTraits& traits) {
  Rule rule;
  rule.name = fmt::format("rule-{}", number);
  traits.name = rule.name;
  const std::uint64_t per = stream.below(10);
  if (per < 6) {
    rule.per = {{.kind = Per::Kind::user}};
  } else if (per < 9) {
    rule.per = {{.kind = Per::Kind::tenant}};
  }
  if (stream.happens(percent(35))) rule.match.paths = {"/a/**"};
  rule.sharing.mode = stream.happens(percent(20)) ? Mode::local : Mode::exact;
  const std::uint64_t policy = stream.below(10);
  rule.sharing.on_failure = policy < 6   ? OnFailure::share
                            : policy < 8 ? OnFailure::closed
                                         : OnFailure::open;
  // Has no meaning for exact limits: the ledger finds the rule by it.
  rule.sharing.tolerance_permille = static_cast<std::uint32_t>(number);

  if (stream.happens(percent(30))) {
    rule.count = rules::Count{.statuses = {{400, 499}}};
    if (stream.happens(percent(70))) rule.count->statuses = {{200, 399}};
    rule.count->after = stream.happens(percent(25));
    traits.is_only_probed = rule.count->after;
  }
  rule.limits = draw_limits(stream, traits.is_only_probed);
  if (stream.happens(percent(25))) {
    rule.cost = {.kind = rules::CostRule::Kind::header, .name = "x-cost", .max = 4};
  }
  const bool may_change = !std::ranges::any_of(rule.limits, [](const RuleLimit& limit) {
    return limit.limit.algorithm == Algorithm::concurrency;
  });
  if (stream.happens(percent(15))) {
    rule.action.kind = rules::Action::Kind::shadow;
  } else if (stream.happens(percent(12)) && !rule.count) {
    // The only kind of limit that can queue.
    rule.action.kind = rules::Action::Kind::queue;
    rule.action.max_delay = 300ms;
    for (RuleLimit& limit : rule.limits) {
      limit.limit = {.algorithm = Algorithm::leaky_bucket,
                     .amount = limit.limit.amount,
                     .period = std::max<Nanos>(limit.limit.period, 500ms),
                     .max_delay = 300ms};
    }
  } else if (stream.happens(percent(12)) && may_change && !rule.count) {
    for (RuleLimit& limit : rule.limits) limit.limit.count_rejected = true;
  }
  const bool is_plain = rule.limits[0].limit.max_delay == std::nullopt &&
                        !rule.limits[0].limit.count_rejected && may_change;
  if (is_plain && stream.happens(percent(20))) {
    traits.has_variants = true;
    std::vector<RuleLimit> paid = rule.limits;
    multiply(paid, 2);
    rule.tiers = rules::Tiers{.by = "client.tier", .values = {{"paid", std::move(paid)}}};
  }
  return rule;
}

// Two rules with one limit under the same terms would be one limit to the registry, but for their
// tolerance: that is why each has its own.
std::vector<Rule> edited(Stream& stream, std::vector<Rule> rules, std::vector<RuleTraits>& traits) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const bool is_plain = !rules[i].tiers && !rules[i].limits[0].limit.count_rejected &&
                          !rules[i].limits[0].limit.max_delay;
    const bool draws = stream.happens(percent(40));
    const bool grows = stream.happens(percent(50));
    if (!is_plain || !draws) continue;
    traits[i].has_variants = true;
    traits[i].resets = rules[i].on_change != OnChange::keep;
    for (RuleLimit& limit : rules[i].limits) {
      const std::uint64_t amount = limit.limit.amount;
      limit.limit.amount = grows ? amount * 2 : std::max<std::uint64_t>(amount / 2, 1);
    }
  }
  return rules;
}

}  // namespace

DrawnRules draw_rules(Stream& stream) {
  DrawnRules drawn;
  std::vector<Rule> all;
  const std::uint64_t count = 4 + stream.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    all.push_back(draw_rule(stream, i, drawn.traits.emplace_back()));
    const std::uint64_t change = stream.below(10);
    all.back().on_change = change < 6   ? OnChange::keep
                           : change < 8 ? OnChange::proportional
                                        : OnChange::reset;
  }
  drawn.editions.push_back(all);
  if (stream.happens(percent(40))) {
    drawn.editions.push_back(edited(stream, std::move(all), drawn.traits));
  }
  if (stream.happens(percent(30))) {
    drawn.overrides.push_back(
        {.subject = {.kind = engine::Subject::Kind::user, .range = {}, .text = "user-0"},
         .permille = 2'000,
         .expires = std::nullopt,
         .note = {}});
    for (RuleTraits& traits : drawn.traits) traits.has_variants = true;
  }
  return drawn;
}

std::vector<std::string> described(const DrawnRules& drawn) {
  std::vector<std::string> lines;
  for (const Rule& rule : drawn.editions[0]) {
    std::string line =
        fmt::format("{}: {}, on_failure {}, on_change {}{}{}{}{}", rule.name,
                    rule.sharing.mode == Mode::local ? "local" : "exact",
                    static_cast<int>(rule.sharing.on_failure), to_string(rule.on_change),
                    rule.action.kind == rules::Action::Kind::shadow ? ", shadow" : "",
                    rule.tiers ? ", tiers" : "", rule.match.paths.empty() ? "" : ", path /a",
                    !rule.count         ? ""
                    : rule.count->after ? ", count after"
                                        : ", count");
    for (const RuleLimit& limit : rule.limits) {
      const Limit& of = limit.limit;
      line += fmt::format("; {} {}/{} ms", to_string(of.algorithm), of.amount,
                          Nanos{of.period}.count() / 1'000'000);
      if (of.burst) line += fmt::format(" burst {}", *of.burst);
      if (of.max_delay) line += " queue";
      if (of.count_rejected) line += " count_rejected";
      if (of.slot_ttl) line += fmt::format(" ttl {} ms", of.slot_ttl->count() / 1'000'000);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

DrawnRequest draw_request(Stream& stream) {
  constexpr std::uint64_t kUsers = 40;
  DrawnRequest request;
  // The cube of a uniform number: a third of the users send two thirds of the requests.
  const std::uint64_t drawn = stream.below(1'000);
  const std::uint64_t user = drawn * drawn * drawn / 1'000'000 * kUsers / 1'000;
  request.user = fmt::format("user-{}", user);
  request.tenant = fmt::format("tenant-{}", user % 4);
  request.tier = user % 3 == 1 ? "paid" : "free";
  request.path = stream.happens(percent(50)) ? "/a/x" : "/b";
  request.cost = std::to_string(1 + stream.below(4));
  request.takes = 1ms + stream.time_below(40ms);
  if (stream.happens(percent(10))) request.takes += stream.time_below(1500ms);
  request.status = stream.happens(percent(40)) ? 404 : 200;
  const auto corrected = static_cast<std::uint32_t>(stream.between(1, 5));
  if (stream.happens(percent(10))) request.corrected_cost = corrected;
  const Nanos leaves = 1ms + stream.time_below(15ms);
  if (stream.happens(percent(5))) request.leaves_after = leaves;
  request.is_cut_off = stream.happens(percent(5));
  return request;
}

DrawnRequest fresh_request(std::uint64_t number) {
  DrawnRequest request;
  request.user = fmt::format("fresh-{}", number);
  request.tenant = request.user;
  request.tier = "free";
  request.path = "/a/x";
  request.cost = "1";
  request.takes = 1ms;
  return request;
}

}  // namespace sluice::sim
