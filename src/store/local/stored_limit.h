// A limit as the table keeps it: compiled, and with a layout for the states of its keys.
//
// Most states fit into one 64-bit word beside the key: a bucket is one arrival time, a window is a
// number and a count. Window numbers wrap: a slot idle for a month has to be swept (see
// kSweepRange), and limits whose numbers would wrap sooner do not get this form. States that do not
// fit into a word are written as several, into a block (store/local/block_pool.h): logs, slices,
// large counts, and buckets while a refund out of order has to be remembered. Every write can
// change a state's form.
//
// An expired state equals no state: its key is idle.
//
// Buckets and their receipts. A word has no room for `refunded` (core/meter.h), so a state moves to
// a block when that becomes non-zero. A block can be lost with the state, and `refunded` with it.
// Then no state without `refunded` may read the marks of receipts. Two rules prevent that. Receipts
// issued by a block carry the block's number, `nonce`, and no other state accepts them. Receipts
// issued by a word before carry none: the block does not expire before the last of their marks,
// `word_end`, lies in the past, where it is void for any state.
#pragma once

#include "store/check.h"
#include "store/local/cell_meter.h"
#include <sluice/core/compiled_limit.h>
#include <sluice/core/step.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

namespace sluice::store {

using core::Outcome;

// How long a slot may go unswept.
inline constexpr Nanos kSweepRange = std::chrono::hours{24 * 30};

// The largest state: a log of 4096 entries, two words each.
inline constexpr std::size_t kStateWordsMax = 2 * std::size_t{core::kLogAmountMax};

// A state outside the table. Large: each thread keeps one and reuses it.
struct StateBuffer {
  std::uint64_t word = 0;  // the whole state while `size` is 0
  std::size_t size = 0;    // how many of `words` are in use
  std::array<std::uint64_t, kStateWordsMax> words;

  [[nodiscard]] bool is_word() const noexcept { return size == 0; }
  void set(std::uint64_t to) noexcept {
    word = to;
    size = 0;
  }
};

// The usage in a state, which its eviction would lose.
struct Debt {
  std::uint64_t used = 0;  // units of cost, rounded up
  std::uint64_t of = 1;    // the capacity
  Nanos lasts{0};          // until the state has expired; 0: it has

  // Comparable between limits of all sizes.
  [[nodiscard]] std::uint64_t share() const noexcept { return used * kWhole / of; }
  static constexpr std::uint64_t kWhole = 65535;
};

enum class Action : std::uint8_t { decide, charge, refund, renew };

struct Operation {
  Action action = Action::decide;
  Cost cost = 1;    // refund: how much of it
  Receipt receipt;  // refund, renew
};

// The effect of a step on a word. Not at all: the state needs apply().
enum class Stepped : std::uint8_t { not_at_all, unchanged, changed };

class StoredLimit {
 public:
  [[nodiscard]] static Parsed<StoredLimit> from(const Limit& limit);

  [[nodiscard]] const Limit& limit() const noexcept { return limit_; }
  [[nodiscard]] const core::CompiledLimit& compiled() const noexcept { return compiled_; }
  [[nodiscard]] Nanos drain() const noexcept { return drain_; }  // idle for this long: expired

  // How keys without a slot are counted.
  [[nodiscard]] const CellMeter& cell_meter() const noexcept { return cell_meter_; }

  // The limit's own time base, as nanoseconds.
  [[nodiscard]] std::int64_t time(Now now) const noexcept {
    return uses_wall_ ? now.wall().time_since_epoch().count() : now.mono.time_since_epoch().count();
  }

  [[nodiscard]] std::uint64_t idle(Now now) const noexcept {
    const auto* gcra = std::get_if<core::GcraLimit>(&compiled_);
    return gcra != nullptr ? core::gcra_ticks(*gcra, now.mono) : 0;
  }

  // The common case, decided without a buffer: the word becomes the new one.
  [[nodiscard]] Stepped step(std::uint64_t& word, Now now, Cost cost, Decision& decision,
                             Receipt& receipt) const noexcept {
    const auto* gcra = std::get_if<core::GcraLimit>(&compiled_);
    if (gcra == nullptr) [[unlikely]]
      return step_other(word, now, cost, decision, receipt);
    const core::MeterStep step =
        core::meter_step(gcra->meter, {.tat = word}, core::gcra_ticks(*gcra, now.mono), cost);
    if (step.state.refunded != 0) [[unlikely]]
      return Stepped::not_at_all;
    core::gcra_describe(*gcra, step, decision);
    receipt.mark = step.receipt.mark;
    receipt.cost = step.receipt.cost;
    receipt.edition = 0;
    return written(word, step.state.tat);
  }
  // The same for callers that need only the verdict; buckets alone. Changed: it was admitted.
  [[nodiscard]] Stepped admit(std::uint64_t& word, Now now, Cost cost) const noexcept {
    const auto* gcra = std::get_if<core::GcraLimit>(&compiled_);
    if (gcra == nullptr) [[unlikely]]
      return Stepped::not_at_all;
    switch (core::meter_glance(gcra->meter, word, core::gcra_ticks(*gcra, now.mono), cost)) {
      case core::Glance::admitted: return Stepped::changed;
      case core::Glance::rejected: return Stepped::unchanged;
      case core::Glance::unclear: break;
    }
    return Stepped::not_at_all;
  }

  [[nodiscard]] bool expired(std::uint64_t word, Now now) const noexcept;
  [[nodiscard]] Debt debt(std::uint64_t word, Now now) const noexcept;

  // Any operation on any state, in place.
  struct Applied {
    Outcome outcome;
    bool changed = false;
  };
  [[nodiscard]] Applied apply(const Operation& operation, StateBuffer& state,
                              Now now) const noexcept;
  [[nodiscard]] Debt debt(const StateBuffer& state, Now now) const noexcept;

  // Converts the state of a key that another limit wrote into one of this limit.
  void carry_over(const StoredLimit& from, StateBuffer& state, Now now,
                  OnChange on_edit) const noexcept;

  // Whether a receipt of that limit names a charge in states of this one.
  [[nodiscard]] bool honours(const StoredLimit& issuer, OnChange on_edit) const noexcept;

 private:
  // How a word is divided: the upper bits number a window, the others hold one or two counts.
  struct Layout {
    std::uint8_t counts = 0;  // 0: a state never fits, or is not divided
    std::uint8_t count_bits = 0;
    std::int64_t width = 1;  // of a window, in ns
    bool fits = false;
  };
  template <class Kind>
  friend struct Codec;

  [[nodiscard]] Stepped step_other(std::uint64_t& word, Now now, Cost cost, Decision& decision,
                                   Receipt& receipt) const noexcept;
  [[nodiscard]] static Stepped written(std::uint64_t& word, std::uint64_t after) noexcept {
    return std::exchange(word, after) != after ? Stepped::changed : Stepped::unchanged;
  }
  // If one of the two stands in for the other, nothing was edited.
  [[nodiscard]] OnChange change_from(const StoredLimit& other, OnChange on_edit) const noexcept {
    return limit_.stands_in || other.limit_.stands_in ? OnChange::keep : on_edit;
  }
  [[nodiscard]] static Layout layout_of(const core::CompiledLimit& limit) noexcept;

  Limit limit_;
  core::CompiledLimit compiled_;
  Layout layout_;
  Nanos drain_{0};
  bool uses_wall_ = false;
  CellMeter cell_meter_;
};

}  // namespace sluice::store
