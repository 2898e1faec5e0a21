// Secrets that a configuration names the files of.
#pragma once

#include "config/diagnostics.h"
#include <sluice/diagnostic.h>

#include <string>

namespace sluice::config {

// A secret of its own file, without the line break that such a file often ends with.
[[nodiscard]] Parsed<std::string> read_secret(const std::string& path);
// Warns where other users of this machine may read it. An empty path is none.
void warn_of_exposure(const std::string& secret_file, Diagnostics& diagnostics);

}  // namespace sluice::config
