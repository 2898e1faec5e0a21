#include "rules/rule_checks.h"

#include "base/duration.h"
#include "base/text.h"
#include "identity/path.h"
#include "rules/path_template.h"
#include "rules/words.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/limit_text.h>
#include <sluice/int128.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace sluice::rules {
namespace {

using config::Node;
using config::Reader;

// All limits of a rule, including the limits of its tiers.
template <class Visit>
void for_each_limit(const Rule& rule, Visit visit) {
  for (const RuleLimit& limit : rule.limits) visit(limit);
  if (!rule.tiers) return;
  for (const auto& [tier, limits] : rule.tiers->values) {
    for (const RuleLimit& limit : limits) visit(limit);
  }
}

bool has_limit_of(const Rule& rule, Algorithm algorithm) {
  bool found = false;
  for_each_limit(
      rule, [&](const RuleLimit& limit) { found = found || limit.limit.algorithm == algorithm; });
  return found;
}

// ---- before_auth

void refuse_before_auth(const Node& at, std::string_view what, const ParseContext& context) {
  context.diagnostics.error(
      at, fmt::format("{} is not known before verification", what),
      "leave out before_auth, or use address, country, asn, method, host, path, header, query, "
      "cookie and descriptor only");
}

void check_phase_of_keys(const Rule& rule, const Reader& reader, const ParseContext& context) {
  if (const Node* match = reader.find("match")) {
    for (const std::string_view key : {"tier", "tenant", "attribute", "authenticated"}) {
      if (const Node* node = match->find(key)) {
        refuse_before_auth(*node, fmt::format("'{}'", key), context);
      }
    }
  }
  if (const Node* per = reader.find("per")) {
    for (std::size_t i = 0; i < rule.per.size(); ++i) {
      if (known_before_verification(rule.per[i].kind)) continue;
      const auto items = items_of(*per, context.checked);
      const Node& item = i < items.size() ? *items[i] : *per;
      refuse_before_auth(item, quoted(item.text), context);
    }
  }
  const Node* tiers = reader.find("tiers");
  if (tiers != nullptr && rule.tiers && rule.tiers->by != "client.country" &&
      rule.tiers->by != "client.asn") {
    const Node* by = tiers->find("by");
    refuse_before_auth(by == nullptr ? *tiers : *by, quoted(rule.tiers->by), context);
  }
}

void check_before_auth(const Rule& rule, const Reader& reader, const ParseContext& context) {
  if (!rule.before_auth) return;
  check_phase_of_keys(rule, reader, context);
  const AmountFrom* from = nullptr;  // an amount that needs verification
  for_each_limit(rule, [&](const RuleLimit& limit) {
    if (limit.from && limit.from->kind != AmountFrom::Kind::header) from = &*limit.from;
  });
  if (const Node* limit = reader.find("limit"); limit != nullptr && from != nullptr) {
    refuse_before_auth(*limit,
                       from->kind == AmountFrom::Kind::claim ? "an amount from a claim"
                                                             : "an amount from an attribute",
                       context);
  }
  if (const Node* count = reader.find("count")) {
    context.diagnostics.error(*count, "a rule with before_auth counts every attempt",
                              "leave out 'count' or 'before_auth'");
  }
  if (const Node* action = reader.find("action");
      action != nullptr && rule.action.kind == Action::Kind::queue) {
    context.diagnostics.error(*action, "a rule with before_auth queues no requests",
                              "leave out 'before_auth', or choose another 'action'");
  }
}

// ---- count, cost, block, on_missing

void check_count(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* count = reader.find("count");
  if (count == nullptr || !rule.count) return;
  if (rule.count->after && rule.action.kind == Action::Kind::queue) {
    context.diagnostics.error(*count,
                              "when: after reserves nothing, so that there is no place in a queue",
                              "leave out 'when', or choose another 'action'");
  }
  if (has_limit_of(rule, Algorithm::concurrency)) {
    context.diagnostics.error(*count, "requests in flight are counted before there is a response",
                              "put 'max_concurrent' into a rule of its own, without 'count'");
  }
}

void check_cost_fits(const Node& at, std::uint32_t cost, const Rule& rule,
                     const ParseContext& context) {
  const RuleLimit* smallest = nullptr;
  for_each_limit(rule, [&](const RuleLimit& limit) {
    if (limit.from || core::capacity(limit.limit) >= cost) return;
    if (smallest == nullptr || core::capacity(limit.limit) < core::capacity(smallest->limit)) {
      smallest = &limit;
    }
  });
  if (smallest == nullptr) return;
  const std::uint64_t capacity = core::capacity(smallest->limit);
  context.diagnostics.error(
      at,
      fmt::format("a cost of {} never fits into the limit {} in line {}", cost,
                  core::rate_text(smallest->limit), smallest->place.line),
      core::is_bucket(smallest->limit.algorithm)
          ? fmt::format("use at most {}, or a burst of at least {}", capacity, cost)
          : fmt::format("use at most {}", capacity));
}

void check_cost(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* cost = reader.find("cost");
  if (cost == nullptr) return;
  if (rule.cost.constant > 1) {
    const Node* fallback = cost->find("default");
    check_cost_fits(fallback == nullptr ? *cost : *fallback, rule.cost.constant, rule, context);
  }
  const Node* methods = cost->find("method");
  for (const auto& [method, one] : rule.cost.by_method) {
    if (methods != nullptr) check_cost_fits(*methods, one, rule, context);
  }
}

void check_block(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* block = reader.find("block");
  if (block == nullptr) return;
  if (rule.action.kind == Action::Kind::shadow) {
    context.diagnostics.error(*block,
                              "a shadow rule rejects no request, so that no client is blocked",
                              "leave out 'block', or choose another 'action'");
  } else if (reader.node().find("per") == nullptr) {
    context.diagnostics.warning(*block, "without 'per' a block shuts all clients out",
                                "add what to count per, as in per: ip");
  }
}

// How many requests of one key a limit can queue, at the least cost.
std::uint64_t places_of_one_key(const RuleLimit& limit, const Rule& rule) {
  const bool is_constant = rule.cost.kind == CostRule::Kind::constant;
  const std::uint64_t cost = is_constant ? std::max(rule.cost.constant, 1U) : 1;
  const std::uint64_t amount =
      limit.from ? std::max(limit.limit.amount, limit.from->max) : limit.limit.amount;
  const auto delay = static_cast<std::uint64_t>(rule.action.max_delay.count());
  const auto period = static_cast<std::uint64_t>(limit.limit.period.count());
  return static_cast<std::uint64_t>(Uint128{amount} * delay / period / cost);
}

// Keys of one rule share its queue: a key that may fill it blocks the others.
void check_max_queued(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* action = reader.find("action");
  if (action == nullptr || rule.action.kind != Action::Kind::queue || rule.per.empty()) return;
  std::uint64_t most = 0;
  for_each_limit(rule, [&](const RuleLimit& limit) {
    if (limit.limit.algorithm != Algorithm::leaky_bucket || limit.limit.period <= Nanos{0}) return;
    most = std::max(most, places_of_one_key(limit, rule));
  });
  if (most < rule.action.max_queued) return;
  const Node* queue = action->find("queue");
  const Node* max_queued = queue == nullptr ? nullptr : queue->find("max_queued");
  context.diagnostics.warning(
      max_queued == nullptr ? *action : *max_queued,
      fmt::format("one client can take all {} places of this queue: in {} its limit lets {} wait",
                  rule.action.max_queued, format_duration(rule.action.max_delay), most),
      fmt::format("write a 'max_queued' of several times {}, or a shorter 'max_delay'", most));
}

bool may_be_absent(const Per& per) noexcept {
  return per.kind != Per::Kind::ip && per.kind != Per::Kind::method && per.kind != Per::Kind::path;
}

void check_missing(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* on_missing = reader.find("on_missing");
  if (on_missing == nullptr || std::any_of(rule.per.begin(), rule.per.end(), may_be_absent)) return;
  if (reader.node().find("per") != nullptr && !reader.has("per")) return;  // reported already
  context.diagnostics.warning(
      *on_missing, "'on_missing' has no effect: nothing in 'per' can be absent", "leave it out");
}

// ---- options of limits

void check_count_rejected(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* count_rejected = reader.find("count_rejected");
  if (count_rejected == nullptr || count_rejected->text != "true" || rule.limits.empty()) return;
  bool used = false;
  for_each_limit(rule, [&](const RuleLimit& limit) { used = used || limit.limit.count_rejected; });
  if (used) return;
  context.diagnostics.error(*count_rejected, "concurrency has no use for 'count_rejected'",
                            "leave it out, or choose another algorithm");
}

// Units that a thread leased cannot be distinguished from units of its next request.
void check_thread_leases(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const Node* thread_leases = reader.find("thread_leases");
  if (thread_leases == nullptr || !rule.thread_leases || !rule.count) return;
  context.diagnostics.error(
      *thread_leases,
      "with 'thread_leases' nothing can be given back for requests that do not count",
      "leave out 'thread_leases' or 'count'");
}

// Nodes do not count together yet; the operator has to know that.
void check_sharing(const Rule& rule, const Reader& reader, const ParseContext& context) {
  const bool is_of_one_node =
      rule.sharing.mode == Mode::automatic || rule.sharing.mode == Mode::local;
  for (const std::string_view key : {"mode", "tolerance", "on_failure"}) {
    const bool is_mode = key == "mode";
    const Node* const node = reader.find(key);
    if (node == nullptr || (is_mode && is_of_one_node)) continue;
    context.diagnostics.warning(
        *node,
        fmt::format("rule '{}': '{}' has no effect: several nodes cannot share a limit yet, each "
                    "counts for itself",
                    rule.name, key),
        is_mode ? "leave it out, or write mode: local" : "leave it out");
  }
}

}  // namespace

