// Keys of the top level that are for `sluice serve`. An embedded engine takes a file that has them
// and leaves their values to the server, whose grammar (app/config) needs net and front ends.
#pragma once

#include <array>
#include <string_view>

namespace sluice::embed {

// In the order of the reference. A test compares them with the server's grammar.
inline constexpr std::array<std::string_view, 8> kServerKeys{
    "listen", "workers", "upstreams", "routes", "gateway", "access_log", "admin", "drain"};

}  // namespace sluice::embed
