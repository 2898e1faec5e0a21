// sluice load URL: drives a server and reports what it admitted, rejected, and how fast.
#pragma once

#include "cli/exit_code.h"
#include "cli/load/load.h"

namespace sluice::cli {

// The options have a URL.
[[nodiscard]] ExitCode load_http(const LoadOptions& options);

}  // namespace sluice::cli
