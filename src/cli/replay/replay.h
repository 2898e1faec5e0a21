// sluice replay: recorded requests through a limit, offline, on virtual time.
#pragma once

#include "cli/exit_code.h"
#include "cli/limit_options.h"

#include <cstddef>
#include <optional>
#include <string>

namespace sluice::cli {

struct ReplayOptions {
  std::string trace = "-";
  LimitOptions limit;
  bool json = false;
  bool compare = false;
  std::optional<std::size_t> rows;  // of the comparison's table; 0 = all
  std::optional<std::string> svg;
};

[[nodiscard]] ExitCode replay(const ReplayOptions& options);

}  // namespace sluice::cli
