#include "cli/replay/log_gaps.h"

#include "frontend/access_log/log_secrets.h"
#include "identity/fields.h"
#include <sluice/request.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sluice::cli {
namespace {

using rules::NamedMatch;
using rules::Per;
using rules::TextMatch;

using Pairs = std::vector<std::pair<std::string, std::string>>;

bool needs_value(const NamedMatch& match) noexcept {
  return match.value.kind != TextMatch::Kind::present;
}

std::string_view value_in(const Pairs& pairs, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(
      pairs, [&](const auto& pair) { return equals_ignoring_case(pair.first, name); });
  return found == pairs.end() ? std::string_view{} : std::string_view{found->second};
}

}  // namespace

LogGaps::LogGaps(std::span<const rules::Rule> rules) {
  for (const rules::Rule& rule : rules) {
    const std::size_t number = rules_.size();
    rules_.push_back(rule.name);
    if (rule.domain != rules::kDefaultDomain) {
      add_text(number, "domain", [](const LoggedRequest& one) { return one.domain; });
    }
    add_match(number, rule.match);
    for (const Per& per : rule.per) add_per(number, per);
    add_limits(number, rule.limits);
    if (rule.tiers) {
      add_attribute(number, rule.tiers->by);
      for (const auto& [tier, limits] : rule.tiers->values) add_limits(number, limits);
    }
    using Cost = rules::CostRule::Kind;
    if (rule.cost.kind == Cost::header) add_header(number, rule.cost.name, true);
    if (rule.cost.kind == Cost::query) add_query(number, rule.cost.name);
    if (rule.count) add_response(number, *rule.count);
  }
  for (std::size_t i = 0; i < needs_.size(); ++i) open_.push_back(i);
}

void LogGaps::add(std::size_t rule, std::string field,
                  std::function<Sight(const LoggedRequest&)> look, bool may_be_absent) {
  for (auto need = needs_.rbegin(); need != needs_.rend() && need->rule == rule; ++need) {
    if (need->field == field) return;
  }
  needs_.push_back({.rule = rule,
                    .field = std::move(field),
                    .look = std::move(look),
                    .may_be_absent = may_be_absent});
}

void LogGaps::add_text(std::size_t rule, std::string field,
                       std::function<std::string_view(const LoggedRequest&)> text,
                       bool needs_value) {
  add(rule, std::move(field), [text = std::move(text), needs_value](const LoggedRequest& one) {
    const std::string_view value = text(one);
    if (value.empty()) return Sight::none;
    return needs_value && value == frontend::kHidden ? Sight::hidden : Sight::shown;
  });
}

void LogGaps::add_header(std::size_t rule, const std::string& name, bool needs_value) {
  add_text(
      rule, "header." + name,
      [name](const LoggedRequest& one) { return value_in(one.headers, name); }, needs_value);
}

// Targets are logged whole, so an absent field was not sent.
void LogGaps::add_query(std::size_t rule, const std::string& name) {
  const auto look = [name](const LoggedRequest& one) {
    const std::size_t question = one.target.find('?');
    if (question == std::string::npos) return Sight::none;
    std::array<char, 1024> scratch;
    const auto value = identity::find_query_field(std::string_view{one.target}.substr(question + 1),
                                                  name, scratch);
    if (!value) return Sight::none;
    return *value == frontend::kHidden ? Sight::hidden : Sight::shown;
  };
  add(rule, "query." + name, look, true);
}

void LogGaps::add_claim(std::size_t rule, const std::string& name) {
  add_text(rule, "claims." + name,
           [name](const LoggedRequest& one) { return value_in(one.claims, name); });
}

// What the file of API keys says of a key: no log has it.
void LogGaps::add_attribute_of_key(std::size_t rule, std::string_view name) {
  add(rule, fmt::format("attribute.{}", name), [](const LoggedRequest&) { return Sight::none; });
}

// What tells tiers apart: client.tier, claim.plan, attribute.team.
void LogGaps::add_attribute(std::size_t rule, std::string_view name) {
  constexpr std::string_view kClaim = "claim.";
  constexpr std::string_view kOfKey = "attribute.";
  if (name.starts_with(kClaim)) return add_claim(rule, std::string{name.substr(kClaim.size())});
  if (name.starts_with(kOfKey)) return add_attribute_of_key(rule, name.substr(kOfKey.size()));
  if (name == "client.tier") {
    add_text(rule, "tier", [](const LoggedRequest& one) -> std::string_view { return one.tier; });
  } else if (name == "client.tenant") {
    add_per(rule, {.kind = Per::Kind::tenant, .name = {}});
  } else if (name == "client.country") {
    add_per(rule, {.kind = Per::Kind::country, .name = {}});
  } else if (name == "client.asn") {
    add_per(rule, {.kind = Per::Kind::asn, .name = {}});
  } else if (name == "client.authenticated") {
    add(rule, "user", [](const LoggedRequest& one) {
      const bool is_known = !one.user.empty() || !one.api_key.empty() || !one.claims.empty();
      return is_known ? Sight::shown : Sight::none;
    });
  }
}

