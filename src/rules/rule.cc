#include "rules/rule.h"

#include <algorithm>
#include <utility>

namespace sluice::rules {

bool blocks_early(const Rule& rule) noexcept {
  const Match& match = rule.match;
  return rule.block && rule.group.empty() && !rule.before_auth &&
         rule.action.kind != Action::Kind::shadow && match.tiers.empty() && match.tenants.empty() &&
         match.attributes.empty() && !match.authenticated &&
         std::ranges::all_of(rule.per, known_before_verification, &Per::kind);
}

bool IgnoringHosts::names(std::string_view host) const noexcept {
  return std::ranges::any_of(
      hosts, [host](const std::string& pattern) { return host_matches(pattern, host); });
}

bool IgnoringHosts::holds_for_all(std::span<const std::string> named) const noexcept {
  if (everywhere || named.empty()) return everywhere;
  return std::ranges::all_of(named, [this](const std::string& host) { return holds_for(host); });
}

bool IgnoringHosts::makes_unclear(std::string_view path,
                                  std::span<const std::string> named) const noexcept {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  return std::ranges::any_of(path, is_capital) && divides(named);
}

bool IgnoringHosts::divides(std::span<const std::string> named) const noexcept {
  if (everywhere || hosts.empty() || holds_for_all(named)) return false;
  return named.empty() || std::ranges::any_of(named, [this](const std::string& host) {
           return holds_for(host) || std::ranges::any_of(hosts, [&](const std::string& ignoring) {
                    return host_matches(host, ignoring);
                  });
         });
}

SlashesByHost::Setting SlashesByHost::of(std::string_view host) const noexcept {
  const Host* best = nullptr;
  const auto rank = [](const Host& one) {
    return std::pair{one.pattern.starts_with('*') ? 1 : 2, one.pattern.size()};
  };
  for (const Host& one : hosts) {
    if (!host_matches(one.pattern, host)) continue;
    if (best == nullptr || rank(one) > rank(*best)) best = &one;
  }
  return best == nullptr ? otherwise : best->setting;
}

bool SlashesByHost::are_kept_on_all(std::span<const std::string> named) const noexcept {
  if (named.empty()) return otherwise == Setting::keep;
  return std::ranges::all_of(named, [this](const std::string& host) {
    const auto contradicts = [&host](const Host& one) {
      return one.setting != Setting::keep && host_matches(host, one.pattern);
    };
    return of(host) == Setting::keep && std::ranges::none_of(hosts, contradicts);
  });
}

}  // namespace sluice::rules
