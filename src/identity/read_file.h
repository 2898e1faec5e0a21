// A file of keys, as a whole. For the control road: it blocks and allocates.
#pragma once

#include <sluice/diagnostic.h>

#include <cstddef>
#include <string>

namespace sluice::identity {

[[nodiscard]] Parsed<std::string> read_file(const std::string& path, std::size_t bytes_max);

}  // namespace sluice::identity
