// The store of all keys' usage, as the engine sees it.
//
// A store completes a call at once or later. The local table always completes at once. A store
// behind a network says "later" and completes the call on the calling worker, or never. The caller
// keeps the call alive until it is completed or cancelled, and decides for itself how long to wait.
//
// Calls own all their data: no views into a request's buffer, which may be gone by then.
#pragma once

#include "store/check.h"
#include "store/limit_numbers.h"
#include <sluice/diagnostic.h>
#include <sluice/result.h>
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::store {

inline constexpr std::size_t kCallChecksMax = 32;

// All limits of one request: all or nothing.
struct Call {
  std::array<Check, kCallChecksMax> checks;
  std::array<Answer, kCallChecksMax> answers;
  std::size_t count = 0;

  // Once completed: whether all limits admitted it, and whether the store failed.
  bool admitted = false;
  bool failed = false;

  // Completed later: called once, by the calling worker, after decide_all() has returned.
  void (*completed)(Call&) noexcept = nullptr;
  void* owner = nullptr;

  [[nodiscard]] std::span<const Check> asked() const noexcept {
    return std::span{checks}.first(count);
  }
  [[nodiscard]] std::span<Answer> answered() noexcept { return std::span{answers}.first(count); }
};

enum class Completion : std::uint8_t { now, later };

class Store : public LimitNumbers {
 public:
  // For a limit that arrives with a request: new ones leave a quarter of the numbers to rules.
  [[nodiscard]] virtual Parsed<LimitNumber> use_for_request(const Limit& limit, Now now) = 0;

  [[nodiscard]] virtual Completion decide_all(Call& call, Now now) noexcept = 0;

  // A key that a check will probably need soon: the store may prefetch it.
  virtual void expect(const Digest& /*key*/) noexcept {}

  // The caller no longer waits for a call that is not completed, and may destroy or reuse it as
  // soon as this returns. From then on the store neither completes it nor writes to it, even if its
  // result is on the way. The charges of the call, also later ones, stay.
  virtual void cancel(Call& call) noexcept = 0;

  // No request waits for these. A charge cannot be rejected; the receipt says how much of it found
  // room.
  virtual Charge charge(const Check& check, Now now) noexcept = 0;
  virtual void refund(const Check& check, const Charge& charge, Now now) noexcept = 0;
  // The returned charge replaces the lease.
  [[nodiscard]] virtual Charge renew(const Check& check, const Charge& lease, Now now) noexcept = 0;
};

}  // namespace sluice::store
