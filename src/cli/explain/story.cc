#include "cli/explain/story.h"

#include "cli/client_ip.h"
#include "cli/rule_text.h"
#include "engine/key.h"
#include "identity/host.h"
#include "identity/method.h"
#include "identity/path.h"
#include "rules/per_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace sluice::cli {
namespace {

using rules::OnMissing;
using rules::Per;
using rules::Phase;

// As the key has it: of IPv6 the network.
std::string address_text(const IpAddress& address, unsigned v4_bits, unsigned v6_bits) {
  const unsigned bits = address.is_v4 ? v4_bits : v6_bits;
  std::string text = client_ip_text(address.masked(bits));
  return bits == address.bits() ? text : fmt::format("{}/{}", text, bits);
}

std::string instead_of(OnMissing missing, const IpAddress& address) {
  switch (missing) {
    case OnMissing::ip: return "ip " + address_text(address, 32, 64);
    case OnMissing::skip: return "skip";
    case OnMissing::shared: return "shared";
    case OnMissing::reject: return "reject";
  }
  return {};
}

std::vector<StoryValue> key_of(const rules::Rule& rule, const rules::Asked& asked,
                               const rules::MatchedPath& path) {
  std::vector<StoryValue> key;
  engine::ValueScratch scratch;
  for (const Per& per : rule.per) {
    StoryValue& one = key.emplace_back();
    one.part = per_text(per);
    if (per.kind == Per::Kind::ip) {
      one.value = address_text(asked.client.address, per.v4_bits, per.v6_bits);
      continue;
    }
    one.value = engine::value_of(per, asked, path, scratch);
    if (!one.value.empty()) continue;
    one.is_ambiguous = engine::is_ambiguous(per, asked);
    if (!one.is_ambiguous) one.instead = instead_of(rule.on_missing, asked.client.address);
  }
  return key;
}

// Empty: it was asked. The first of its values that cannot be used decides.
std::string why_not_asked(const RuleStory& story, const engine::Op& op) {
  if (!story.limits.empty()) return {};
  const bool is_shadow = story.rule->action.kind == rules::Action::Kind::shadow;
  const auto is_stopped_for = [&](engine::Reason reason) {
    return is_shadow || (op.rule == story.rule && op.reason == reason);
  };
  for (const StoryValue& one : story.key) {
    if (one.is_ambiguous && is_stopped_for(engine::Reason::ambiguous_value)) {
      return fmt::format("{} is sent twice, differently", one.part);
    }
    if (one.instead.empty()) continue;
    if (story.rule->on_missing == OnMissing::skip) {
      return fmt::format("{} is missing (on_missing: skip)", one.part);
    }
    if (story.rule->on_missing == OnMissing::reject &&
        is_stopped_for(engine::Reason::missing_value)) {
      return fmt::format("{} is missing (on_missing: reject)", one.part);
    }
  }
  return fmt::format("matches, but is not evaluated: {}", engine::to_string(op.reason));
}

// Whose limits were asked.
std::string tier_of(const rules::Rule& rule, const rules::RuleLimit* limit) {
  if (!rule.tiers || limit == nullptr) return {};
  for (const auto& [tier, limits] : rule.tiers->values) {
    const bool is_here =
        std::ranges::any_of(limits, [limit](const auto& one) { return &one == limit; });
    if (is_here) return tier;
  }
  return {};
}

StoryLimit limit_of(const engine::LimitOutcome& outcome, const engine::Override* changed_by) {
  const std::uint64_t written = outcome.limit->limit.amount;
  const std::uint64_t changed =
      changed_by == nullptr ? written
                            : engine::multiplied({.amount = written}, changed_by->permille).amount;
  return {.outcome = &outcome,
          .by_from = outcome.amount != written && outcome.amount != changed,
          .by_override = outcome.amount != written && changed_by != nullptr};
}

void add_outcomes(RuleStory& story, const StoryParts& parts, const identity::Identity& client) {
  const engine::Snapshot& snapshot = parts.engine.snapshot();
  for (const engine::LimitOutcome& outcome : parts.op.limits()) {
    if (outcome.rule != story.rule) continue;
    story.changed_by = snapshot.override_for(*story.rule, client, parts.now.wall());
    story.limits.push_back(limit_of(outcome, story.changed_by));
    story.cost = static_cast<std::uint32_t>(outcome.cost);
  }
  if (story.limits.empty()) return;
  story.tier = tier_of(*story.rule, story.limits.front().outcome->limit);
}

// Lists are checked first by address, then by the authenticated user.
const engine::ListEntry* listed(const StoryParts& parts, const identity::Identity& client) {
  const engine::Reason reason = parts.op.reason;
  if (reason != engine::Reason::allow_listed && reason != engine::Reason::deny_listed) {
    return nullptr;
  }
  const engine::Lists::Answer by_address = parts.lists.find(client.address, parts.now.wall());
  if (by_address.entry != nullptr) return by_address.entry;
  return parts.lists.find(client, parts.now.wall()).entry;
}

}  // namespace

