// From the events of the YAML library to a tree; the only file behind it that knows the library.
#pragma once

#include "config/document.h"

#include <optional>

namespace sluice::config {

// Nothing, and a mistake, when the text cannot be read to its end.
[[nodiscard]] std::optional<Node> read_yaml(const Source& source, Diagnostics& diagnostics,
                                            const DocumentOptions& options);

}  // namespace sluice::config
