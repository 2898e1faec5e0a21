#include "store/local/stored_limit.h"

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

template <class Kind>
constexpr bool kIsMeter =
    std::is_same_v<Kind, core::GcraLimit> || std::is_same_v<Kind, core::IntervalLimit>;
template <class Kind>
constexpr bool kIsLarge =
    std::is_same_v<Kind, core::LogLimit> || std::is_same_v<Kind, core::BucketsLimit>;

// A small state, and what a bucket's block knows besides.
template <class Kind>
struct Held {
  core::state_of<Kind> state;
  std::uint32_t nonce = 0;     // 0: held in a word
  std::uint64_t word_end = 0;  // block: the last mark that a word may have issued
};

// Where large states are unpacked; one per thread, never on the stack of a coroutine.
thread_local std::array<core::LogEntry, core::kLogAmountMax> t_ring;
thread_local std::array<Cost, core::kSlicesMax + 1> t_counters;

std::uint64_t ticks(const core::GcraLimit& limit, Now now) noexcept {
  return core::gcra_ticks(limit, now.mono);
}
std::uint64_t ticks(const core::IntervalLimit& limit, Now now) noexcept {
  return static_cast<std::uint64_t>(
      floor_div(now.wall().time_since_epoch().count(), limit.period.count()) * limit.amount);
}

// Memory may be damaged. What no limit can have written is not counted with: the steps rely on
// instants that can be added to, and on counts whose sum fits.
constexpr std::int64_t kFirstInstant = -2 * core::kDrainMax.count();
constexpr std::int64_t kLastInstant =
    Nanos{kWallTimeEnd.time_since_epoch()}.count() - kFirstInstant;
bool is_possible(std::int64_t number, std::int64_t width) noexcept {
  std::int64_t instant = 0;
  return !__builtin_mul_overflow(number, width, &instant) && instant >= kFirstInstant &&
         instant <= kLastInstant;
}
bool is_possible(std::uint64_t count) noexcept { return count <= core::kAmountMax; }

// How far a tick lies ahead.
template <class Kind>
std::int64_t ahead(const Kind& limit, std::uint64_t tick, Now now) noexcept {
  return static_cast<std::int64_t>(tick - ticks(limit, now));
}

// Ticks of a bucket on the monotonic clock wrap, and any of them can be.
std::uint64_t possible_tick(const core::GcraLimit& /*limit*/, std::uint64_t tick,
                            Now /*now*/) noexcept {
  return tick;
}
std::uint64_t possible_tick(const core::IntervalLimit& limit, std::uint64_t tick,
                            Now now) noexcept {
  const Int128 scaled = Int128{static_cast<std::int64_t>(tick)} * limit.period.count();
  const bool possible = scaled >= Int128{kFirstInstant} * limit.amount &&
                        scaled <= Int128{kLastInstant} * limit.amount;
  return possible ? tick : ticks(limit, now);
}

// Numbers of blocks differ unless two of one key were made in the same microsecond, 73 minutes or a
// multiple of that apart.
std::uint32_t fresh_nonce(Now now) noexcept {
  const auto micros = static_cast<std::uint64_t>(now.mono.time_since_epoch().count()) >> 10U;
  return static_cast<std::uint32_t>(micros) | 1U;
}

}  // namespace

// ---- words ------------------------------------------------------------------------------------

// Codec<Kind> writes small states as words and reads them back.
template <class Kind>
struct Codec {
  using Layout = StoredLimit::Layout;
  using State = core::state_of<Kind>;

  static std::uint64_t mask(const Layout& layout) noexcept {
    return (std::uint64_t{1} << layout.count_bits) - 1;
  }

  // The number nearest to `now` whose low bits these are.
  static std::int64_t number(const Layout& layout, std::uint64_t word, std::int64_t now) noexcept {
    const unsigned spare = unsigned{layout.counts} * layout.count_bits;
    const std::uint64_t apart = (word >> spare) - static_cast<std::uint64_t>(now);
    return now + (static_cast<std::int64_t>(apart << spare) >> spare);
  }

  static State from_word(const Kind& limit, const Layout& layout, std::uint64_t word,
                         Now now) noexcept {
    if constexpr (kIsMeter<Kind>) {
      return {.tat = possible_tick(limit, word, now)};
    } else if constexpr (std::is_same_v<State, core::WindowState>) {
      const auto count = static_cast<Cost>(word & mask(layout));
      const std::int64_t of = number(layout, word, now_number(limit, layout, now));
      if (count == 0 || !is_possible(of, layout.width)) return {};
      return {.start = of * layout.width, .count = count};
    } else {
      const auto current = static_cast<Cost>(word & mask(layout));
      const auto previous = static_cast<Cost>(word >> layout.count_bits & mask(layout));
      const std::int64_t of = number(layout, word, now_number(limit, layout, now));
      if ((current == 0 && previous == 0) || !is_possible(of, layout.width)) return {};
      return {of, previous, current};
    }
  }

