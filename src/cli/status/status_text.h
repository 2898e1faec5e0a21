// What the admin listener says about a server, for people.
#pragma once

#include "cli/terminal.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>

namespace sluice::cli {

struct StatusText {
  std::string text;
  bool is_serving = false;
};

// From the JSON of /v1/status. Fields that are not there are left out, so that an older server can
// be asked as well.
[[nodiscard]] Parsed<StatusText> status_text(std::string_view json, const Output& style);

}  // namespace sluice::cli
