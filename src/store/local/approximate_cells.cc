#include "store/local/approximate_cells.h"

#include <sluice/int128.h>

#include <algorithm>
#include <atomic>
#include <bit>

namespace sluice::store {
namespace {

constexpr unsigned kInstantBits = 48;
constexpr unsigned kShiftBits = 5;
constexpr std::uint64_t kInstantMask = (std::uint64_t{1} << kInstantBits) - 1;
constexpr std::uint64_t kShiftMask = (std::uint64_t{1} << kShiftBits) - 1;
constexpr std::uint64_t kTags = 2047;  // 1 to 2047, so that no cell in use is 0

// Above every level that a limit can have. A higher level is damage, or an instant that wrapped.
constexpr std::int64_t kTicksMax = std::int64_t{1} << 62U;
constexpr std::int64_t kOwnTicksMax = std::int64_t{1} << 37U;  // before the shift

std::uint64_t load_cell(const std::uint64_t& cell,
                        std::memory_order order = std::memory_order_relaxed) noexcept {
  return std::atomic_ref<const std::uint64_t>{cell}.load(order);
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

std::uint64_t cell_tag(std::uint64_t word) noexcept { return word >> (kInstantBits + kShiftBits); }

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

std::int64_t cell_level(bool own, std::uint64_t word, Now now) noexcept {
  return own ? own_level(word, now) : shared_level(word, now);
}

// A wait rounds up.
Nanos drain_time(std::int64_t ticks) noexcept {
  return Nanos{ceil_div(ticks, std::int64_t{1} << kCellTickBits)};
}

Decision level_decision(const CellMeter& meter, const CellScale& scale,
                        std::int64_t level) noexcept {
  const std::int64_t room = std::max<std::int64_t>(scale.capacity - level, 0);
  return {.limit = meter.burst,
          .remaining = static_cast<std::uint64_t>(room / scale.unit),
          .reset_after = drain_time(level)};
}

std::int64_t saturated_level(const CellMeter& meter, const CellScale& scale, std::int64_t level,
                             core::Cost cost) noexcept {
  const std::int64_t risen = level + std::int64_t{std::min(cost, meter.burst)} * scale.unit;
  return std::max(level, std::min(risen, scale.capacity));
}

core::Cost units_of(std::int64_t ticks, const CellScale& scale) noexcept {
  return static_cast<core::Cost>(ceil_div(ticks, scale.unit));
}

// The level that such usage makes.
std::int64_t level_of(const ApproximateCells::Usage& usage, const CellScale& scale) noexcept {
  const std::int64_t queued = usage.queued.count() << kCellTickBits;
  return std::min(std::int64_t{usage.units} * scale.unit + queued, scale.full);
}

// How many bits of a level a receipt leaves out.
unsigned level_quantum_bits(const CellScale& scale, int kept) noexcept {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(scale.full)));
  return static_cast<unsigned>(std::max(bits - kept, 0));
}

}  // namespace

// ---- places -----------------------------------------------------------------------------------

ApproximateCells::Home ApproximateCells::home_of(const Digest& key) const noexcept {
  // Not the bits that choose the table's groups: keys without a slot share those of full groups.
  std::uint64_t mixed = (key.low ^ key.low >> 32U) * 0xd6e8feb86659fd93ULL;
  mixed = (mixed ^ mixed >> 32U) * 0xd6e8feb86659fd93ULL;
  mixed ^= mixed >> 32U;
  const auto group = static_cast<std::size_t>(Uint128{mixed} * groups_ >> 64U);
  return {.group = words_.data() + (1 + group) * kCellsPerGroup, .tag = 1 + mixed % kTags};
}

// The key's own cell, else one that can become it, else none. Two threads may have placed a key
// twice at the same time: of two cells with its tag, the fuller one.
ApproximateCells::Place ApproximateCells::own_place(const Home& home, Now now) noexcept {
  Place place;
  Place drained;
  for (std::size_t i = 0; i < kOwnCells; ++i) {
    std::uint64_t* const cell = home.group + i;
    const std::uint64_t seen = load_cell(*cell);
    const std::int64_t level = own_level(seen, now);
    if (level == 0) {
      if (drained.cell == nullptr) drained = {.cell = cell, .seen = seen, .own = true};
    } else if (cell_tag(seen) == home.tag && level > place.level) {
      place = {.cell = cell, .seen = seen, .level = level, .own = true};
    }
  }
  return place.cell != nullptr ? place : drained;
}