  static std::optional<std::uint64_t> to_word(const Layout& layout, const State& state) noexcept {
    if constexpr (kIsMeter<Kind>) {
      if (state.refunded != 0) return std::nullopt;
      return state.tat;
    } else if constexpr (std::is_same_v<State, core::WindowState>) {
      if (state.count == 0) return 0;
      if (!layout.fits || state.count > mask(layout)) return std::nullopt;
      const auto wrapped = static_cast<std::uint64_t>(state.start / layout.width);
      return wrapped << layout.count_bits | state.count;
    } else {
      const auto& [first, previous, current] = state;
      if (previous == 0 && current == 0) return 0;
      if (!layout.fits || previous > mask(layout) || current > mask(layout)) return std::nullopt;
      const std::uint64_t counts = std::uint64_t{previous} << layout.count_bits | current;
      return static_cast<std::uint64_t>(first) << (2U * layout.count_bits) | counts;
    }
  }

  static Held<Kind> load(const Kind& limit, const Layout& layout, const StateBuffer& buffer,
                         Now now) noexcept {
    if (buffer.is_word()) return {.state = from_word(limit, layout, buffer.word, now)};
    const auto& words = buffer.words;
    if constexpr (kIsMeter<Kind>) {
      Held<Kind> held{.state = {.tat = possible_tick(limit, words[0], now), .refunded = words[1]},
                      .nonce = static_cast<std::uint32_t>(words[2]),
                      .word_end = possible_tick(limit, words[3], now)};
      const bool drained =
          ahead(limit, held.state.tat, now) <= 0 && ahead(limit, held.word_end, now) <= 0;
      if (drained) held = {.state = {.tat = ticks(limit, now)}};
      return held;
    } else if constexpr (std::is_same_v<State, core::WindowState>) {
      const auto start = static_cast<std::int64_t>(words[0]);
      if (!is_possible(start, 1) || !is_possible(words[1])) return {};
      return {.state = {.start = start, .count = static_cast<Cost>(words[1])}};
    } else {
      const auto of = static_cast<std::int64_t>(words[0]);
      const auto previous = static_cast<Cost>(words[1] >> 32U);
      const auto current = static_cast<Cost>(words[1]);
      const bool possible =
          is_possible(of, layout.width) && is_possible(previous) && is_possible(current);
      if (!possible) return {};
      return {.state = {of, previous, current}};
    }
  }

  static void store(const Layout& layout, const Held<Kind>& held, StateBuffer& buffer) noexcept {
    const std::optional<std::uint64_t> word =
        held.nonce == 0 ? to_word(layout, held.state) : std::nullopt;
    if (word) return buffer.set(*word);
    auto& words = buffer.words;
    if constexpr (kIsMeter<Kind>) {
      words[0] = held.state.tat;
      words[1] = held.state.refunded;
      words[2] = held.nonce;
      words[3] = held.word_end;
      buffer.size = 4;
    } else if constexpr (std::is_same_v<State, core::WindowState>) {
      words[0] = static_cast<std::uint64_t>(held.state.start);
      words[1] = held.state.count;
      buffer.size = 2;
    } else {
      const auto& [first, previous, current] = held.state;
      words[0] = static_cast<std::uint64_t>(first);
      words[1] = std::uint64_t{previous} << 32U | current;
      buffer.size = 2;
    }
  }

 private:
  static std::int64_t now_number(const Kind& /*limit*/, const Layout& layout, Now now) noexcept {
    constexpr bool kWall =
        std::is_same_v<Kind, core::WindowLimit> || std::is_same_v<Kind, core::CounterLimit>;
    const std::int64_t base =
        kWall ? now.wall().time_since_epoch().count() : now.mono.time_since_epoch().count();
    return floor_div(base, layout.width);
  }
};

namespace {

// ---- large states -----------------------------------------------------------------------------

// A log as words: its entries from the oldest on, two words each.
struct UnpackedLog {
  core::LogHeader header;

