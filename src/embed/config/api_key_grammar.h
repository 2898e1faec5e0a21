// The grammar of a file of API keys.
#pragma once

#include "config/grammar.h"

#include <string>

namespace sluice::embed {

[[nodiscard]] const config::Section& key_file_section();
[[nodiscard]] const config::Section& key_section();
[[nodiscard]] const config::Section& attributes_section();

[[nodiscard]] config::Shape key_file_shape();
[[nodiscard]] std::string key_file_schema();

extern const config::Format kHashFormat;     // sha256:HEX; messages never show it
extern const config::Format kInstantFormat;  // RFC 3339

}  // namespace sluice::embed
