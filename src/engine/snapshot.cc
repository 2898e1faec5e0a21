#include "engine/snapshot.h"

#include "rules/parse_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::engine {
namespace {

KeyDigest& add(KeyDigest& digest, KeyPart part, std::string_view text) noexcept {
  return digest.add(static_cast<std::uint8_t>(part), text);
}

}  // namespace

std::span<const PlannedLimit> Plan::limits_for(std::string_view tier) const noexcept {
  if (tiers.empty()) return limits;
  const auto found =
      std::ranges::find(tiers, tier, [](const auto& one) -> std::string_view { return one.first; });
  return found == tiers.end() ? std::span<const PlannedLimit>{limits} : found->second;
}

Snapshot::Snapshot(rules::RuleList list, store::Store& store)
    : store_(store), rules_(std::move(list)) {}

Snapshot::~Snapshot() {
  for (const store::LimitNumber number : used_) store_.stop_using(number);
}

Parsed<std::shared_ptr<const Snapshot>> Snapshot::make(rules::RuleList list, store::Store& store,
                                                       Now now) {
  const std::shared_ptr<Snapshot> snapshot{new Snapshot{std::move(list), store}};
  Parsed<void> planned = snapshot->plan_all(now);
  if (!planned) return tl::unexpected(std::move(planned.error()));
  return snapshot;
}

Parsed<void> Snapshot::plan_all(Now now) {
  const DigestSecret secret = store_.secret();
  for (const rules::Rule& rule : rules_.rules()) {
    KeyDigest prefix{secret};
    add(add(prefix, KeyPart::domain, rule.domain), KeyPart::rule, rule.name);
    Plan plan{.rule = &rule, .prefix = prefix};
    if (rule.per.size() == 1) {
      plan.hasher.emplace(prefix, static_cast<std::uint8_t>(rule.per[0].kind));
    }
    Parsed<std::vector<PlannedLimit>> limits = planned(rule, rule.limits, now);
    if (!limits) return tl::unexpected(std::move(limits.error()));
    plan.limits = *std::move(limits);
    if (rule.tiers) {
      for (const auto& [tier, written] : rule.tiers->values) {
        Parsed<std::vector<PlannedLimit>> own = planned(rule, written, now);
        if (!own) return tl::unexpected(std::move(own.error()));
        plan.tiers.emplace_back(tier, *std::move(own));
      }
    }
    Parsed<std::optional<PlannedBlock>> block = planned_block(rule, now);
    if (!block) return tl::unexpected(std::move(block.error()));
    plan.block = *block;
    plans_.push_back(std::move(plan));
  }
  return {};
}

Parsed<std::vector<PlannedLimit>> Snapshot::planned(const rules::Rule& rule,
                                                    std::span<const rules::RuleLimit> limits,
                                                    Now now) {
  std::vector<PlannedLimit> all;
  for (const rules::RuleLimit& limit : limits) {
    Parsed<PlannedLimit> one = planned(rule, limit.limit, rules::limit_identity(limit), now);
    if (!one) return tl::unexpected(std::move(one.error()));
    one->written = &limit;
    all.push_back(*one);
  }
  return all;
}

Parsed<PlannedLimit> Snapshot::planned(const rules::Rule& rule, const Limit& limit,
                                       std::string_view identity, Now now) {
  Parsed<store::LimitNumber> number = store_.use(limit, now);
  if (!number) {
    return mistake(fmt::format("rule '{}': {}", rule.name, number.error().message),
                   number.error().remedy);
  }
  used_.push_back(*number);
  KeyDigest salt{store_.secret()};
  add(salt, KeyPart::limit, identity);
  return PlannedLimit{.number = *number, .salt = salt.finish().low, .written = nullptr};
}

Parsed<std::optional<PlannedBlock>> Snapshot::planned_block(const rules::Rule& rule, Now now) {
  if (!rule.block) return std::nullopt;
  const auto count = [&](std::uint64_t amount) {
    return Limit{.algorithm = Algorithm::fixed_window,
                 .amount = amount,
                 .period = rule.block->lasts,
                 .align = Align::first_request};
  };
  Parsed<PlannedLimit> refusals = planned(rule, count(rule.block->after), "block:refusals", now);
  if (!refusals) return tl::unexpected(std::move(refusals.error()));
  Parsed<PlannedLimit> block = planned(rule, count(1), "block", now);
  if (!block) return tl::unexpected(std::move(block.error()));
  return PlannedBlock{.refusals = *refusals, .block = *block};
}

}  // namespace sluice::engine
