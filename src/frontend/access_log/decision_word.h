// A decision in one word, the same in metrics and logs.
#pragma once

#include "engine/op.h"

#include <cstdint>
#include <string_view>

namespace sluice::frontend {

enum class DecisionWord : std::uint8_t {
  allowed,
  rejected,
  shadow_rejected,  // allowed, and a shadow rule would have rejected it
  error_allowed,    // the store failed; allowed
  error_rejected,   // the store failed; rejected
};
inline constexpr std::size_t kDecisionWords = 5;

[[nodiscard]] constexpr std::string_view to_string(DecisionWord word) noexcept {
  switch (word) {
    case DecisionWord::allowed: return "allowed";
    case DecisionWord::rejected: return "rejected";
    case DecisionWord::shadow_rejected: return "shadow_rejected";
    case DecisionWord::error_allowed: return "error_allowed";
    case DecisionWord::error_rejected: return "error_rejected";
  }
  return "unknown";
}

// For the whole request. Too many rules to check also count as an error.
[[nodiscard]] inline DecisionWord decision_word(const engine::Op& op) noexcept {
  using engine::Reason;
  const bool passes = op.action == engine::Action::pass;
  if (op.reason == Reason::store_failed || op.reason == Reason::too_many_rules) {
    return passes ? DecisionWord::error_allowed : DecisionWord::error_rejected;
  }
  if (!passes) return DecisionWord::rejected;
  for (const engine::LimitOutcome& outcome : op.limits()) {
    if (outcome.shadow && !outcome.decision.allowed()) return DecisionWord::shadow_rejected;
  }
  return DecisionWord::allowed;
}

}  // namespace sluice::frontend
