// Rejections of the authority, remembered: a client that is over its limit and goes on asking costs
// one call per second.
//
// A request of the same cost or more stays rejected until the time that the authority has told, for
// kLongest at most; larger ones are told the same wait, and may have to wait longer. Smaller ones
// are asked for: there may be room for them. `remaining` is what it was then, or more by now. Only
// limits are remembered whose rejections nothing shortens (SharedTerms::rejections_last(), no
// refunds of the rule), and groups of up to kChecksMax.
//
// Bounded; what finds no place displaces what ends first. One thread.
#pragma once

#include "base/digest.h"
#include "store/check.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::store {

class DeniedUntil {
 public:
  static constexpr Nanos kLongest = std::chrono::seconds{1};
  static constexpr std::size_t kChecksMax = 4;

  explicit DeniedUntil(std::size_t entries);  // a power of two

  // Whether a remembered rejection still holds; then it is the answer.
  [[nodiscard]] bool rejects(const Digest& key, std::span<const Check> checks, Now now,
                             std::span<Answer> answers) const noexcept;
  // `asked` is when the call was made: waits are counted from there.
  void remember(const Digest& key, std::span<const Check> checks, std::span<const Answer> answers,
                MonoTime asked) noexcept;
  // Something was given back.
  void forget(const Digest& key) noexcept;

 private:
  struct Remembered {
    std::uint64_t salt = 0;
    LimitNumber limit = 0;
    Cost cost = 0;
    MonoTime until;  // rejected until then; `asked` if this limit did not reject
    Decision decision;
  };
  struct Entry {
    Digest key;
    std::uint32_t count = 0;
    MonoTime asked;
    MonoTime until;
    std::array<Remembered, kChecksMax> checks;
  };

  [[nodiscard]] std::size_t place_of(const Digest& key, std::size_t way) const noexcept {
    return static_cast<std::size_t>(key.high + way) & (entries_.size() - 1);
  }
  [[nodiscard]] const Entry* find(const Digest& key) const noexcept;

  static constexpr std::size_t kWays = 4;
  std::vector<Entry> entries_;
};

}  // namespace sluice::store
