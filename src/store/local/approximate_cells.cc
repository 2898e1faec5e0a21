#include "store/local/approximate_cells.h"

#include <sluice/int128.h>

#include <algorithm>
#include <atomic>

namespace sluice::store {
namespace {

constexpr unsigned kInstantBits = 48;
constexpr unsigned kShiftBits = 6;
constexpr std::uint64_t kInstantMask = (std::uint64_t{1} << kInstantBits) - 1;
constexpr std::uint64_t kShiftMask = (std::uint64_t{1} << kShiftBits) - 1;
constexpr std::uint64_t kTags = 1023;  // 1 to 1023, so that no cell in use is 0

// Above every level that a limit can have. More than that is damage, or an instant that wrapped.
constexpr std::int64_t kTicksMax = std::int64_t{1} << 62U;
constexpr std::int64_t kOwnTicksMax = std::int64_t{1} << 37U;  // before the shift

std::uint64_t load_cell(const std::uint64_t& cell) noexcept {
  return std::atomic_ref<const std::uint64_t>{cell}.load(std::memory_order_relaxed);
}

bool exchange_cell(std::uint64_t* cell, std::uint64_t expected, std::uint64_t desired) noexcept {
  return std::atomic_ref{*cell}.compare_exchange_strong(expected, desired);
}

std::uint64_t cell_ticks(Now now) noexcept {
  return static_cast<std::uint64_t>(now.mono.time_since_epoch().count()) << kCellTickBits;
}

// Now in ticks << shift, of which a key's own cell keeps the lower 48 bits.
std::uint64_t shifted_ticks(Now now, unsigned shift) noexcept {
  const std::int64_t nanos = now.mono.time_since_epoch().count();
  const auto ticks = shift >= kCellTickBits
                         ? static_cast<std::uint64_t>(nanos >> (shift - kCellTickBits))
                         : static_cast<std::uint64_t>(nanos) << (kCellTickBits - shift);
  return ticks & kInstantMask;
}

unsigned cell_shift(std::uint64_t word) noexcept {
  return static_cast<unsigned>(word >> kInstantBits & kShiftMask);
}

// Ticks until an own cell has drained.
std::int64_t own_level(std::uint64_t word, Now now) noexcept {
  if (word == 0) return 0;
  const unsigned shift = cell_shift(word);
  const std::uint64_t apart = (word & kInstantMask) - shifted_ticks(now, shift);
  constexpr unsigned kSpare = 64 - kInstantBits;
  const std::int64_t ahead = static_cast<std::int64_t>(apart << kSpare) >> kSpare;
  if (ahead <= 0 || ahead > kOwnTicksMax) return 0;
  const Int128 ticks = Int128{ahead} << shift;
  return ticks < kTicksMax ? static_cast<std::int64_t>(ticks) : 0;
}

std::int64_t shared_level(std::uint64_t word, Now now) noexcept {
  const auto ahead = static_cast<std::int64_t>(word - cell_ticks(now));
  return word != 0 && ahead > 0 && ahead < kTicksMax ? ahead : 0;
}

// A wait rounds up.
Nanos drain_time(std::int64_t ticks) noexcept {
  return Nanos{ceil_div(ticks, std::int64_t{1} << kCellTickBits)};
}

Decision level_decision(const CellMeter& meter, std::int64_t level) noexcept {
  const std::int64_t room = std::max<std::int64_t>(meter.capacity - level, 0);
  return {.limit = meter.burst,
          .remaining = static_cast<std::uint64_t>(room / meter.unit),
          .reset_after = drain_time(level)};
}

std::int64_t saturated_level(const CellMeter& meter, std::int64_t level, core::Cost cost) noexcept {
  const std::int64_t risen = level + std::int64_t{std::min(cost, meter.burst)} * meter.unit;
  return std::max(level, std::min(risen, meter.capacity));
}

}  // namespace

// ---- places -----------------------------------------------------------------------------------

ApproximateCells::Home ApproximateCells::home_of(const Digest& key) const noexcept {
  // Other bits than those that choose the table's groups: the keys that come here have full ones.
  std::uint64_t mixed = (key.low ^ key.low >> 32U) * 0xd6e8feb86659fd93ULL;
  mixed = (mixed ^ mixed >> 32U) * 0xd6e8feb86659fd93ULL;
  mixed ^= mixed >> 32U;
  const auto line = static_cast<std::size_t>(Uint128{mixed} * lines_ >> 64U);
  return {.line = words_.data() + (1 + line) * kCellsPerLine, .tag = 1 + mixed % kTags};
}

// The cell that counts a key. Of two with its tag, which threads that came first at the same time
// may have placed, the fuller one.
ApproximateCells::Place ApproximateCells::place_in(const Home& home, const CellMeter& meter,
                                                   Now now) noexcept {
  Place place;
  Place drained;
  for (std::size_t i = 0; i < kOwnCells; ++i) {
    std::uint64_t* const cell = home.line + i;
    const std::uint64_t seen = load_cell(*cell);
    const std::int64_t level = own_level(seen, now);
    if (level == 0) {
      if (drained.cell == nullptr) drained = {.cell = cell, .seen = seen, .own = true};
    } else if (seen >> (kInstantBits + kShiftBits) == home.tag && level > place.level) {
      place = {.cell = cell, .seen = seen, .level = level, .own = true, .has_tag = true};
    }
  }
  if (place.cell != nullptr) return place;
  std::uint64_t* const shared = home.line + kOwnCells + meter.range;
  const std::uint64_t seen = load_cell(*shared);
  const std::int64_t level = shared_level(seen, now);
  if (drained.cell == nullptr) return {.cell = shared, .seen = seen, .level = level};
  drained.level = level;
  return drained;
}

std::uint64_t ApproximateCells::word_of(const Home& home, const Place& place,
                                        const CellMeter& meter, std::int64_t level,
                                        Now now) noexcept {
  if (!place.own) return cell_ticks(now) + static_cast<std::uint64_t>(level);
  const unsigned shift = meter.shift;
  const std::int64_t rounded = ceil_div(level, std::int64_t{1} << shift);
  const std::uint64_t instant = shifted_ticks(now, shift) + static_cast<std::uint64_t>(rounded);
  return home.tag << (kInstantBits + kShiftBits) | std::uint64_t{shift} << kInstantBits |
         (instant & kInstantMask);
}

// ---- counting ---------------------------------------------------------------------------------

bool ApproximateCells::busy(Now now) const noexcept {
  return exist() && shared_level(load_cell(words_[0]), now) > 0;
}

// Some time ahead, so that it is seldom written.
void ApproximateCells::keep_busy(std::int64_t level, Now now) noexcept {
  std::uint64_t seen = load_cell(words_[0]);
  while (shared_level(seen, now) < level) {
    const auto until = cell_ticks(now) + static_cast<std::uint64_t>(level + level / 4);
    if (exchange_cell(words_.data(), seen, until)) return;
    seen = load_cell(words_[0]);
  }
}

ApproximateCells::Level ApproximateCells::level(const Digest& key, const CellMeter& meter,
                                                Now now) const noexcept {
  if (!meter.exists() || !busy(now)) return {};
  const Place place = place_in(home_of(key), meter, now);
  const std::int64_t used = std::min(ceil_div(place.level, meter.unit), std::int64_t{meter.burst});
  return {.ticks = place.level, .units = static_cast<core::Cost>(used), .own = place.has_tag};
}

core::Outcome ApproximateCells::count(const Digest& key, const CellMeter& meter, core::Cost cost,
                                      Mode mode, Now now) noexcept {
  const Home home = home_of(key);
  const std::int64_t rise = std::int64_t{cost} * meter.unit;
  while (true) {
    const Place place = place_in(home, meter, now);
    const std::int64_t before = std::min(place.level, meter.full);
    const bool admitted = before + rise <= meter.full || cost == 0;
    std::int64_t after = admitted ? before + rise : before;
    if (mode == Mode::force) after = saturated_level(meter, before, cost);

    core::Outcome outcome{.decision = level_decision(meter, after), .receipt = {}};
    if (admitted || mode == Mode::force) {
      outcome.decision.delay = drain_time(std::max<std::int64_t>(after - meter.capacity, 0));
    } else {
      outcome.decision.verdict = Verdict::rejected;
      outcome.decision.retry_after = drain_time(before + rise - meter.full);
    }
    // A level above this limit's, of a key with another one, is left as it is.
    if (mode == Mode::look || after <= before) return outcome;

    const std::uint64_t word = word_of(home, place, meter, after, now);
    keep_busy(after, now);  // before: who sees the cells idle must not miss this one
    if (!exchange_cell(place.cell, place.seen, word)) continue;
    // A forced charge that saturated may be refunded for what it rose by.
    const auto charged =
        mode == Mode::force ? static_cast<core::Cost>((after - before) / meter.unit) : cost;
    const auto cell = static_cast<std::uint32_t>(place.cell - home.line);
    outcome.receipt = {
        .mark = static_cast<std::int64_t>(word), .cost = charged, .edition = 2 + 2 * cell};
    return outcome;
  }
}

// A charge that nothing follows ends where the cell does.
void ApproximateCells::refund(const Digest& key, const CellMeter& meter,
                              const core::Receipt& receipt, core::Cost cost, Now now) noexcept {
  const std::size_t i = receipt.edition / 2 - 1;
  if (!exist() || !meter.exists() || i >= kCellsPerLine) return;
  const Home home = home_of(key);
  std::uint64_t* const cell = home.line + i;
  const auto word = static_cast<std::uint64_t>(receipt.mark);
  const bool own = i < kOwnCells;
  const std::int64_t level = own ? own_level(word, now) : shared_level(word, now);
  const std::int64_t given = std::int64_t{std::min({cost, receipt.cost, meter.burst})} * meter.unit;
  const std::int64_t left = std::max<std::int64_t>(level - given, 0);
  const Place place{.cell = cell, .seen = word, .level = level, .own = own};
  (void)exchange_cell(cell, word, left == 0 ? 0 : word_of(home, place, meter, left, now));
}

void ApproximateCells::forget(const Digest& key) noexcept {
  if (!exist()) return;
  const Home home = home_of(key);
  for (std::size_t i = 0; i < kOwnCells; ++i) {
    const std::uint64_t seen = load_cell(home.line[i]);
    if (seen >> (kInstantBits + kShiftBits) == home.tag)
      (void)exchange_cell(home.line + i, seen, 0);
  }
}

std::size_t ApproximateCells::sweep(Now now) noexcept {
  std::size_t used = 0;
  for (std::size_t i = kCellsPerLine; i < words_.size(); ++i) {
    const std::uint64_t seen = load_cell(words_[i]);
    if (seen == 0) continue;
    const bool own = i % kCellsPerLine < kOwnCells;
    if ((own ? own_level(seen, now) : shared_level(seen, now)) > 0) {
      ++used;
    } else {
      (void)exchange_cell(&words_[i], seen, 0);
    }
  }
  return used;
}

}  // namespace sluice::store
