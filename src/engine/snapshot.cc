#include "engine/snapshot.h"

#include "base/text.h"
#include "rules/parse_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace sluice::engine {
namespace {

KeyDigest& add(KeyDigest& digest, KeyPart part, std::string_view text) noexcept {
  return digest.add(static_cast<std::uint8_t>(part), text);
}

// A rule whose counts restart when it is edited gets other keys then: all its amounts are in them.
// So a client that changes its tier keeps its counts; a client of an edited rule does not.
std::string edition_of(const rules::Rule& rule) {
  std::string edition;
  const auto add_all = [&](std::span<const rules::RuleLimit> limits) {
    for (const rules::RuleLimit& limit : limits) {
      edition += fmt::format("{}/{},", limit.limit.amount, limit.limit.burst.value_or(0));
    }
  };
  add_all(rule.limits);
  if (!rule.tiers) return edition;
  for (const auto& [tier, limits] : rule.tiers->values) {
    edition += tier + ":";
    add_all(limits);
  }
  return edition;
}

constexpr std::string_view kClaim = "claim.";
constexpr std::string_view kAttribute = "attribute.";

TierBy tier_by(std::string_view by) noexcept {
  if (by == "client.tier") return TierBy::tier;
  if (by == "client.tenant") return TierBy::tenant;
  if (by == "client.country") return TierBy::country;
  if (by == "client.asn") return TierBy::asn;
  if (by == "client.authenticated") return TierBy::authenticated;
  return by.starts_with(kAttribute) ? TierBy::attribute : TierBy::claim;
}

// Under `proportional` the table converts counts of another limit, unless it was an override's. It
// cannot tell an edited limit from another tier's, so rules with tiers keep the usage.
OnChange change_of(const rules::Rule& rule) noexcept {
  const auto brought = [](const rules::RuleLimit& limit) { return limit.from.has_value(); };
  const bool varies = rule.tiers || std::ranges::any_of(rule.limits, brought);
  return rule.on_change == OnChange::proportional && !varies ? OnChange::proportional
                                                             : OnChange::keep;
}

// Rules before authentication protect this node from the cost of verifying: they count here.
Sharing sharing_of(const rules::Rule& rule) noexcept {
  return rule.before_auth ? Sharing{} : rule.sharing;
}

}  // namespace

std::span<const PlannedLimit> Plan::limits_for(std::string_view tier) const noexcept {
  const auto found =
      std::ranges::find(tiers, tier, [](const auto& one) -> std::string_view { return one.first; });
  return found == tiers.end() ? std::span<const PlannedLimit>{limits} : found->second;
}

Snapshot::Snapshot(std::shared_ptr<const rules::RuleSet> rules, std::vector<Override> overrides,
                   store::Limits& registry)
    : registry_(registry), rules_(std::move(rules)), overrides_(std::move(overrides)) {}

Snapshot::~Snapshot() {
  for (const store::LimitNumber number : used_) registry_.stop_using(number);
}

Parsed<std::shared_ptr<const Snapshot>> Snapshot::make(std::shared_ptr<const rules::RuleSet> rules,
                                                       std::vector<Override> overrides,
                                                       store::Limits& registry, Now now,
                                                       const Snapshot* before) {
  std::shared_ptr<Snapshot> snapshot{
      new Snapshot{std::move(rules), std::move(overrides), registry}};
  Parsed<void> planned = snapshot->plan_all(now);
  if (planned) planned = snapshot->plan_overrides(now);
  if (!planned) return tl::unexpected(std::move(planned.error()));
  if (before != nullptr) snapshot->keep_queues_of(*before);
  return snapshot;
}

// A rule that keeps its name keeps its queued count, whatever else was edited.
void Snapshot::keep_queues_of(const Snapshot& before) noexcept {
  for (Plan& plan : plans_) {
    if (plan.held == nullptr) continue;
    const auto found = before.rules().find(plan.rule->name, plan.rule->domain);
    if (found && before.plan(*found).held != nullptr) plan.held = before.plan(*found).held;
  }
}

