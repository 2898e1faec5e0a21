// `sluice init`: a commented configuration to begin with, and what belongs beside it.
#pragma once

#include "cli/exit_code.h"

#include <string>

namespace sluice::cli {

struct InitOptions {
  std::string recipe;
  std::string output = "sluice.yaml";  // the file, or a folder to put it into
  bool force = false;                  // replace files that are there
  bool list = false;                   // tell the recipes, instead
  bool json = false;
};

[[nodiscard]] ExitCode init(const InitOptions& options);

}  // namespace sluice::cli