void check_rule(const Rule& rule, const Reader& reader, const ParseContext& context) {
  check_before_auth(rule, reader, context);
  check_count(rule, reader, context);
  check_cost(rule, reader, context);
  check_block(rule, reader, context);
  check_max_queued(rule, reader, context);
  check_missing(rule, reader, context);
  check_count_rejected(rule, reader, context);
  check_thread_leases(rule, reader, context);
  check_sharing(rule, reader, context);
}

namespace {

constexpr std::size_t kChecksMax = 32;  // of one request, in the engine

// The most limits that one rule can apply to a request.
std::size_t limits_of(const Rule& rule) {
  std::size_t most = rule.limits.size();
  if (!rule.tiers) return most;
  for (const auto& [tier, limits] : rule.tiers->values) most = std::max(most, limits.size());
  return most;
}

// A request without the value has one limit less.
bool may_be_skipped(const Rule& rule) {
  return rule.on_missing == OnMissing::skip && std::ranges::any_of(rule.per, may_be_absent);
}

// Rules that match the same requests as far as their texts show: all requests, or all of one path.
// A request with more limits than allowed is rejected; shadow rules are skipped instead.
void check_number(const std::vector<WrittenRule>& rules, const ParseContext& context) {
  std::unordered_map<std::string, std::size_t> checks;
  const auto counts_alone = [](const Match& match) {
    return match.methods.empty() && match.hosts.empty() && match.headers.empty() &&
           match.query.empty() && match.cookies.empty() && match.addresses.empty() &&
           match.countries.empty() && match.asns.empty() && match.tiers.empty() &&
           match.tenants.empty() && match.attributes.empty() && !match.authenticated &&
           match.descriptor.empty();
  };
  for (const auto& [rule, node] : rules) {
    if (!rule->group.empty() || may_be_skipped(*rule) || !counts_alone(rule->match)) continue;
    const bool shadow = rule->action.kind == Action::Kind::shadow;
    const std::string path = rule->match.paths.empty() ? "" : rule->match.paths.front();
    std::size_t& before = checks[rule->domain + (shadow ? " shadow " : " ") + path];
    const std::size_t after = before + limits_of(*rule);
    if (before <= kChecksMax && after > kChecksMax) {
      context.diagnostics.warning(
          *node,
          shadow ? fmt::format("with this rule, one request meets more than {} limits of shadow "
                               "rules, and the last rules are not told of it",
                               kChecksMax)
                 : fmt::format("with this rule, one request meets more than {} limits and is shed "
                               "with 503",
                               kChecksMax),
          "merge rules, or put rules that need not apply together into a group");
    }
    before = after;
  }
}

}  // namespace

