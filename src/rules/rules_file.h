// Reads a file of rules. An embedded engine does so once; rules/source watches it.
#pragma once

#include "base/read_file.h"
#include <sluice/diagnostic.h>

#include <string>

namespace sluice::rules {

// Waits for a writer to finish, within limits. An empty file is an error and not "no rules": a
// program that writes in place leaves one for a moment, and accepting it would switch off every
// limit. A file that every user may write is an error, too: every user could lift all limits.
// Messages name the file by its absolute path.
[[nodiscard]] Parsed<std::string> read_rules_file(const std::string& path,
                                                  const ReadLimits& limits = {});

}  // namespace sluice::rules
