// What the pictures of several commands need of XML.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// As text between tags or inside quotes; control characters become spaces.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace sluice::cli
