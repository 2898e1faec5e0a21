// Headers by name.
#pragma once

#include <sluice/request.h>

#include <string_view>

namespace sluice::identity {

// Names differ in length more often than not: a request has many headers, and each is asked for
// several names.
[[nodiscard]] inline bool is_named(const HeaderView& line, std::string_view lower_name) noexcept {
  return line.name.size() == lower_name.size() && equals_ignoring_case(line.name, lower_name);
}

}  // namespace sluice::identity
