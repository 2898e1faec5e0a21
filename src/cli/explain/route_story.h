// Where the gateway passes a request on to.
#pragma once

#include "app/config/serve_configuration.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// Views into the configuration.
struct RouteStory {
  bool has_gateway = false;         // else there is nothing to tell
  bool found = false;               // else the gateway answers 404
  bool is_ambiguous = false;        // the path can be read in two ways: the gateway answers 400
  std::vector<std::string> hosts;   // of the route; empty: any
  std::optional<std::string> path;  // absent: any
  std::string upstream;             // its name
  std::vector<std::string> servers;
};

// Host and path in the one spelling that rules see, and the other reading of the path; empty: there
// is none.
[[nodiscard]] RouteStory route_of(const app::ServeConfig& serve, std::string_view host,
                                  std::string_view path, std::string_view decoded_path = {});

[[nodiscard]] std::string route_text(const RouteStory& story);
// "route":...,"upstream":...
[[nodiscard]] std::string route_members(const RouteStory& story);

}  // namespace sluice::cli
