// What the YAML library complains about, in words that tell what to do.
#pragma once

#include <sluice/diagnostic.h>

#include <string_view>

namespace sluice::config {

[[nodiscard]] Diagnostic explain_yaml_mistake(std::string_view library_message);

}  // namespace sluice::config
