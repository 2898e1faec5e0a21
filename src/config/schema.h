// A grammar as JSON Schema, draft 2020-12, for editors and other programs.
//
// Self-contained, and not stricter than the checks: a file that passes them passes the schema. What
// only the program can tell (limits that cannot be enforced, names that occur twice) it leaves out.
#pragma once

#include "config/grammar.h"

#include <string>
#include <string_view>

namespace sluice::config {

struct SchemaTitle {
  std::string_view id;  // a URL that identifies the schema
  std::string_view title;
};

[[nodiscard]] std::string json_schema(const Shape& root, const SchemaTitle& title);

}  // namespace sluice::config
