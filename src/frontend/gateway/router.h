// The route of a request, by its host and its path, both normalised.
//
// The most specific route wins, as with rules: an exact host over a wildcard over any, then the
// more specific path, then the order of the file. Immutable.
#pragma once

#include "frontend/gateway/gateway_options.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::gateway {

class Router {
 public:
  explicit Router(std::span<const RouteOptions> routes);

  // The index of the upstream; nothing: no matching route.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host,
                                                std::string_view path) const noexcept;

 private:
  struct Entry {
    std::string_view host;  // of the options; empty: any
    const rules::PathTemplate* path = nullptr;
    std::size_t upstream = 0;
    std::size_t order = 0;  // in the file
  };
  std::vector<Entry> entries_;  // the most specific first
};

}  // namespace sluice::gateway
