// `sluice status`: a running server at this moment.
#pragma once

#include "cli/exit_code.h"

#include <optional>
#include <string>

namespace sluice::cli {

struct StatusOptions {
  std::string server = "http://127.0.0.1:9090";
  std::string token_file;            // empty: no token
  bool json = false;                 // as the server says it
  std::optional<std::string> watch;  // again and again, so often
};

[[nodiscard]] ExitCode status(const StatusOptions& options);

}  // namespace sluice::cli
