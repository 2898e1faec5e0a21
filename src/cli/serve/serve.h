// `sluice serve`: the gateway, from a file or as a demonstration.
#pragma once

#include "cli/exit_code.h"

#include <string>

namespace sluice::cli {

struct ServeOptions {
  std::string file;  // empty: the demonstration
};

[[nodiscard]] ExitCode serve(const ServeOptions& options);

}  // namespace sluice::cli
