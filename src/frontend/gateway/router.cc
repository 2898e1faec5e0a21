#include "frontend/gateway/router.h"

#include <algorithm>

namespace sluice::gateway {
namespace {

int rank_of(std::string_view host) noexcept {
  return host.empty() ? 0 : host.starts_with('*') ? 1 : 2;
}

}  // namespace

Router::Router(std::span<const RouteOptions> routes) {
  for (const RouteOptions& route : routes) {
    const rules::PathTemplate* const path = route.path ? &*route.path : nullptr;
    if (route.hosts.empty()) entries_.push_back({{}, path, route.upstream, entries_.size()});
    for (const std::string& host : route.hosts)
      entries_.push_back({host, path, route.upstream, entries_.size()});
  }
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    if (rank_of(a.host) != rank_of(b.host)) return rank_of(a.host) > rank_of(b.host);
    if (a.host.size() != b.host.size()) return a.host.size() > b.host.size();
    if ((a.path == nullptr) != (b.path == nullptr)) return b.path == nullptr;
    const int order = a.path != nullptr ? compare_specificity(*a.path, *b.path) : 0;
    return order != 0 ? order > 0 : a.order < b.order;
  });
}

std::optional<std::size_t> Router::find(std::string_view host,
                                        std::string_view path) const noexcept {
  for (const Entry& entry : entries_) {
    if (!entry.host.empty() && !rules::host_matches(entry.host, host)) continue;
    if (entry.path == nullptr || entry.path->matches(path)) return entry.upstream;
  }
  return std::nullopt;
}

}  // namespace sluice::gateway