void LogGaps::add_match(std::size_t rule, const rules::Match& match) {
  if (!match.hosts.empty()) {
    add_text(rule, "host", [](const LoggedRequest& one) -> std::string_view { return one.host; });
  }
  for (const NamedMatch& one : match.headers) add_header(rule, one.name, needs_value(one));
  for (const NamedMatch& one : match.query) {
    if (needs_value(one)) add_query(rule, one.name);
  }
  for (const NamedMatch& one : match.cookies) {
    const auto look = [name = one.name](const LoggedRequest& request) {
      return value_in(request.cookies, name);
    };
    add_text(rule, "cookies." + one.name, look, needs_value(one));
  }
  for (const NamedMatch& one : match.descriptor) {
    add_per(rule, {.kind = Per::Kind::descriptor, .name = one.name});
  }
  for (const NamedMatch& one : match.attributes) add_attribute_of_key(rule, one.name);
  if (!match.countries.empty()) add_attribute(rule, "client.country");
  if (!match.asns.empty()) add_attribute(rule, "client.asn");
  if (!match.tiers.empty()) add_attribute(rule, "client.tier");
  if (!match.tenants.empty()) add_attribute(rule, "client.tenant");
  if (match.authenticated) add_attribute(rule, "client.authenticated");
}

void LogGaps::add_per(std::size_t rule, const Per& per) {
  switch (per.kind) {
    case Per::Kind::user:
      return add_text(rule, "user",
                      [](const LoggedRequest& one) -> std::string_view { return one.user; });
    case Per::Kind::api_key:
      return add_text(rule, "api_key",
                      [](const LoggedRequest& one) -> std::string_view { return one.api_key; });
    case Per::Kind::tenant:
      return add_text(rule, "tenant",
                      [](const LoggedRequest& one) -> std::string_view { return one.tenant; });
    case Per::Kind::country:
      return add_text(rule, "country",
                      [](const LoggedRequest& one) -> std::string_view { return one.country; });
    case Per::Kind::asn:
      return add(rule, "asn", [](const LoggedRequest& one) {
        return one.asn != 0 ? Sight::shown : Sight::none;
      });
    case Per::Kind::header: return add_header(rule, per.name, true);
    case Per::Kind::query: return add_query(rule, per.name);
    case Per::Kind::claim: return add_claim(rule, per.name);
    case Per::Kind::attribute: return add_attribute_of_key(rule, per.name);
    case Per::Kind::descriptor:
      return add_text(rule, "descriptor." + per.name, [name = per.name](const LoggedRequest& one) {
        return value_in(one.descriptor, name);
      });
    case Per::Kind::ip:
    case Per::Kind::method:
    case Per::Kind::route:
    case Per::Kind::path: return;
  }
}

void LogGaps::add_limits(std::size_t rule, const std::vector<rules::RuleLimit>& limits) {
  for (const rules::RuleLimit& limit : limits) {
    if (limit.limit.algorithm == Algorithm::concurrency) {
      add(rule, "duration_ns", [](const LoggedRequest& one) {
        return one.duration > Nanos{0} ? Sight::shown : Sight::none;
      });
    }
    if (!limit.from) continue;
    switch (limit.from->kind) {
      case rules::AmountFrom::Kind::claim: add_claim(rule, limit.from->name); break;
      case rules::AmountFrom::Kind::attribute: add_attribute_of_key(rule, limit.from->name); break;
      case rules::AmountFrom::Kind::header:
        add_header(rule, limit.from->name, true);
        add(rule, "through_trusted", [](const LoggedRequest& one) {
          return one.through_trusted ? Sight::shown : Sight::none;
        });
        break;
    }
  }
}

void LogGaps::add_response(std::size_t rule, const rules::Count& count) {
  if (!count.statuses.empty()) {
    add(rule, "status",
        [](const LoggedRequest& one) { return one.status != 0 ? Sight::shown : Sight::none; });
  }
  if (!count.grpc_statuses.empty()) {
    add(rule, "grpc_status",
        [](const LoggedRequest& one) { return one.grpc_status ? Sight::shown : Sight::none; });
  }
  if (!count.header) return;
  const auto look = [name = count.header->name](const LoggedRequest& one) {
    return value_in(one.response_headers, name);
  };
  add_text(rule, "response_headers." + count.header->name, look, needs_value(*count.header));
}

void LogGaps::look_at(const LoggedRequest& request) {
  std::erase_if(open_, [&](std::size_t number) {
    Need& need = needs_[number];
    need.sight = need.look(request);
    return need.sight != Sight::none;
  });
}

std::vector<LogGap> LogGaps::found() const {
  std::vector<LogGap> gaps;
  for (const Need& need : needs_) {
    if (need.sight == Sight::shown) continue;
    if (need.sight == Sight::none && need.may_be_absent) continue;
    gaps.push_back(
        {.rule = rules_[need.rule], .field = need.field, .is_hidden = need.sight == Sight::hidden});
  }
  return gaps;
}

}  // namespace sluice::cli
