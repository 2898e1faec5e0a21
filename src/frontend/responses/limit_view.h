// What clients learn about the limits of a decided request: names, quotas, windows, remaining units
// and times. Pure; no allocation. Views are computed on access.
//
// Everything is rounded against the client: a stated rate is never above the enforced one, a stated
// wait never shorter than the real one.
#pragma once

#include "base/text_writer.h"
#include "engine/op.h"
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::frontend {

// A quota per window.
struct Policy {
  std::uint64_t quota = 0;
  std::uint64_t window_s = 0;  // 0: none, it limits requests in flight

  friend bool operator==(const Policy&, const Policy&) = default;
};

// For a limit with the amount and capacity in force. A capacity above the amount is stated with its
// refill time, so that `remaining` never exceeds the quota. A period below a second is stated as
// its rate per second. Months and years have their longest length.
[[nodiscard]] Policy policy_of(const Limit& limit, std::uint64_t amount,
                               std::uint64_t capacity) noexcept;

[[nodiscard]] std::uint64_t seconds_rounded_up(Nanos time) noexcept;

struct LimitView {
  std::string_view rule;
  std::string_view limit;  // its name, if it has one
  unsigned number = 0;     // from 1 on, among several of one rule; 0: it is alone
  Policy policy;
  bool has_policy = true;  // a block has none
  std::uint64_t capacity = 0;
  std::uint64_t remaining = 0;
  // For so long no more than `remaining` should be used.
  Nanos available_in{0};
  Verdict verdict = Verdict::allowed;
  std::optional<Nanos> retry_after;
};

// rule, rule.limit or rule.2: the same name in headers, problem documents and logs.
void write_name(TextWriter& writer, const LimitView& view) noexcept;
// The same as text: the rule's name if that is all, else in `room`, cut to it.
[[nodiscard]] std::string_view name_of(const LimitView& view, std::span<char> room) noexcept;

// For an op that is decided and not settled yet. A request that a block rejects has one view, of
// the block, since its limits are not checked. The last view is cached: nearly all ops have one
// limit, and a response reads it several times.
class LimitViews {
 public:
  explicit LimitViews(const engine::Op& op, bool with_shadows = false) noexcept
      : op_(op), with_shadows_(with_shadows) {}

  // Calls `look` with each of them, in the order of the rules.
  template <class Look>
  void for_each(Look&& look) {
    if (op_.reason == engine::Reason::blocked) return look(of_block());
    for (std::size_t i = 0; i < op_.limits().size(); ++i) {
      if (!op_.limits()[i].shadow || with_shadows_) look(at(i));
    }
  }

  // The binding limit. Rejected comes before allowed. If rejected: `never` first, then the longest
  // wait. If allowed: the least remaining, then the longest until it is whole.
  [[nodiscard]] std::optional<LimitView> tightest() noexcept;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  [[nodiscard]] const LimitView& at(std::size_t place) noexcept {
    if (place != kept_place_) {
      kept_ = look_at(place);
      kept_place_ = place;
    }
    return kept_;
  }
  [[nodiscard]] LimitView look_at(std::size_t place) const noexcept;
  [[nodiscard]] LimitView of_block() const noexcept;

  const engine::Op& op_;
  bool with_shadows_;
  std::size_t kept_place_ = kNone;
  LimitView kept_;
};

// The value of Retry-After: whole seconds, rounded up, at least one. Nothing for allowed requests,
// and if waiting does not help.
[[nodiscard]] std::optional<std::uint64_t> retry_after_s(const engine::Op& op) noexcept;

}  // namespace sluice::frontend