Parsed<void> Snapshot::plan_all(Now now) {
  plans_.reserve(rules_->rules().size());
  for (const rules::Rule& rule : rules_->rules()) {
    Parsed<Plan> plan = planned(rule, now);
    if (!plan) return tl::unexpected(std::move(plan.error()));
    has_blocks_ |= plan->block.has_value();
    plans_.push_back(*std::move(plan));
  }
  return {};
}

// Until the cluster's secret is known, the store decides shared rules by their `on_failure`, and
// this node's keys do.
DigestSecret Snapshot::secret_for(bool is_shared) const noexcept {
  const std::optional<DigestSecret> shared =
      is_shared ? registry_.shared_secret() : std::optional<DigestSecret>{};
  return shared.value_or(registry_.secret());
}

Parsed<Plan> Snapshot::planned(const rules::Rule& rule, Now now) {
  const Sharing sharing = sharing_of(rule);
  const bool is_shared = !registry_.is_local(sharing);
  KeyDigest prefix{secret_for(is_shared)};
  add(add(prefix, KeyPart::domain, rule.domain), KeyPart::rule, rule.name);
  Plan plan{.rule = &rule,
            .sharing = sharing,
            .is_shared = is_shared,
            .change = change_of(rule),
            .prefix = prefix};
  if (rule.per.size() == 1) {
    plan.hasher.emplace(prefix, static_cast<std::uint8_t>(rule.per[0].kind));
  }
  Parsed<std::vector<PlannedLimit>> limits = planned(rule, sharing, rule.limits, now);
  if (!limits) return tl::unexpected(std::move(limits.error()));
  plan.limits = *std::move(limits);
  if (rule.tiers) {
    plan.tier_by = tier_by(rule.tiers->by);
    if (plan.tier_by == TierBy::claim) plan.tier_name = rule.tiers->by.substr(kClaim.size());
    if (plan.tier_by == TierBy::attribute) {
      plan.tier_name = rule.tiers->by.substr(kAttribute.size());
    }
    for (const auto& [tier, written] : rule.tiers->values) {
      Parsed<std::vector<PlannedLimit>> own = planned(rule, sharing, written, now);
      if (!own) return tl::unexpected(std::move(own.error()));
      plan.tiers.emplace_back(tier, *std::move(own));
    }
  }
  Parsed<std::optional<PlannedBlock>> block = planned_block(rule, now);
  if (!block) return tl::unexpected(std::move(block.error()));
  plan.block = *block;
  plan.blocks_early = rules::blocks_early(rule);
  if (rule.count && rule.count->header) plan.count_header.emplace(rule.count->header->value);
  if (rule.action.kind == rules::Action::Kind::queue) {
    plan.held = std::make_shared<std::atomic<std::uint32_t>>(0);
  }
  return plan;
}

Parsed<std::vector<PlannedLimit>> Snapshot::planned(const rules::Rule& rule, const Sharing& sharing,
                                                    std::span<const rules::RuleLimit> limits,
                                                    Now now) {
  std::vector<PlannedLimit> all;
  for (const rules::RuleLimit& limit : limits) {
    Parsed<PlannedLimit> one =
        planned(rule, limit.limit, sharing, rules::limit_identity(limit), now);
    if (!one) return tl::unexpected(std::move(one.error()));
    one->written = &limit;
    all.push_back(*one);
  }
  return all;
}

Parsed<PlannedLimit> Snapshot::planned(const rules::Rule& rule, const Limit& limit,
                                       const Sharing& sharing, std::string_view identity, Now now) {
  Parsed<store::LimitNumber> number = used(rule, limit, sharing, now);
  if (!number) return tl::unexpected(std::move(number.error()));
  KeyDigest salt{secret_for(store::is_shared(*number))};
  add(salt, KeyPart::limit, identity);
  if (rule.on_change == OnChange::reset) add(salt, KeyPart::edition, edition_of(rule));
  return PlannedLimit{
      .number = *number, .index = limits_++, .salt = salt.finish().low, .written = nullptr};
}

