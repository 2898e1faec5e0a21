// A grammar as documentation: one table for each section.
#pragma once

#include "config/grammar.h"

#include <string>

namespace sluice::config {

// Markdown, beginning with headings of the second level.
[[nodiscard]] std::string reference_markdown(const Shape& root);

// What may be written, in a few words: "LIMIT, list of LIMIT, or [limit](#limit)".
[[nodiscard]] std::string shape_text(const Shape& shape);

}  // namespace sluice::config
