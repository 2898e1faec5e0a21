#include "store/local/stored_limit.h"

#include "store/local/state_codec.h"
#include <sluice/core/uniform.h>
#include <sluice/int128.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace sluice::store {
namespace {

// Numbers of blocks differ unless two of one key were made in the same microsecond, 73 minutes or a
// multiple of that apart.
std::uint32_t fresh_nonce(Now now) noexcept {
  const auto micros = static_cast<std::uint64_t>(now.mono.time_since_epoch().count()) >> 10U;
  return static_cast<std::uint32_t>(micros) | 1U;
}

// ---- operations -------------------------------------------------------------------------------

template <class State>
Outcome take(State& state, const core::Step<State>& step) noexcept {
  state = step.state;
  return {.decision = step.decision, .receipt = step.receipt};
}

// Changes a small state.
template <class Kind>
Outcome operate(const Kind& limit, Held<Kind>& held, const Operation& operation, Now now) noexcept {
  switch (operation.action) {
    case Action::decide: return take(held.state, step(limit, held.state, now, operation.cost));
    case Action::charge: return take(held.state, charge(limit, held.state, now, operation.cost));
    case Action::refund: {
      const Receipt& receipt = operation.receipt;
      const bool ours = receipt.edition == 0 || receipt.edition == held.nonce;
      if (!ours) break;
      const auto before = held.state;
      held.state = refund(limit, before, now, receipt, operation.cost);
      if constexpr (kIsMeter<Kind>) {
        // No charge lies behind the newest one: taking it out as a whole moves no other charge, and
        // the state still fits into a word. Requests that come one after another end like that.
        const bool newest = receipt.mark == static_cast<std::int64_t>(before.tat + before.refunded);
        const bool moved = meter_settled(limit.meter, before, ticks(limit, now)) != before;
        if (newest && !moved && operation.cost >= receipt.cost) {
          held.state.refunded = before.refunded;
        }
      }
      break;
    }
    case Action::renew:
      if constexpr (std::is_same_v<Kind, core::ConcurrencyLimit>) {
        return take(held.state,
                    core::concurrency_renew(limit, held.state, now.mono, operation.receipt));
      }
      break;
  }
  Outcome outcome = {.decision = step(limit, held.state, now, 0).decision, .receipt = {}};
  if (operation.action == Action::renew) outcome.receipt = operation.receipt;
  return outcome;
}

// Changes a large state in place.
template <class Kind>
Outcome operate(const Kind& limit, Unpacked<Kind>& large, const Operation& operation,
                Now now) noexcept {
  switch (operation.action) {
    case Action::decide: return step(limit, large.view(), now, operation.cost);
    case Action::charge: return charge(limit, large.view(), now, operation.cost);
    case Action::refund: refund(limit, large.view(), now, operation.receipt, operation.cost); break;
    case Action::renew: break;
  }
  Outcome outcome = step(limit, large.view(), now, 0);
  if (operation.action == Action::renew) outcome.receipt = operation.receipt;
  return outcome;
}

// Capped to a span that can be added to an instant: only damage exceeds it.
Debt debt_of(const Decision& decision) noexcept {
  return {.used = decision.limit - decision.remaining,
          .of = decision.limit,
          .lasts = std::min(decision.reset_after, -Nanos{kFirstInstant})};
}

// A block must outlive the receipts of the word before it, so these count as usage, too.
template <class Kind>
Debt debt_of(const Kind& limit, const Held<Kind>& held, Now now) noexcept {
  core::StateFor<Kind> state = held.state;
  if constexpr (kIsMeter<Kind>) {
    if (held.nonce != 0 && ahead(limit, held.word_end, now) > ahead(limit, state.tat, now)) {
      state.tat = held.word_end;
    }
  }
  return debt_of(step(limit, state, now, 0).decision);
}

bool state_fits(std::int64_t width, unsigned bits, Nanos matters) noexcept {
  if (bits > 56) return false;
  const Int128 half_range = Int128{width} << (63U - bits);
  return half_range >= Int128{(matters + kSweepRange).count()};
}

}  // namespace

// ---- the limit --------------------------------------------------------------------------------