ApproximateCells::Place ApproximateCells::place_in(const Home& home, const CellMeter& meter,
                                                   Now now) noexcept {
  const Place own = own_place(home, now);
  if (own.cell != nullptr) return own;
  std::uint64_t* const shared = home.group + kOwnCells + meter.range;
  const std::uint64_t seen = load_cell(*shared);
  return {.cell = shared, .seen = seen, .level = shared_level(seen, now)};
}

std::uint64_t ApproximateCells::word_of(const Home& home, bool own, const CellMeter& meter,
                                        std::int64_t level, Now now) noexcept {
  if (!own) return cell_ticks(now) + static_cast<std::uint64_t>(level);
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

// Set some time ahead, so that it is seldom written, but not beyond what counts as a level.
void ApproximateCells::keep_busy(std::int64_t level, Now now) noexcept {
  std::uint64_t seen = load_cell(words_[0]);
  while (shared_level(seen, now) < level) {
    const std::int64_t ahead = std::min(level + level / 4, kTicksMax - 1);
    const auto until = cell_ticks(now) + static_cast<std::uint64_t>(ahead);
    if (exchange_cell(words_.data(), seen, until)) return;
    seen = load_cell(words_[0]);
  }
}

ApproximateCells::Usage ApproximateCells::own_usage(const Digest& key, const CellMeter& meter,
                                                    Now now) const noexcept {
  if (!meter.exists() || !busy(now)) return {};
  const Place place = own_place(home_of(key), now);
  const std::int64_t level = std::min(place.level, meter.own.full);
  return {.units = std::min(units_of(level, meter.own), meter.burst),
          .queued = drain_time(std::max<std::int64_t>(level - meter.own.capacity, 0))};
}

core::Outcome ApproximateCells::count(const Digest& key, const CellMeter& meter, core::Cost cost,
                                      Mode mode, Now now, const Usage& held) noexcept {
  const Home home = home_of(key);
  while (true) {
    const Place place = place_in(home, meter, now);
    const CellScale& scale = place.own ? meter.own : meter.shared;
    // A forced charge may cost more than the burst; it saturates, and must not overflow here.
    const std::int64_t rise = std::int64_t{std::min(cost, meter.burst)} * scale.unit;
    const std::int64_t level = std::min(place.level, scale.full);
    const std::int64_t before = place.own ? std::max(level, level_of(held, scale)) : level;
    const bool admitted = before + rise <= scale.full || cost == 0;
    std::int64_t after = admitted ? before + rise : before;
    if (mode == Mode::force) after = saturated_level(meter, scale, before, cost);

    core::Outcome outcome{.decision = level_decision(meter, scale, after), .receipt = {}};
    if (!admitted && mode != Mode::force) {
      outcome.decision.verdict = Verdict::rejected;
      outcome.decision.retry_after = drain_time(before + rise - scale.full);
    } else if (cost > 0) {  // a peek waits for nothing
      outcome.decision.delay = drain_time(std::max<std::int64_t>(after - scale.capacity, 0));
    }
    // A level above this limit's, of a key with another limit, stays as it is.
    const bool writes = mode == Mode::force || (mode == Mode::decide && admitted);
    if (!writes || after <= level) return outcome;

    const std::uint64_t word = word_of(home, place.own, meter, after, now);
    keep_busy(after, now);  // first: a thread that finds the cells idle must not miss this one
    if (!exchange_cell(place.cell, place.seen, word)) continue;
    // A forced charge that saturated may be refunded for as much as the level rose.
    const auto charged =
        mode == Mode::force ? static_cast<core::Cost>((after - before) / scale.unit) : cost;
    const auto cell = static_cast<std::size_t>(place.cell - home.group);
    outcome.receipt = receipt_for(cell, word, charged, after, scale);
    return outcome;
  }
}

// ---- refunds ----------------------------------------------------------------------------------

// The level rounds down: if no time has passed, all of the charge is given back. Later, that may be
// too much by 2^-25 of the capacity.
core::Receipt ApproximateCells::receipt_for(std::size_t cell, std::uint64_t word, core::Cost cost,
                                            std::int64_t after, const CellScale& scale) noexcept {
  const auto level =
      static_cast<std::uint32_t>(after >> level_quantum_bits(scale, kReceiptLevelBits));
  return {.mark = static_cast<std::int64_t>(word),
          .cost = cost,
          .edition = level << kReceiptCellBits | static_cast<std::uint32_t>(2 + 2 * cell)};
}

ApproximateCells::Refunded ApproximateCells::refund(const Digest& key, const CellMeter& meter,
                                                    const core::Receipt& receipt, core::Cost cost,
                                                    Now now) noexcept {
  const std::size_t i = cell_of(receipt);
  if (!exist() || !meter.exists() || i >= kCellsPerGroup) return {};
  const Home home = home_of(key);
  std::uint64_t* const cell = home.group + i;
  const bool own = i < kOwnCells;
  const CellScale& scale = own ? meter.own : meter.shared;
  const std::int64_t charged = std::int64_t{std::min(receipt.cost, meter.burst)} * scale.unit;
  const std::int64_t wanted =
      std::int64_t{std::min({cost, receipt.cost, meter.burst})} * scale.unit;

  // Where the charge ends if no charge before it was refunded, and if all of them were.
  const auto word = static_cast<std::uint64_t>(receipt.mark);
  const std::int64_t latest_end = cell_level(own, word, now);
  const std::int64_t after = std::int64_t{receipt.edition >> kReceiptCellBits}
                             << level_quantum_bits(scale, kReceiptLevelBits);
  const std::int64_t earliest_end = latest_end - after + charged;
  while (true) {
    const std::uint64_t seen = load_cell(*cell);
    const bool of_this_key = !own || cell_tag(seen) == home.tag;
    const std::int64_t level = of_this_key ? cell_level(own, seen, now) : 0;
    // The delays of queued requests stay as they are: charges count as drained up to the last of
    // them.
    const std::int64_t last_release = std::max<std::int64_t>(level - scale.capacity, 0);
    const auto held_until = [&](std::int64_t end) {
      return std::min(wanted, std::clamp<std::int64_t>(end - last_release, 0, charged));
    };
    const std::int64_t held = held_until(latest_end);
    const std::int64_t given =
        std::min({seen == word ? held : held_until(earliest_end), level, held});
    const std::int64_t left = level - given;
    if (given == 0 ||
        exchange_cell(cell, seen, left == 0 ? 0 : word_of(home, own, meter, left, now))) {
      return {.held = units_of(held, scale), .lost = units_of(held - given, scale)};
    }
  }
}

void ApproximateCells::forget(const Digest& key) noexcept {
  if (!exist()) return;
  const Home home = home_of(key);
  for (std::size_t i = 0; i < kOwnCells; ++i) {
    const std::uint64_t seen = load_cell(home.group[i]);
    if (cell_tag(seen) == home.tag) (void)exchange_cell(home.group + i, seen, 0);
  }
}

std::size_t ApproximateCells::sweep(Now now) noexcept {
  if (!exist() || load_cell(words_[0]) == 0) return 0;  // never used
  std::size_t used = 0;
  for (std::size_t i = kCellsPerGroup; i < words_.size(); ++i) {
    // Acquire: the header, written before the cell, is then as new as the cell. Once all cells have
    // drained by the header, an instant that lies ahead has wrapped.
    const std::uint64_t seen = load_cell(words_[i], std::memory_order_acquire);
    if (seen == 0) continue;
    if (cell_level(i % kCellsPerGroup < kOwnCells, seen, now) > 0 && busy(now)) {
      ++used;
    } else {
      (void)exchange_cell(&words_[i], seen, 0);
    }
  }
  return used;
}

// Shared cells do not wrap.
void ApproximateCells::drop_drained_within(Nanos unattended) noexcept {
  if (!exist() || load_cell(words_[0]) == 0) return;
  const Int128 passed = Int128{unattended.count()} << kCellTickBits;
  for (std::size_t i = kCellsPerGroup; i < words_.size(); ++i) {
    const std::uint64_t seen = load_cell(words_[i]);
    if (seen == 0 || i % kCellsPerGroup >= kOwnCells) continue;
    const Int128 drains_within = Int128{kOwnTicksMax} << cell_shift(seen);
    if (passed >= drains_within) (void)exchange_cell(&words_[i], seen, 0);
  }
}

}  // namespace sluice::store