  // Memory may be damaged: sizes and sums are counted, not believed, and entries that do not fit
  // the others are left out.
  UnpackedLog(const core::LogLimit& limit, const StateBuffer& buffer) noexcept {
    if (buffer.is_word()) return;
    for (std::size_t i = 0; i < buffer.size / 2; ++i) {
      const core::LogEntry one{.at = static_cast<std::int64_t>(buffer.words[2 * i]),
                               .cost = static_cast<Cost>(buffer.words[2 * i + 1])};
      const bool ascends = header.size == 0 || one.at >= t_ring[header.size - 1].at;
      const bool fits = one.cost > 0 && one.cost <= limit.amount - header.sum;
      if (!ascends || !fits || !is_possible(one.at, 1)) continue;
      t_ring[header.size++] = one;
      header.sum += one.cost;
    }
  }

  [[nodiscard]] core::LogView view() noexcept { return {.header = &header, .ring = t_ring}; }

  [[nodiscard]] const core::LogEntry& entry(std::size_t i) const noexcept {
    return t_ring[(header.first + i) % t_ring.size()];
  }

  // Every write shows in one of these.
  using Traces = std::array<std::int64_t, 4>;
  [[nodiscard]] Traces traces() const noexcept {
    if (header.size == 0) return {};
    const core::LogEntry& newest = entry(header.size - 1);
    return {header.size, header.sum, newest.at, newest.cost};
  }

  void pack(StateBuffer& buffer) const noexcept {
    if (header.size == 0) return buffer.set(0);
    for (std::size_t i = 0; i < header.size; ++i) {
      buffer.words[2 * i] = static_cast<std::uint64_t>(entry(i).at);
      buffer.words[2 * i + 1] = entry(i).cost;
    }
    buffer.size = 2 * std::size_t{header.size};
  }
};

// Slices as words: the number of the newest, then the counters, two a word.
struct UnpackedBuckets {
  static std::size_t words_for(std::size_t counters) noexcept { return 1 + (counters + 1) / 2; }

  core::BucketsHeader header;
  std::span<Cost> counters;

  UnpackedBuckets(const core::BucketsLimit& limit, const StateBuffer& buffer) noexcept
      : counters(std::span{t_counters}.first(static_cast<std::size_t>(limit.slices) + 1)) {
    std::fill(counters.begin(), counters.end(), Cost{0});
    const auto newest = static_cast<std::int64_t>(buffer.words[0]);
    const bool usable =
        buffer.size == words_for(counters.size()) && is_possible(newest, limit.width.count());
    if (!usable) return;
    header.newest = newest;
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const auto count = static_cast<Cost>(buffer.words[1 + i / 2] >> (32 * (i % 2)));
      if (!is_possible(std::uint64_t{header.sum} + count)) continue;
      counters[i] = count;
      header.sum += count;
    }
  }

  [[nodiscard]] core::BucketsView view() noexcept {
    return {.header = &header, .counters = counters};
  }

  using Traces = std::array<std::int64_t, 3>;
  [[nodiscard]] Traces traces() const noexcept {
    const auto size = static_cast<std::int64_t>(counters.size());
    const std::int64_t place = header.newest - floor_div(header.newest, size) * size;
    return {header.newest, header.sum, counters[static_cast<std::size_t>(place)]};
  }

  void pack(StateBuffer& buffer) const noexcept {
    if (header.sum == 0) return buffer.set(0);
    buffer.words[0] = static_cast<std::uint64_t>(header.newest);
    buffer.size = words_for(counters.size());
    for (std::size_t i = 1; i < buffer.size; ++i) buffer.words[i] = 0;
    for (std::size_t i = 0; i < counters.size(); ++i) {
      buffer.words[1 + i / 2] |= std::uint64_t{counters[i]} << (32 * (i % 2));
    }
  }
};

template <class Kind>
using Unpacked =
    std::conditional_t<std::is_same_v<Kind, core::LogLimit>, UnpackedLog, UnpackedBuckets>;

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
        // Nothing lies behind the newest charge: taking it out as a whole moves no other, and the
        // state still fits into a word. That is how requests end that come one after another.
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

// Only damage lasts longer than can be added to an instant.
Debt debt_of(const Decision& decision) noexcept {
  return {.used = decision.limit - decision.remaining,
          .of = decision.limit,
          .lasts = std::min(decision.reset_after, -Nanos{kFirstInstant})};
}

// A block must outlive the receipts of the word before it, so these count as debt, too.
template <class Kind>
Debt debt_of(const Kind& limit, const Held<Kind>& held, Now now) noexcept {
  core::state_of<Kind> state = held.state;
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
          return divided(of.amount, 2, of.ttl, 2 * of.ttl);
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
          stored.drain_ = 2 * of.ttl;
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
          return {};  // a word of these is idle
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
                             OnChange change) const noexcept {
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
              // Receipts of the limit before may come back with it: they have to be in the past by
              // the time this state is.
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

bool StoredLimit::honours(const StoredLimit& issuer, OnChange change) const noexcept {
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
