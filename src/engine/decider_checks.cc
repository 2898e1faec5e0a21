// From the rules that match a request to checks in the store.
#include "base/characters.h"
#include "engine/decider.h"
#include "engine/http_statuses.h"
#include "engine/key.h"
#include "engine/stated_number.h"

#include <algorithm>
#include <charconv>

namespace sluice::engine {
namespace {

using rules::Rule;

bool is_shadow(const Rule& rule) noexcept {
  return rule.action.kind == rules::Action::Kind::shadow;
}

std::string_view found_in(const identity::Attributes* all, std::string_view name) noexcept {
  return all != nullptr ? all->find(name) : std::string_view{};
}

// Only authenticated values choose a limit. The network provides the address.
std::string_view tier_of(const Plan& plan, const identity::Identity& client,
                         std::array<char, 16>& scratch) noexcept {
  switch (plan.tier_by) {
    case TierBy::none: return {};
    case TierBy::tier: return client.tier;
    case TierBy::tenant: return client.tenant;
    case TierBy::country: return client.country;
    case TierBy::authenticated: return client.authenticated() ? "true" : "false";
    case TierBy::asn: {
      const auto end = std::to_chars(scratch.data(), scratch.data() + scratch.size(), client.asn);
      return {scratch.data(), static_cast<std::size_t>(end.ptr - scratch.data())};
    }
    case TierBy::claim: return found_in(client.claims, plan.tier_name);
    case TierBy::attribute: return found_in(client.attributes, plan.tier_name);
  }
  return {};
}

// The amount in the lines of a header. If they disagree, one may be the client's own: then the
// smallest of them applies, or the written amount if smaller, so that another line never raises it.
// An invalid amount stands for the written one.
std::uint64_t amount_in_headers(const rules::AmountFrom& from, std::uint64_t written,
                                const RequestView& request) noexcept {
  std::optional<std::uint64_t> least;
  std::uint64_t most = 0;
  for (const HeaderView& line : request.headers) {
    if (!reads_as(line.name, from.name)) continue;
    each_element(line.value, [&](std::string_view text) {
      const std::uint64_t said = stated_number(text).value_or(0);
      const std::uint64_t amount = said == 0 ? written : std::min(said, from.max);
      least = std::min(least.value_or(amount), amount);
      most = std::max(most, amount);
    });
  }
  if (!least) return written;
  return *least == most ? most : std::min(*least, written);
}

// The amount of a request; the written one if it has no usable amount. A header counts only from a
// trusted peer: any other client would set its own limit.
std::uint64_t amount_of(const rules::RuleLimit& limit, const rules::Asked& asked) noexcept {
  const rules::AmountFrom& from = *limit.from;
  const std::uint64_t written = limit.limit.amount;
  std::string_view text;
  switch (from.kind) {
    case rules::AmountFrom::Kind::claim: text = found_in(asked.client.claims, from.name); break;
    case rules::AmountFrom::Kind::attribute:
      text = found_in(asked.client.attributes, from.name);
      break;
    case rules::AmountFrom::Kind::header:
      return asked.client.through_trusted ? amount_in_headers(from, written, asked.request)
                                          : written;
  }
  const std::optional<std::uint64_t> amount = stated_number(text);
  if (!amount || *amount == 0) return written;
  return std::min(*amount, from.max);
}

}  // namespace

// False: the request is decided.
bool Decider::resolve(Op& op, const rules::Asked& asked, const rules::Matches& matches) noexcept {
  counters_.shadow_checks_skipped += matches.shadow_checks_skipped;
  if (matches.too_many) {
    finish(op, Action::reject, Reason::too_many_rules, kUnavailable);
    return false;
  }
  for (const rules::Matched& matched : matches.span()) {
    switch (resolve_rule(op, asked, matched)) {
      case Resolved::ready: break;
      case Resolved::missing:
        finish(op, Action::reject, Reason::missing_value, kForbidden,
               op.pin_->snapshot->plan(matched.rule).rule);
        return false;
      case Resolved::ambiguous:
        finish(op, Action::reject, Reason::ambiguous_value, kBadRequest,
               op.pin_->snapshot->plan(matched.rule).rule);
        return false;
      case Resolved::too_many:
        finish(op, Action::reject, Reason::too_many_rules, kUnavailable);
        return false;
    }
  }
  return true;
}

// Turns the limits of a rule into checks; shadow rules apart.
Decider::Resolved Decider::resolve_rule(Op& op, const rules::Asked& asked,
                                        const rules::Matched& matched) noexcept {
  const Snapshot& snapshot = *op.pin_->snapshot;
  const Plan& plan = snapshot.plan(matched.rule);
  const Rule& rule = *plan.rule;
  const bool shadow = is_shadow(rule);
  const Digest* const guessed = prefetch_.key_for(plan);
  const Key key = guessed != nullptr ? Key{.digest = *guessed}
                                     : key_of(plan, asked, snapshot.rules().path(asked, matched));
  if (key.fate == Key::Fate::skipped) return Resolved::ready;
  if (key.fate == Key::Fate::refused) return shadow ? Resolved::ready : Resolved::missing;
  if (key.fate == Key::Fate::ambiguous) return shadow ? Resolved::ready : Resolved::ambiguous;

  std::array<char, 16> scratch;
  const std::span<const PlannedLimit> limits =
      plan.tier_by == TierBy::none ? std::span<const PlannedLimit>{plan.limits}
                                   : plan.limits_for(tier_of(plan, asked.client, scratch));
  Deciding& deciding = *op.deciding_;
  std::size_t& count = shadow ? deciding.shadow_count : deciding.call.count;
  const std::size_t taken = shadow ? count : deciding.early_count + count;
  if (taken + limits.size() > Deciding::kMost) {
    if (!shadow) return Resolved::too_many;
    ++counters_.shadow_checks_skipped;  // all of it or nothing of it
    return Resolved::ready;
  }

  const store::Cost cost = cost_of(rule.cost, asked);
  const Deciding::Label label =
      plan.block && !shadow ? label_of(op, plan, asked, matched) : Deciding::Label{};
  const std::size_t first = count;
  for (const PlannedLimit& limit : limits) {
    const bool in_flight = limit.written->limit.algorithm == Algorithm::concurrency;
    const bool is_as_written = !limit.written->from && snapshot.overrides().empty();
    const InForce holds =
        is_as_written ? InForce{.number = limit.number, .amount = limit.written->limit.amount}
                      : in_force(plan, limit, asked, op.asked_at_);
    if (holds.use != nullptr) {
      Amounts::keep(*holds.use);
      op.uses_.push_back(holds.use);
    }
    (shadow ? deciding.shadows : deciding.asked)[count] = {.plan = &plan,
                                                           .limit = &limit,
                                                           .amount = holds.amount,
                                                           .key = key.digest.low,
                                                           .label = label};
    (shadow ? deciding.shadow_checks : deciding.call.checks)[count] = {
        .key = {.low = key.digest.low ^ limit.salt, .high = key.digest.high},
        .salt = limit.salt,
        .limit = holds.number,
        .cost = cost,
        .change = plan.change,
        .on_table_full = rule.on_table_full,
        .probe = rule.count && rule.count->after && !in_flight,
        .may_be_refunded = rule.count.has_value() || in_flight,
        .thread_leases = rule.thread_leases};
    ++count;
  }
  if (!shadow && count > first) deciding.call.group_from(first);
  return Resolved::ready;
}

// With the request's own amount, or with an override.
Decider::InForce Decider::in_force(const Plan& plan, const PlannedLimit& limit,
                                   const rules::Asked& asked, Now now) noexcept {
  const Snapshot& snapshot = *pin_->snapshot;
  const InForce written{.number = limit.number, .amount = limit.written->limit.amount};
  const Override* const changed = snapshot.override_for(*plan.rule, asked.client, now.wall());
  if (!limit.written->from) {
    if (changed == nullptr) return written;
    return {.number = snapshot.number(limit, *changed),
            .amount = multiplied(limit.written->limit, changed->permille).amount};
  }
  const Amounts::Brought brought =
      amounts_.find(limit, plan.sharing,
                    {.amount = amount_of(*limit.written, asked),
                     .permille = changed != nullptr ? changed->permille : 1000},
                    now);
  if (brought.is_left_out) ++counters_.dynamic_limits_skipped;
  return {.number = brought.number, .amount = brought.amount, .use = brought.use};
}

// ---- labels -----------------------------------------------------------------------------------

// The source of a label, if one is needed: for each `per` its kind, its length and its bytes. A
// missing value is replaced by the address, as in the key by default.
Deciding::Label Decider::label_of(Op& op, const Plan& plan, const rules::Asked& asked,
                                  const rules::Matched& matched) noexcept {
  constexpr std::size_t kHeader = 2;
  constexpr std::size_t kShown = 64;
  const rules::MatchedPath path = op.pin_->snapshot->rules().path(asked, matched);
  Deciding& deciding = *op.deciding_;
  const std::size_t first = deciding.label_bytes;
  ValueScratch scratch;
  for (const rules::Per& per : plan.rule->per) {
    rules::Per::Kind kind = per.kind;
    std::string_view value = value_of(per, asked, path, scratch);
    if (value.empty()) {
      kind = rules::Per::Kind::ip;
      value = value_of({.kind = kind, .name = {}}, asked, path, scratch);
    }
    value = value.substr(0, kShown);
    if (deciding.label_bytes + kHeader + value.size() > deciding.labels.size()) break;
    char* const to = deciding.labels.data() + deciding.label_bytes;
    to[0] = static_cast<char>(kind);
    to[1] = static_cast<char>(value.size());
    std::ranges::copy(value, to + kHeader);
    deciding.label_bytes += kHeader + value.size();
  }
  return {.first = static_cast<std::uint16_t>(first),
          .size = static_cast<std::uint16_t>(deciding.label_bytes - first)};
}

}  // namespace sluice::engine
