// A file that a person named, as a whole. For the control road: it blocks and allocates.
#pragma once

#include <sluice/diagnostic.h>

#include <cstddef>
#include <string>

namespace sluice {

[[nodiscard]] Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max);

}  // namespace sluice
