// A decision in one word, the same in metrics and logs.
#pragma once

#include "engine/op.h"

#include <cstdint>
#include <string_view>

namespace sluice::frontend {

enum class DecisionWord : std::uint8_t {
  allow,
  deny,
  shadow_deny,  // it passes, and a rule that only tells would have refused it
  error_allow,  // nobody could say, and it passes
  error_deny,   // nobody could say, and it does not
};
inline constexpr std::size_t kDecisionWords = 5;

[[nodiscard]] constexpr std::string_view to_string(DecisionWord word) noexcept {
  switch (word) {
    case DecisionWord::allow: return "allow";
    case DecisionWord::deny: return "deny";
    case DecisionWord::shadow_deny: return "shadow_deny";
    case DecisionWord::error_allow: return "error_allow";
    case DecisionWord::error_deny: return "error_deny";
  }
  return "unknown";
}

// Of the request as a whole. More rules than can be checked are our trouble, too.
[[nodiscard]] inline DecisionWord decision_word(const engine::Op& op) noexcept {
  using engine::Reason;
  const bool passes = op.action == engine::Action::pass;
  if (op.reason == Reason::store_failed || op.reason == Reason::too_many_rules) {
    return passes ? DecisionWord::error_allow : DecisionWord::error_deny;
  }
  if (!passes) return DecisionWord::deny;
  for (const engine::LimitOutcome& outcome : op.limits()) {
    if (outcome.shadow && !outcome.decision.allowed()) return DecisionWord::shadow_deny;
  }
  return DecisionWord::allow;
}

}  // namespace sluice::frontend