bool has_decision(const engine::Op& op) noexcept {
  return op.rule != nullptr && op.reason != engine::Reason::missing_value &&
         op.reason != engine::Reason::ambiguous_value;
}

Story story_of(const StoryParts& parts, identity::IdentifierScratch& scratch) {
  Story story;
  const RequestView& request = parts.request;
  const rules::RuleSet& rules = parts.engine.snapshot().rules();
  std::array<char, identity::kPathScratchBytes> path;
  std::array<char, identity::kPathScratchBytes> decoded_path;
  std::array<char, identity::kHostScratchBytes> host;
  identity::Target target = identity::normalise_target(request.target, {}, path);
  // An absolute target names the host itself.
  const std::string asked_host{target.authority.empty() ? request.host : target.authority};
  story.host = identity::normalise_host(asked_host, host).value_or("");
  if (target.ok()) {
    target = identity::read_target(request.target, rules.path_options(story.host),
                                   rules.escaped_slashes(story.host), path, decoded_path);
  }
  story.path = target.ok() ? std::string{target.route()}
                           : fmt::format("cannot be normalised: {}", to_string(target.fault));
  story.decoded_path = target.decoded_route();
  identity::Identity origin;
  parts.identifier.begin(request, origin);
  story.client = parts.identifier.identify(request, parts.now, scratch);
  story.address = client_ip_text(story.client.address);
  story.listed = listed(parts, story.client);
  if (!target.ok()) return story;
  story.route = route_of(parts.serve, story.host, target.route(), target.decoded_route());

  identity::MethodScratch method;
  const auto asked_of = [&](const identity::Identity& client) {
    return rules::Asked{.request = request,
                        .method = identity::upper_method(request.method, method),
                        .domain = request.domain,
                        .host = story.host,
                        .path = target.route(),
                        .query = target.query,
                        .client = client,
                        .decoded_path = target.decoded_route()};
  };
  // Some rules are checked before authentication.
  const rules::Asked early = asked_of(origin);
  const rules::Asked late = asked_of(story.client);
  std::vector<std::optional<rules::Matched>> won(rules.rules().size());
  for (const Phase phase : {Phase::before_auth, Phase::after_auth}) {
    auto matches = std::make_unique<rules::Matches>();
    rules.match(phase == Phase::before_auth ? early : late, phase, *matches);
    for (const rules::Matched& one : matches->span()) won[one.rule] = one;
  }
  for (rules::RuleNumber number = 0; number < rules.rules().size(); ++number) {
    const rules::Rule& rule = rules.rules()[number];
    const rules::Asked& asked = rule.before_auth ? early : late;
    RuleStory& one = story.rules.emplace_back();
    one.rule = &rule;
    one.mismatch = rules.mismatch(number, asked);
    one.lost = one.mismatch.empty() && !won[number];
    if (!won[number]) continue;
    one.key = key_of(rule, asked, rules.path(asked, *won[number]));
    add_outcomes(one, parts, asked.client);
    one.not_asked = why_not_asked(one, parts.op);
  }
  return story;
}

}  // namespace sluice::cli
