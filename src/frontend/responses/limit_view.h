// What clients are told about the limits of a decided request: names, quotas, windows, what is left
// and for how long. Pure; nothing is allocated, views are computed when they are looked at.
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

// So much in so long.
struct Policy {
  std::uint64_t quota = 0;
  std::uint64_t window_s = 0;  // 0: there is none, it is about requests in flight

  friend bool operator==(const Policy&, const Policy&) = default;
};

// Of a limit whose amount and capacity are in force. A capacity above the amount is stated with the
// time that it takes to come back, so that no more than the quota is ever left. A period below a
// second is stated as its rate per second. Months and years are the longest there are.
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
// The same as a text: the rule's name where that is all, else in `room`, cut where there is none.
[[nodiscard]] std::string_view name_of(const LimitView& view, std::span<char> room) noexcept;

// Of an op that is decided and not settled yet. A request that a block refused has one view, of the
// block, since its limits were not asked. The last view is kept: nearly all ops have one limit, and
// an answer looks at it several times.
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

  // The one that binds: refused rather than allowed, `never` first, then the longest wait; allowed,
  // the least that is left, then the longest until it is whole.
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

// The value of Retry-After: whole seconds, rounded up, at least one. Nothing for requests that
// pass, and where waiting does not help.
[[nodiscard]] std::optional<std::uint64_t> retry_after_s(const engine::Op& op) noexcept;

}  // namespace sluice::frontend
