// Counters for keys that find no slot in the table: a fixed sixteenth of the memory.
//
// A key has one line of eight cells, each a 64-bit word:
//
//     own (5)      10 bits of tag | 6 of shift | 48 of the instant at which it has drained
//     shared (3)   the instant at which it has drained; one cell for each range of drain times
//
// The first words of the region are its header: the instant at which all cells will have drained.
//
// A key is counted in the cell with its tag; if it has none, in a drained cell, which becomes
// its own; if there is none, in the shared cell. A cell that a key moves to begins with the level
// of the one it moves from, and a cell is given to another key only after it has drained, so no
// usage is forgotten. What is counted too much comes from keys that share a cell.
//
// Bounds. (1) The cells admit a key no more than its meter does (store/local/cell_meter.h): the
// burst and what drains. A slot that the key is given later begins with the cell's level. Both
// together, and whatever the other keys do, a key is admitted at most twice core::most_admitted()
// in any period; for buckets it is once. Two threads that bring a key's first requests at the same
// time may disagree about which cells have drained, and place it twice: what the second one charged
// then comes on top, at most one request for each thread.
// (2) While the keys in the cells are at most a quarter of the cells, 99 % of the keys that use
// less than half of their limit are always admitted, even if all the others use all of theirs: a
// line then has two keys on average, and five cells of their own. The simulation is
// approximate_cells_test.cc.
//
// Coverage. All algorithms but concurrency. Windows are counted as buckets: see cell_meter.h.
// Requests may be queued. Forced charges saturate at the capacity; rejected requests count where
// the limit says so. A refund takes its charge back as long as nothing was charged to the cell
// after it, and is void otherwise. An edited limit keeps the time to drain, not the units.
//
// Thread-safe, between processes too: every change is one exchange of one word. No call allocates,
// locks, or waits for another thread.
#pragma once

#include "base/digest.h"
#include "store/local/cell_meter.h"
#include <sluice/core/step.h>
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::store {

class ApproximateCells {
 public:
  static constexpr std::size_t kCellsPerLine = 8;
  static constexpr std::size_t kOwnCells = 5;

  // Memory of the caller, all zeros at first; a multiple of a line, of which the first is the
  // header. Empty: there are no cells.
  explicit ApproximateCells(std::span<std::uint64_t> words) noexcept
      : words_(words), lines_(words.empty() ? 0 : words.size() / kCellsPerLine - 1) {}

  [[nodiscard]] bool exist() const noexcept { return lines_ > 0; }
  [[nodiscard]] std::size_t size() const noexcept { return lines_ * kCellsPerLine; }

  // Whether any of them may count something: one load.
  [[nodiscard]] bool busy(Now now) const noexcept;

  // What a key without a slot has used, at most.
  struct Level {
    std::int64_t ticks = 0;
    core::Cost units = 0;  // rounded up, at most the burst
    bool own = false;      // false: other keys may have used it
  };
  [[nodiscard]] Level level(const Digest& key, const CellMeter& meter, Now now) const noexcept;

  // Requires a cost up to the burst, and that the cells exist.
  enum class Mode : std::uint8_t { decide, look, force };
  [[nodiscard]] core::Outcome count(const Digest& key, const CellMeter& meter, core::Cost cost,
                                    Mode mode, Now now) noexcept;

  // A receipt of count().
  [[nodiscard]] static bool issued(const core::Receipt& receipt) noexcept {
    return receipt.edition != 0 && receipt.edition % 2 == 0;
  }
  void refund(const Digest& key, const CellMeter& meter, const core::Receipt& receipt,
              core::Cost cost, Now now) noexcept;

  void forget(const Digest& key) noexcept;  // its own cell only

  // Empties cells that drained long ago, before their instants wrap; answers how many count
  // something.
  std::size_t sweep(Now now) noexcept;

 private:
  struct Place {
    std::uint64_t* cell = nullptr;
    std::uint64_t seen = 0;
    std::int64_t level = 0;  // ticks
    bool own = false;        // or shared
    bool has_tag = false;    // it was the key's own before
  };
  struct Home {
    std::uint64_t* line = nullptr;
    std::uint64_t tag = 0;
  };

  [[nodiscard]] Home home_of(const Digest& key) const noexcept;
  [[nodiscard]] static Place place_in(const Home& home, const CellMeter& meter, Now now) noexcept;
  [[nodiscard]] static std::uint64_t word_of(const Home& home, const Place& place,
                                             const CellMeter& meter, std::int64_t level,
                                             Now now) noexcept;
  void keep_busy(std::int64_t level, Now now) noexcept;

  std::span<std::uint64_t> words_;
  std::size_t lines_;
};

}  // namespace sluice::store
