// Headers by name.
#pragma once

#include "base/characters.h"
#include <sluice/request.h>

#include <algorithm>
#include <string_view>

namespace sluice::identity {

[[nodiscard]] inline bool is_named(const HeaderView& line, std::string_view lower_name) noexcept {
  return equals_ignoring_case(line.name, lower_name);
}

// The same with _ and - alike. Many servers (CGI, WSGI, PHP) hand headers to programs under names
// in which the two cannot be told apart: to them X_Api_Key is X-Api-Key. For what a client says of
// itself; a header that only a trusted proxy may write is compared exactly.
[[nodiscard]] inline bool reads_as(const HeaderView& line, std::string_view lower_name) noexcept {
  constexpr auto folded = [](char c) { return c == '_' ? '-' : lower(c); };
  return line.name.size() == lower_name.size() &&
         std::equal(line.name.begin(), line.name.end(), lower_name.begin(),
                    [&](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace sluice::identity