StoredLimit::Layout StoredLimit::layout_of(const core::CompiledLimit& limit) noexcept {
  const auto divided = [](Cost amount, unsigned counts, Nanos width, Nanos matters) {
    const auto bits = static_cast<unsigned>(std::bit_width(amount));
    return Layout{.counts = static_cast<std::uint8_t>(counts),
                  .count_bits = static_cast<std::uint8_t>(bits),
                  .width = width.count(),
                  .fits = state_fits(width.count(), counts * bits, matters)};
  };
  return std::visit(
      [&]<class Kind>(const Kind& of) -> Layout {
        if constexpr (std::is_same_v<Kind, core::WindowLimit>) {
          // Calendar windows begin on whole seconds.
          const Nanos width = of.calendar ? Nanos{std::chrono::seconds{1}} : of.period;
          return divided(of.amount, 1, width, of.calendar ? core::kPeriodMax : of.period);
        } else if constexpr (std::is_same_v<Kind, core::FirstRequestLimit>) {
          return divided(of.amount, 1, Nanos{1}, of.period);
        } else if constexpr (std::is_same_v<Kind, core::CounterLimit>) {
          return divided(of.amount, 2, of.period, 2 * of.period);
        } else if constexpr (std::is_same_v<Kind, core::ConcurrencyLimit>) {
          return divided(of.amount, 2, of.slot_ttl, 2 * of.slot_ttl);
        } else {
          return {.fits = kIsMeter<Kind>};
        }
      },
      limit);
}

Parsed<StoredLimit> StoredLimit::from(const Limit& limit) {
  Parsed<core::CompiledLimit> compiled = core::compile(limit);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  StoredLimit stored;
  stored.limit_ = limit;
  stored.compiled_ = *std::move(compiled);
  stored.layout_ = layout_of(stored.compiled_);
  stored.cell_meter_ = CellMeter::of(limit);
  std::visit(
      [&stored]<class Kind>(const Kind& of) {
        stored.uses_wall_ =
            std::is_same_v<Kind, core::IntervalLimit> || std::is_same_v<Kind, core::WindowLimit> ||
            std::is_same_v<Kind, core::CounterLimit> || std::is_same_v<Kind, core::BucketsLimit>;
        if constexpr (std::is_same_v<Kind, core::GcraLimit>) {
          stored.drain_ = core::gcra_wait(of, of.meter.full);
        } else if constexpr (std::is_same_v<Kind, core::IntervalLimit>) {
          stored.drain_ = of.period * (ceil_div(of.meter.capacity, of.amount) + 1);
        } else if constexpr (std::is_same_v<Kind, core::WindowLimit>) {
          stored.drain_ = of.calendar ? core::kPeriodMax : of.period;
        } else if constexpr (std::is_same_v<Kind, core::ConcurrencyLimit>) {
          stored.drain_ = 2 * of.slot_ttl;
        } else {
          stored.drain_ = 2 * of.period;
        }
      },
      stored.compiled_);
  return stored;
}

Stepped StoredLimit::step_other(std::uint64_t& word, Now now, Cost cost, Decision& decision,
                                Receipt& receipt) const noexcept {
  return std::visit(
      [&]<class Kind>(const Kind& of) noexcept {
        if constexpr (kIsLarge<Kind>) {
          return Stepped::not_at_all;
        } else {
          const auto state = Codec<Kind>::from_word(of, layout_, word, now);
          const auto step = core::step(of, state, now, cost);
          std::uint64_t after = word;
          if (!(step.state == state)) {
            const std::optional<std::uint64_t> packed = Codec<Kind>::to_word(layout_, step.state);
            if (!packed) return Stepped::not_at_all;
            after = *packed;
          }
          decision = step.decision;
          receipt = step.receipt;
          return written(word, after);
        }
      },
      compiled_);
}

bool StoredLimit::expired(std::uint64_t word, Now now) const noexcept {
  if (const auto* gcra = std::get_if<core::GcraLimit>(&compiled_)) {
    return ahead(*gcra, word, now) <= 0;
  }
  return debt(word, now).lasts == Nanos{0};
}

