// Guesses the rule for the next request: the rule that matched the last one.
//
// A decision mostly waits for memory: a count among millions is in no cache. A guess fetches that
// count while the rules are still being matched. A wrong guess costs a hash; after two wrong ones
// in a row guessing stops until the same rule matched twice again. The decision never depends on
// the guess.
//
// One thread.
#pragma once

#include "engine/key.h"
#include "engine/snapshot.h"
#include "rules/rule_set.h"
#include "store/store.h"

#include <algorithm>
#include <cstdint>

namespace sluice::engine {

class KeyPrefetch {
 public:
  // The rules have changed.
  void forget() noexcept { *this = {}; }

  // Starts another request, without a guess.
  void begin() noexcept { is_made_ = false; }

  // Its client is known, its matching rules are not.
  void guess(const rules::Asked& asked, store::Store& store) noexcept {
    if (trust_ < kTrusted) return;
    ValueScratch scratch;
    const std::string_view value = value_of(plan_->rule->per[0], asked, {}, scratch);
    if (value.empty()) return;
    key_ = {.low = plan_->hasher->low(value)};
    is_made_ = true;
    for (const PlannedLimit& limit : plan_->limits) {
      store.expect(Digest{.low = key_.low ^ limit.salt, .high = 0});
    }
  }

  // The key under that rule, if guessed.
  [[nodiscard]] const Digest* key_for(const Plan& plan) const noexcept {
    return is_made_ && &plan == plan_ ? &key_ : nullptr;
  }

  // The rule that matched.
  void learn(const Plan& plan) noexcept {
    if (&plan == plan_) {
      trust_ = std::min<std::uint8_t>(trust_ + 1, kMost);
    } else if (trust_ > 0) {
      --trust_;
    } else if (can_be_guessed(plan)) {
      plan_ = &plan;
    }
  }

 private:
  static constexpr std::uint8_t kTrusted = 2;
  static constexpr std::uint8_t kMost = 3;

  // One value, known before the path is compared.
  [[nodiscard]] static bool can_be_guessed(const Plan& plan) noexcept {
    if (!plan.hasher || plan.tier_by != TierBy::none || plan.is_shared) return false;
    const rules::Per::Kind kind = plan.rule->per[0].kind;
    return kind != rules::Per::Kind::route && kind != rules::Per::Kind::path;
  }

  const Plan* plan_ = nullptr;
  Digest key_;
  bool is_made_ = false;
  std::uint8_t trust_ = 0;
};

}  // namespace sluice::engine