void check_rules_together(const std::vector<WrittenRule>& rules, const ParseContext& context) {
  check_number(rules, context);
  std::unordered_map<std::string, std::uint32_t> lines;  // of names
  std::unordered_map<std::string, const Rule*> groups;
  for (const auto& [rule, node] : rules) {
    const std::string scope = std::to_string(rule->domain.size()) + rule->domain;
    const Node* name = node->find("name");
    if (!rule->name.empty() && name != nullptr) {
      const auto [first, is_new] = lines.emplace(scope + rule->name, name->place().line);
      if (!is_new) {
        context.diagnostics.error(*name,
                                  fmt::format("the name {} is taken by the rule in line {}",
                                              quoted(rule->name), first->second),
                                  "give each rule of a domain a name of its own");
      }
    }
    const Node* group = node->find("group");
    if (rule->group.empty() || group == nullptr) continue;
    const auto [first, is_new] = groups.emplace(scope + rule->group, rule);
    if (!is_new && first->second->before_auth != rule->before_auth) {
      context.diagnostics.error(
          *group,
          fmt::format("the group {} has rules before and after verification, which cannot compete",
                      quoted(rule->group)),
          "give all rules of a group the same before_auth");
    }
  }
}

void check_case(const std::vector<WrittenRule>& rules, const IgnoringHosts& ignore,
                const ParseContext& context) {
  for (const auto& [rule, node] : rules) {
    for (const std::string& path : rule->match.paths) {
      if (!ignore.makes_unclear(path, rule->match.hosts)) continue;
      const Node* const match = node->find("match");
      context.diagnostics.error(
          match != nullptr ? *match : *node,
          fmt::format("the path {} has capitals, and some hosts ignore case", quoted(path)),
          "write it in lower case, or name hosts in 'match' that all do, or all do not");
    }
  }
}

