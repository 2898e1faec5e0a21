// Variables of the environment that are meant for this process alone.
#pragma once

#include <cstdlib>
#include <string>

namespace sluice::net {

// The value, or nothing; the variable is removed, so that no child sees it. Before there are
// threads.
[[nodiscard]] inline std::string take_variable(const char* name) {
  const char* const value = std::getenv(name);
  std::string result = value != nullptr ? value : "";
  ::unsetenv(name);
  return result;
}

}  // namespace sluice::net
