// States as words: how the table's memory encodes the algorithms' states. For stored_limit.cc only.
//
// Memory may be damaged, by a crash of the machine or by manual edits. Everything read here is
// verified: a value that no limit can have written counts as none.
#pragma once

#include "store/local/stored_limit.h"
#include <sluice/core/uniform.h>
#include <sluice/int128.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace sluice::store {

template <class Kind>
constexpr bool kIsMeter =
    std::is_same_v<Kind, core::GcraLimit> || std::is_same_v<Kind, core::IntervalLimit>;
template <class Kind>
constexpr bool kIsLarge =
    std::is_same_v<Kind, core::LogLimit> || std::is_same_v<Kind, core::BucketsLimit>;

// A small state, and the extra fields of a bucket's block.
template <class Kind>
struct Held {
  core::StateFor<Kind> state;
  std::uint32_t nonce = 0;     // 0: stored in a word
  std::uint64_t word_end = 0;  // block: the last mark that a word may have issued
};

// Where large states are unpacked; one per thread, never on the stack of a coroutine.
inline thread_local std::array<core::LogEntry, core::kLogAmountMax> t_ring;
inline thread_local std::array<Cost, core::kSlicesMax + 1> t_counters;

[[nodiscard]] inline std::uint64_t ticks(const core::GcraLimit& limit, Now now) noexcept {
  return core::gcra_ticks(limit, now.mono);
}
[[nodiscard]] inline std::uint64_t ticks(const core::IntervalLimit& limit, Now now) noexcept {
  return static_cast<std::uint64_t>(
      floor_div(now.wall().time_since_epoch().count(), limit.period.count()) * limit.amount);
}

// Memory may be damaged. Values that no limit can have written are ignored: the steps rely on
// instants that can be added to, and on counts whose sum fits.
constexpr std::int64_t kFirstInstant = -2 * core::kDrainMax.count();
constexpr std::int64_t kLastInstant =
    Nanos{kWallTimeEnd.time_since_epoch()}.count() - kFirstInstant;
[[nodiscard]] inline bool is_possible(std::int64_t number, std::int64_t width) noexcept {
  std::int64_t instant = 0;
  return !__builtin_mul_overflow(number, width, &instant) && instant >= kFirstInstant &&
         instant <= kLastInstant;
}
[[nodiscard]] inline bool is_possible(std::uint64_t count) noexcept {
  return count <= core::kAmountMax;
}

// How far a tick lies ahead.
template <class Kind>
[[nodiscard]] std::int64_t ahead(const Kind& limit, std::uint64_t tick, Now now) noexcept {
  return static_cast<std::int64_t>(tick - ticks(limit, now));
}

// Ticks of a bucket on the monotonic clock wrap, so any value is possible.
[[nodiscard]] inline std::uint64_t possible_tick(const core::GcraLimit& /*limit*/,
                                                 std::uint64_t tick, Now /*now*/) noexcept {
  return tick;
}
[[nodiscard]] inline std::uint64_t possible_tick(const core::IntervalLimit& limit,
                                                 std::uint64_t tick, Now now) noexcept {
  const Int128 scaled = Int128{static_cast<std::int64_t>(tick)} * limit.period.count();
  const bool possible = scaled >= Int128{kFirstInstant} * limit.amount &&
                        scaled <= Int128{kLastInstant} * limit.amount;
  return possible ? tick : ticks(limit, now);
}

// ---- words ------------------------------------------------------------------------------------

// Codec<Kind> writes small states as words and reads them back.
template <class Kind>
struct Codec {
  using Layout = StoredLimit::Layout;
  using State = core::StateFor<Kind>;

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

// ---- large states -----------------------------------------------------------------------------

// A log as words: its entries from the oldest on, two words each.
struct UnpackedLog {
  core::LogHeader header;

  // Memory may be damaged: sizes and sums are recomputed, and entries that do not fit the others
  // are dropped.
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

}  // namespace sluice::store