void check_parameters(const std::vector<WrittenRule>& rules, const IgnoringHosts& ignore,
                      const ParseContext& context) {
  for (const auto& [rule, node] : rules) {
    for (const std::string& path : rule->match.paths) {
      if (path.find(';') == std::string::npos) continue;
      if (!ignore.holds_for_some(rule->match.hosts)) continue;
      const Node* const match = node->find("match");
      context.diagnostics.error(
          match != nullptr ? *match : *node,
          fmt::format("the path {} has a parameter, and hosts ignore those", quoted(path)),
          "leave out what stands behind the semicolon, or name hosts in 'match' that heed it");
    }
  }
}

void check_escaped_slashes(const std::vector<WrittenRule>& rules, const SlashesByHost& slashes,
                           const ParseContext& context) {
  for (const auto& [rule, node] : rules) {
    for (const std::string& path : rule->match.paths) {
      if (!identity::has_escaped_slash(path)) continue;
      if (slashes.are_kept_on_all(rule->match.hosts)) continue;
      const Node* const match = node->find("match");
      context.diagnostics.error(
          match != nullptr ? *match : *node,
          fmt::format("the path {} has an escaped slash, and hosts do not keep those",
                      quoted(path)),
          "write a plain slash, or set escaped_slashes: keep for the hosts that 'match' names");
    }
  }
}

// The root alone is intended if the rule has other paths, or if another rule has all paths.
void check_prefixes(const std::vector<WrittenRule>& rules, const ParseContext& context) {
  const bool has_all = std::ranges::any_of(rules, [](const WrittenRule& one) {
    return std::ranges::find(one.rule->match.paths, "/**") != one.rule->match.paths.end();
  });
  for (const auto& [rule, node] : rules) {
    const Node* const match = node->find("match");
    const Node* const paths = match != nullptr && match->is_map() ? match->find("path") : nullptr;
    if (paths == nullptr) continue;
    for (const Node* path : items_of(*paths, context.checked)) {
      const std::string remedy = prefix_remedy(path->text);
      if (remedy.empty()) continue;
      if (path->text == "/" && (has_all || rule->match.paths.size() > 1)) continue;
      context.diagnostics.warning(
          *path,
          fmt::format("the path {} is this one path, not all that begin so", quoted(path->text)),
          remedy);
    }
  }
}

}  // namespace sluice::rules
