// Files that commands write for people.
#pragma once

#include <sluice/diagnostic.h>

#include <string>
#include <string_view>

namespace sluice::cli {

// Replaces the file as a whole or leaves it as it was.
[[nodiscard]] Parsed<void> write_file(const std::string& path, std::string_view content);

// A file that was not there before, whatever else happens at the same time.
[[nodiscard]] Parsed<void> create_file(const std::string& path, std::string_view content,
                                       bool for_owner_only);

}  // namespace sluice::cli
