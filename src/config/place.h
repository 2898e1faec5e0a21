// Where something was written, for messages.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::config {

// Lines and columns count from 1, columns in characters; 0 is unknown.
struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

}  // namespace sluice::config
