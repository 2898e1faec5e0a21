// A tree as JSON, the way YAML 1.2 and all its readers understand it.
#pragma once

#include "config/document.h"

#include <string>

namespace sluice::config {

// Plain true, false and whole numbers are what they look like; everything else is text.
[[nodiscard]] std::string to_json(const Node& node);

}  // namespace sluice::config
