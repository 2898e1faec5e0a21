// Counters for keys that find no slot in the table: a fixed sixteenth of the memory.
//
// A key has one group of sixteen cells (two cache lines), each a 64-bit word:
//
//     own (13)     11 bits of tag | 5 of shift | 48 of the instant at which it has drained
//     shared (3)   the instant at which it has drained; one cell for each range of drain times
//
// The first words of the region are its header: the instant at which all cells will have drained.
//
// A key is counted in the cell with its tag. If it has none, a cell that has drained becomes its
// own. If no cell has drained, the key is counted in the shared cell. A cell is given to another
// key only after it has drained.
//
// What moves with a key. The tag proves that the usage in an own cell is the key's, so a slot that
// the key gets begins with it. A key whose slot finds no block for its state gives the slot up, and
// its own cell begins with what the slot held. The usage in a shared cell may be that of any other
// key: it moves nowhere, and neither a slot nor an own cell begins with it. So a flood that fills
// the shared cells rejects no key that finds room elsewhere. A key that shared a cell starts over
// when it moves, which the bound below includes.
//
// A queue in an own cell stays there. While requests wait in it, its key gets no slot: a queue that
// began there would release others at the same instants. A queue in a slot moves to the cell whole.
//
// Bound (1). A key is admitted at most 2 M in any period P, whatever the other keys do, M being
// core::most_admitted(). Let D be what the own scale drains in P (store/local/cell_meter.h), and 0
// for buckets with continuous refill. In any P:
//
//   - Own cells and slots admit at most M + D. The key is counted in one of the two at a time. When
//     it moves to a slot, the slot is charged with the level of the cell; when it gives a slot up,
//     the cell rises at least to what the slot held; both round up. The key comes to a cell in no
//     other way but after its slot has expired, and the cell keeps its level until it has drained.
//     So what was admitted within P is still counted, wherever the key is, but for what slots give
//     back, which M includes, and for the D that cells drain. A continuous bucket drains in the
//     cell as in the slot: the two are one bucket, which admits M.
//   - Shared cells admit at most S, what the shared scale admits at once and drains in P, less one.
//   - S + D <= M, row by row in cell_meter.h: for a continuous bucket S is M and D is 0. For
//     a fixed window of L, S < 3/2 L, D is L / 2 and M is 2 L; the sliding counter and the bucket
//     with refill by interval are alike. For a sliding log or sliding buckets, S < 1/2 L, D is L /
//     2 and M is L. Rounding included, since amounts round up and each of S and D lacks one unit.
//
// A key with a slot that finds neither a block nor a cell of its own keeps the slot and is counted
// in the shared cell, which S covers.
//
// Usage that the table lost by eviction comes on top and is counted as forgiven. Two threads with
// requests of a key that has no slot may disagree about which cells have drained, or about whether
// there is a slot to be had, and place it twice: the charge of the second comes on top, one request
// for each thread.
//
// Bound (2). While the keys in the cells are at most a quarter of the cells, 99 % of the keys that
// use less than half of their limit are always admitted, even if all others use all of theirs and
// came first. A group then has four keys on average. That the other keys of a group take all 13 own
// cells has a probability of 0.03 %, that one of them has the same tag of 0.2 %. Groups of one line
// would not do: of eight cells with five of them own, 5 % of the groups overflow. The simulation is
// approximate_cells_test.cc.
//
// Coverage. All algorithms but concurrency. Requests may be queued. Forced charges saturate at the
// capacity; rejected requests count where the limit says so. An edited limit keeps the time to
// drain, not the units.
//
// Time. The instant in an own cell wraps after 2^48 ticks << shift, 2.4 hours at least: a cell that
// drained long ago would seem to have usage. So cells are swept at least once in kSweepWithin, also
// while none is in use. When a file is opened that no process used for longer, its cells are
// dropped by their age.
//
// Refunds. A charge sits in the backlog of its cell behind all earlier charges, and a refund of an
// earlier charge moves it forward. A cell has no room to remember by how much. If nothing was
// written to the cell since, the charge sits where the receipt says, and the refund takes out all
// of it that has not drained. Otherwise the refund assumes that the charge had nothing before it
// and has been draining ever since: it gives back the charge less what drains between charge and
// refund. So it never gives back units of another charge. The units that it may have kept are
// reported, to be counted.
//
// Thread-safe, between processes too: every change is one exchange of one word. No call allocates,
// locks, or waits for another thread.
#pragma once

