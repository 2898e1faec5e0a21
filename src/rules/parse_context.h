// Shared by the functions of the rule parser.
#pragma once

#include "config/grammar.h"
#include "rules/rule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace sluice::rules {

// core::compile, once for each distinct calendar: a time zone's grid is costly to build, and a
// thousand rules may share one.
class LimitProver {
 public:
  [[nodiscard]] std::optional<Diagnostic> check(const Limit& limit);

 private:
  std::unordered_map<std::string, std::optional<Diagnostic>> calendars_;
};

struct ParseContext {
  const config::Checked& checked;
  config::Diagnostics& diagnostics;
  LimitProver& prover;
};

}  // namespace sluice::rules
