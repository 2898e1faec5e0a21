// Headers by name.
#pragma once

#include "base/characters.h"
#include <sluice/request.h>

#include <string_view>

namespace sluice::identity {

[[nodiscard]] inline bool is_named(const HeaderView& line, std::string_view lower_name) noexcept {
  return equals_ignoring_case(line.name, lower_name);
}

}  // namespace sluice::identity
