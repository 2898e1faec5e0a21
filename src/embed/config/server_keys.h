// Keys of the top level that are for `sluice serve`. An embedded engine accepts a file with them
// and ignores their values; the server's grammar (app/config) needs net and front ends.
#pragma once

#include <array>
#include <string_view>

namespace sluice::embed {

// In the order of the reference. A test compares them with the server's grammar.
inline constexpr std::array<std::string_view, 8> kServerKeys{
    "listen", "workers", "upstreams", "routes", "gateway", "access_log", "admin", "drain"};

}  // namespace sluice::embed
