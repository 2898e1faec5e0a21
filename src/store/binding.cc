#include "store/binding.h"

#include <algorithm>
#include <tuple>

namespace sluice::store {
namespace {

// Whether `a` binds rather than `b`.
bool binds(const Decision& a, const Decision& b) noexcept {
  if (a.allowed() != b.allowed()) return !a.allowed();
  if (a.allowed()) {
    return std::tuple{a.remaining, -a.reset_after.count()} <
           std::tuple{b.remaining, -b.reset_after.count()};
  }
  const bool a_never = a.verdict == Verdict::never;
  const bool b_never = b.verdict == Verdict::never;
  if (a_never || b_never) return a_never && !b_never;
  return a.retry_after.value_or(Nanos{-1}) > b.retry_after.value_or(Nanos{-1});
}

}  // namespace

std::size_t binding(std::span<const Answer> answers) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < answers.size(); ++i) {
    if (binds(answers[i].decision, answers[best].decision)) best = i;
  }
  return best;
}

Decision binding_decision(std::span<const Answer> answers) noexcept {
  Decision decision = answers[binding(answers)].decision;
  if (!decision.allowed()) return decision;
  for (const Answer& answer : answers) {
    decision.delay = std::max(decision.delay, answer.decision.delay);
  }
  return decision;
}

}  // namespace sluice::store