Debt StoredLimit::debt(std::uint64_t word, Now now) const noexcept {
  return std::visit(
      [&]<class Kind>(const Kind& of) noexcept -> Debt {
        if constexpr (kIsLarge<Kind>)
          return {};  // their words are idle
        else
          return debt_of(of, {.state = Codec<Kind>::from_word(of, layout_, word, now)}, now);
      },
      compiled_);
}

StoredLimit::Applied StoredLimit::apply(const Operation& operation, StateBuffer& state,
                                        Now now) const noexcept {
  return std::visit(
      [&]<class Kind>(const Kind& of) noexcept -> Applied {
        if constexpr (kIsLarge<Kind>) {
          Unpacked<Kind> large{of, state};
          const auto before = large.traces();
          const Outcome outcome = operate<Kind>(of, large, operation, now);
          if (large.traces() == before) return {.outcome = outcome, .changed = false};
          large.pack(state);
          return {.outcome = outcome, .changed = true};
        } else {
          const Held<Kind> before = Codec<Kind>::load(of, layout_, state, now);
          Held<Kind> after = before;
          Outcome outcome = operate<Kind>(of, after, operation, now);
          const bool changed = after.state != before.state;
          if constexpr (kIsMeter<Kind>) {
            if (after.nonce == 0 && after.state.refunded != 0) {
              after.nonce = fresh_nonce(now);
              after.word_end = before.state.tat;
            }
          }
          if (changed) Codec<Kind>::store(layout_, after, state);
          if (outcome.receipt.cost > 0) outcome.receipt.edition = after.nonce;
          return {.outcome = outcome, .changed = changed};
        }
      },
      compiled_);
}

Debt StoredLimit::debt(const StateBuffer& state, Now now) const noexcept {
  return std::visit(
      [&]<class Kind>(const Kind& of) noexcept -> Debt {
        if constexpr (kIsLarge<Kind>) {
          Unpacked<Kind> large{of, state};
          return debt_of(core::step(of, large.view(), now, 0).decision);
        } else {
          return debt_of(of, Codec<Kind>::load(of, layout_, state, now), now);
        }
      },
      compiled_);
}

void StoredLimit::carry_over(const StoredLimit& from, StateBuffer& state, Now now,
                             OnChange on_edit) const noexcept {
  const OnChange change = change_from(from, on_edit);
  const bool carried = std::visit(
      [&]<class From, class To>(const From& before, const To& after) noexcept {
        if constexpr (!std::is_same_v<From, To>) {
          return false;
        } else if (!same_grid(before, after)) {
          return false;
        } else if constexpr (kIsLarge<To>) {
          Unpacked<To> large{before, state};
          convert(before, after, large.view(), now, change);
          large.pack(state);
          return true;
        } else {
          Held<To> held = Codec<To>::load(before, from.layout_, state, now);
          const Debt owed = debt_of(before, held, now);
          held.state = convert(before, after, held.state, now, change);
          if constexpr (kIsMeter<To>) {
            if (held.state.refunded != 0) {
              // Receipts of the limit before may return with that limit: their marks must be in the
              // past when this state has expired.
              held.nonce = fresh_nonce(now);
              const Now later{.mono = now.mono + owed.lasts, .wall_offset = now.wall_offset};
              held.word_end = ticks(after, later);
            }
          }
          Codec<To>::store(layout_, held, state);
          return true;
        }
      },
      from.compiled_, compiled_);
  if (carried) return;

  const Debt owed = from.debt(state, now);
  const std::uint64_t capacity = core::capacity(limit_);
  const Cost kept = core::converted_count(static_cast<Cost>(owed.of), static_cast<Cost>(capacity),
                                          static_cast<Cost>(owed.used), change);
  state.set(idle(now));
  (void)apply({.action = Action::charge, .cost = kept, .receipt = {}}, state, now);
}

bool StoredLimit::honours(const StoredLimit& issuer, OnChange on_edit) const noexcept {
  const OnChange change = change_from(issuer, on_edit);
  return std::visit(
      [&]<class From, class To>(const From& before, const To& after) noexcept {
        if constexpr (!std::is_same_v<From, To>)
          return false;
        else
          return same_grid(before, after) && receipts_survive(before, after, change);
      },
      issuer.compiled_, compiled_);
}

}  // namespace sluice::store
