// Whether a file could be written, for programs that only look: nothing is created or changed.
#pragma once

#include <sluice/diagnostic.h>

#include <optional>
#include <string>

namespace sluice {

// Why opening the file for writing would fail, or creating it where it is missing; nothing if it
// would not.
[[nodiscard]] std::optional<Diagnostic> why_not_writable(const std::string& path);

}  // namespace sluice
