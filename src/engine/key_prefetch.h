// A guess at the rule that concerns the next request: the one that concerned the last.
//
// What a decision waits for is memory: a count among millions is in no cache. With a guess that
// count is on its way while the rules are still being matched. A wrong one costs a hash; after two
// wrong ones in a row nothing is guessed until the same rule came twice again. Whatever is guessed,
// the decision is the same.
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
  // The rules are others now.
  void forget() noexcept { *this = {}; }

  // Another request. No guess is made of it yet.
  void begin() noexcept { is_made_ = false; }

  // Its client is known, the rules that concern it are not.
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

  // The key under that rule, if it was guessed.
  [[nodiscard]] const Digest* key_for(const Plan& plan) const noexcept {
    return is_made_ && &plan == plan_ ? &key_ : nullptr;
  }

  // The rule that it was.
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

  // One value that is known before the path is compared.
  [[nodiscard]] static bool can_be_guessed(const Plan& plan) noexcept {
    if (!plan.hasher || plan.tier_by != TierBy::none) return false;
    const rules::Per::Kind kind = plan.rule->per[0].kind;
    return kind != rules::Per::Kind::route && kind != rules::Per::Kind::path;
  }

  const Plan* plan_ = nullptr;
  Digest key_;
  bool is_made_ = false;
  std::uint8_t trust_ = 0;
};

}  // namespace sluice::engine