Parsed<store::LimitNumber> Snapshot::used(const rules::Rule& rule, const Limit& limit,
                                          const Sharing& sharing, Now now) {
  Parsed<store::LimitNumber> number = registry_.use(limit, sharing, now);
  if (!number) {
    return mistake(fmt::format("rule '{}': {}", rule.name, number.error().message),
                   number.error().remedy);
  }
  used_.push_back(*number);
  return number;
}

Parsed<std::optional<PlannedBlock>> Snapshot::planned_block(const rules::Rule& rule, Now now) {
  if (!rule.block) return std::nullopt;
  const auto count = [&](std::uint64_t amount) {
    return Limit{.algorithm = Algorithm::fixed_window,
                 .amount = amount,
                 .period = rule.block->duration,
                 .align = Align::first_request};
  };
  Parsed<PlannedLimit> refusals =
      planned(rule, count(rule.block->threshold), Sharing{}, "block:refusals", now);
  if (!refusals) return tl::unexpected(std::move(refusals.error()));
  Parsed<PlannedLimit> block = planned(rule, count(1), Sharing{}, "block", now);
  if (!block) return tl::unexpected(std::move(block.error()));
  return PlannedBlock{.refusals = *refusals, .block = *block};
}

// ---- overrides --------------------------------------------------------------------------------

Parsed<void> Snapshot::plan_overrides(Now now) {
  for (std::uint32_t i = 0; i < overrides_.size(); ++i) {
    const Override& one = overrides_[i];
    overridden_.add(one.subject, i);
    for (Plan& plan : plans_) {
      if (!is_per(*plan.rule, one.subject.kind)) continue;
      Parsed<void> planned = plan_override(one.permille, plan, plan.limits, now);
      for (std::size_t t = 0; planned && t < plan.tiers.size(); ++t) {
        planned = plan_override(one.permille, plan, plan.tiers[t].second, now);
      }
      if (!planned) {
        return mistake(fmt::format("override {} (multiplier {}): {}", one.subject.written(),
                                   format_thousandths(one.permille), planned.error().message),
                       "choose a smaller multiplier");
      }
    }
  }
  return {};
}

Parsed<void> Snapshot::plan_override(std::uint32_t permille, const Plan& plan,
                                     std::span<const PlannedLimit> limits, Now now) {
  constexpr auto kNone = std::numeric_limits<store::LimitNumber>::max();
  std::vector<store::LimitNumber>& numbers = multiplied_[permille];
  numbers.resize(limits_, kNone);
  for (const PlannedLimit& limit : limits) {
    if (numbers[limit.index] != kNone) continue;  // by another override with the same multiplier
    Parsed<store::LimitNumber> number =
        used(*plan.rule, multiplied(limit.written->limit, permille), plan.sharing, now);
    if (!number) return tl::unexpected(std::move(number.error()));
    numbers[limit.index] = *number;
  }
  return {};
}

const Override* Snapshot::override_for(const rules::Rule& rule, const identity::Identity& client,
                                       WallTime now) const noexcept {
  const Override* found = nullptr;
  const auto holds = [&](std::uint32_t number) {
    if (!overrides_[number].holds(now)) return false;
    found = &overrides_[number];
    return true;
  };
  for (const rules::Per& per : rule.per) {
    const bool is_found = per.kind == rules::Per::Kind::user
                              ? overridden_.find(Subject::Kind::user, client.user, holds)
                          : per.kind == rules::Per::Kind::api_key
                              ? overridden_.find(Subject::Kind::api_key, client.api_key, holds)
                          : per.kind == rules::Per::Kind::tenant
                              ? overridden_.find(Subject::Kind::tenant, client.tenant, holds)
                          : per.kind == rules::Per::Kind::ip
                              ? overridden_.find(client.address, holds)
                              : false;
    if (is_found) break;
  }
  return found;
}

store::LimitNumber Snapshot::number(const PlannedLimit& limit,
                                    const Override& changed) const noexcept {
  return (*multiplied_.find(changed.permille))[limit.index];
}

}  // namespace sluice::engine