#include "base/digest.h"
#include "store/local/cell_meter.h"
#include <sluice/core/step.h>
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::store {

class ApproximateCells {
 public:
  static constexpr std::size_t kCellsPerGroup = 16;
  static constexpr std::size_t kOwnCells = 13;

  // Memory of the caller, all zeros to begin with; a multiple of a group, of which the first is the
  // header. Empty: there are no cells.
  explicit ApproximateCells(std::span<std::uint64_t> words) noexcept
      : words_(words), groups_(words.empty() ? 0 : words.size() / kCellsPerGroup - 1) {}

  [[nodiscard]] bool exist() const noexcept { return groups_ > 0; }
  [[nodiscard]] std::size_t size() const noexcept { return groups_ * kCellsPerGroup; }

  // Whether any cell may have usage: one load.
  [[nodiscard]] bool busy(Now now) const noexcept;

  // The usage that moves with a key.
  struct Usage {
    core::Cost units = 0;  // rounded up, at most the burst
    Nanos queued{0};       // above that, the time that its queue takes to drain
  };
  // What the key's own cell holds.
  [[nodiscard]] Usage own_usage(const Digest& key, const CellMeter& meter, Now now) const noexcept;

  // Requires a cost up to the burst, unless forced, and that the cells exist. `held` is what the
  // slot that the key gives up holds: a cell of its own counts at least that. Whether it is counted
  // there, the receipt says.
  enum class Mode : std::uint8_t { decide, look, force };
  [[nodiscard]] core::Outcome count(const Digest& key, const CellMeter& meter, core::Cost cost,
                                    Mode mode, Now now, const Usage& held) noexcept;
  [[nodiscard]] core::Outcome count(const Digest& key, const CellMeter& meter, core::Cost cost,
                                    Mode mode, Now now) noexcept {
    return count(key, meter, cost, mode, now, {});
  }

  // A receipt of count(), and whether it is of the key's own cell.
  [[nodiscard]] static bool issued(const core::Receipt& receipt) noexcept {
    return receipt.edition != 0 && receipt.edition % 2 == 0;
  }
  [[nodiscard]] static bool issued_by_own(const core::Receipt& receipt) noexcept {
    return issued(receipt) && cell_of(receipt) < kOwnCells;
  }

  // In units of cost, rounded up. A charge that has drained has nothing left to give back.
  struct Refunded {
    core::Cost held = 0;  // undrained units of the charge, at most
    core::Cost lost = 0;  // of these, units that were not given back
  };
  Refunded refund(const Digest& key, const CellMeter& meter, const core::Receipt& receipt,
                  core::Cost cost, Now now) noexcept;

  void forget(const Digest& key) noexcept;  // its own cell only

  // Empties cells that have drained: once in kSweepWithin at least, before their instants wrap.
  // Returns how many have usage.
  std::size_t sweep(Now now) noexcept;
  static constexpr Nanos kSweepWithin = std::chrono::hours{2};

  // For memory that was left alone for so long, before it is used again: empties the own cells that
  // have drained since.
  void drop_drained_within(Nanos unattended) noexcept;

 private:
  struct Place {
    std::uint64_t* cell = nullptr;
    std::uint64_t seen = 0;
    std::int64_t level = 0;  // ticks
    bool own = false;        // or shared
  };
  struct Home {
    std::uint64_t* group = nullptr;
    std::uint64_t tag = 0;
  };

  // A receipt's edition: 0 | 5 bits of cell + 1 | 26 of the level after the charge. Even and not 0,
  // which no state in a slot issues.
  static constexpr unsigned kReceiptCellBits = 6;
  static constexpr int kReceiptLevelBits = 26;
  [[nodiscard]] static std::size_t cell_of(const core::Receipt& receipt) noexcept {
    return (receipt.edition & ((1U << kReceiptCellBits) - 1)) / 2 - 1;
  }
  [[nodiscard]] static core::Receipt receipt_for(std::size_t cell, std::uint64_t word,
                                                 core::Cost cost, std::int64_t after,
                                                 const CellScale& scale) noexcept;

  [[nodiscard]] Home home_of(const Digest& key) const noexcept;
  [[nodiscard]] static Place own_place(const Home& home, Now now) noexcept;
  [[nodiscard]] static Place place_in(const Home& home, const CellMeter& meter, Now now) noexcept;
  [[nodiscard]] static std::uint64_t word_of(const Home& home, bool own, const CellMeter& meter,
                                             std::int64_t level, Now now) noexcept;
  void keep_busy(std::int64_t level, Now now) noexcept;

  std::span<std::uint64_t> words_;
  std::size_t groups_;
};

}  // namespace sluice::store
