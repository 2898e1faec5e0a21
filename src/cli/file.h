// Files that commands write for people.
#pragma once

#include <sluice/diagnostic.h>

#include <string>
#include <string_view>

namespace sluice::cli {

// Replaces the file as a whole or leaves it as it was.
[[nodiscard]] Parsed<void> write_file(const std::string& path, std::string_view content);

}  // namespace sluice::cli
