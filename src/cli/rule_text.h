// Rules as people read them.
#pragma once

#include "rules/rule.h"

#include <string>

namespace sluice::cli {

[[nodiscard]] std::string per_text(const rules::Rule& rule);          // "user, route"; "everybody"
[[nodiscard]] std::string limit_text(const rules::RuleLimit& limit);  // "100/1s token_bucket"

}  // namespace sluice::cli
