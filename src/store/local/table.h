// The counter table: every key with usage has a 16-byte slot, and a decision is one exchange of it.
//
// Layout. An array of groups of 128 bytes, two cache lines of four slots. The first half of a key's
// digest picks a line (its upper bits), and three more groups for when that one's is full; the
// lower bits are the fingerprint. A slot is a key word and a state word
// (store/local/stored_limit.h):
//
//     key word   36 bits of fingerprint | 2 of choice | wide | tentative | 24 of limit number + 1
//
// A key word of 0 marks an empty slot. `choice` says which of the key's groups this is; from it and
// the fingerprint the others follow. `wide` says that the state word is the handle of a block
// (store/local/block_pool.h). Lookups continue in the next group only if the group's byte in
// `passed` shows that some key did. The bytes are raised before a slot is placed beyond a group and
// lowered after it has gone, so at worst, after a crash, one is too high and costs a look.
//
// An expired slot is a free slot: nothing is ever deleted. A sweep once in kSweepRange keeps window
// numbers from wrapping.
//
// Insertion. Two threads may insert the same key at once and, not agreeing on which slot is free,
// into different ones. No decision may be made on such a double. Therefore:
//
//   1. Place a tentative slot: the key and, instead of a state, a ticket that no other placement
//      has. No thread decides on a tentative slot.
//   2. Rescan the key's places in order. A confirmed slot of the key, or a tentative one in an
//      earlier place: take the own one back and start over. A tentative one in a later place:
//      remove it; its owner will notice.
//   3. Confirm and charge in one exchange. If it fails, another thread removed the slot: start
//      over.
//
// Of two tentative slots at most one survives the rescans, since each owner looks after it has
// placed its own; a confirmed slot is never joined by another, since a later thread finds it.
// A tentative slot whose owner died, or is slow, is confirmed by the thread that finds it, without
// the owner's charge. There is nothing to merge, because nothing was charged. Every step is one
// exchange, so a process that is killed leaves a valid table behind.
//
// Eviction. When all places are taken, the slot with the least usage, as a share of its capacity,
// is evicted, but only if the newcomer's own share is greater. That share counts for half at most:
// under a limit of one, a single request uses all of it, and a hundred such keys must not evict an
// offender that has used 99 of 100. So a flood of new keys cannot evict an offender. Otherwise
// `on_table_full` decides. `approximate`: the newcomer is counted in cells that it may have to
// share (store/local/approximate_cells.h), and a slot that it gets later begins with the usage in a
// cell of its own. A key whose state finds no block is counted in the same way: its own cell begins
// with what its slot held, and the slot is cleared. The usage of other keys in cells neither
// rejects a newcomer that finds a slot nor helps it to evict. Concurrency cannot be counted there
// and is rejected. `allow` admits it untracked, `reject` rejects it. Each of these decisions is
// counted, and so is usage that is lost by eviction or because it was untracked.
//
// Several limits. All are read first. If all admit, they are charged one after another, and a
// charge that then fails refunds the charges before it. So none is ever exceeded. Under contention
// a request may be rejected although it would have fitted, by no more than the cost in flight.
//
// Thread-safe, between processes too. No call allocates, locks, reads a clock or waits for another
// thread: of threads that interfere with each other, one always makes progress.
#pragma once

#include "base/digest.h"
#include "store/check.h"
#include "store/local/approximate_cells.h"
#include "store/local/atomic16.h"
#include "store/local/block_pool.h"
#include "store/local/stored_limit.h"
#include <sluice/decision.h>
#include <sluice/int128.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::store {

struct TableCounters {
  std::uint64_t inserted = 0;           // slots that were given to a key
  std::uint64_t evicted = 0;            // of them, taken from a key with usage
  std::uint64_t approximated = 0;       // decisions on keys without a slot, made in shared cells
  std::uint64_t untracked = 0;          // requests admitted although there was no room
  std::uint64_t forgiven = 0;           // units of cost lost by eviction, or untracked
  std::uint64_t rejected_for_room = 0;  // requests rejected because there was no room
  std::uint64_t refunds_lost = 0;       // units of cost that refunds could not give back
  std::uint64_t failed_exchanges = 0;   // another thread was faster
};

// The limits by number, for all numbers that slots can hold; null for numbers without a limit.
class LimitSource {
 public:
  using Published = std::atomic<const StoredLimit*>;

  LimitSource() = default;
  LimitSource(const LimitSource&) = delete;
  LimitSource& operator=(const LimitSource&) = delete;
  virtual ~LimitSource() = default;

  [[nodiscard]] const StoredLimit* find(LimitNumber number) const noexcept {
    if (number < published_.size()) [[likely]] {
      const StoredLimit* const limit = published_[number].load(std::memory_order_acquire);
      if (limit != nullptr) [[likely]]
        return limit;
    }
    return find_slow(number);
  }

  // By number, for all numbers that the source assigned; null for some that find() knows.
  [[nodiscard]] const Published* published() const noexcept { return published_.data(); }

 protected:
  [[nodiscard]] virtual const StoredLimit* find_slow(LimitNumber number) const noexcept = 0;

  std::span<const Published> published_;
};

// Where loads and exchanges happen, so that a test can stop a thread at each of them.
struct DirectAccess {
  [[nodiscard]] static Pair load(Pair* at) noexcept { return load16(at); }
  [[nodiscard]] static bool exchange(Pair* at, Pair expected, Pair desired) noexcept {
    return exchange16(at, expected, desired);
  }
  [[nodiscard]] static std::uint64_t load_key(Pair* at) noexcept {
    return std::atomic_ref{at->key}.load(std::memory_order_relaxed);
  }
  [[nodiscard]] static Pair* with_key(Pair* at, std::uint64_t key, Pair* otherwise) noexcept {
    return if_key(at, key, otherwise);
  }
  [[nodiscard]] static std::uint64_t load_state(Pair* at) noexcept {
    return std::atomic_ref{at->state}.load(std::memory_order_relaxed);
  }
};

template <class Access>
class BasicTable {
 public:
  static constexpr std::size_t kSlotsPerLine = 4;
  static constexpr std::size_t kSlotsPerGroup = 8;
  static constexpr std::size_t kChoices = 4;
  static constexpr std::size_t kChecksMax = 64;

  // Memory of the caller, all zeros to begin with.
  struct Memory {
    std::span<Pair> slots;           // aligned to 128 bytes; groups coprime to 6
    std::span<std::uint8_t> passed;  // one for each group
    // Whole groups, the first for their header. Without any, newcomers are admitted untracked.
    std::span<std::uint64_t> cells;
  };
  // The greatest number of groups, up to the given one, that spreads the choices of a key.
  [[nodiscard]] static constexpr std::size_t groups_within(std::size_t groups) noexcept {
    while (groups % 2 == 0 || groups % 3 == 0) --groups;
    return groups;
  }

  BasicTable(Memory memory, const LimitSource& limits, BlockPool& blocks,
             std::uint64_t tickets) noexcept
      : memory_(memory),
        lines_(memory.slots.size() / kSlotsPerLine),
        known_limits_(limits.published()),
        limits_(limits),
        blocks_(blocks),
        cells_(memory.cells),
        ticket_(tickets) {}

  [[nodiscard]] Answer decide(const Check& check, Now now) noexcept;
  void decide(const Check& check, Now now, Answer& answer) noexcept;
  [[nodiscard]] bool admits(const Check& check, Now now) noexcept;  // the same, yes or no

  // Charges a cost that can no longer be rejected.
  Answer force(const Check& check, Now now) noexcept;

  // Up to `check.cost` of a charge; `check.limit` is not needed.
  void refund(const Check& check, const Charge& charge, Now now) noexcept;

  // Concurrency: renews a lease. The returned charge replaces it; its cost is 0 if the lease had
  // lapsed.
  [[nodiscard]] Charge renew(const Check& check, const Charge& lease, Now now) noexcept;

  // One after another; the memory of later checks is prefetched while earlier ones are decided.
  void decide_batch(std::span<const Check> checks, Now now, std::span<Answer> answers) noexcept;

  // All or nothing; true if admitted. At most kChecksMax checks, each key once. When one rejects,
  // the answers of the others are valid without this request.
  [[nodiscard]] bool decide_all(std::span<const Check> checks, Now now,
                                std::span<Answer> answers) noexcept;

  // Inlined, or GCC finds that it does nothing and leaves it out.
  [[gnu::always_inline]] void prefetch(const Digest& key) const noexcept {
    __builtin_prefetch(memory_.slots.data() + line_of(key) * kSlotsPerLine, 1);
  }
  [[gnu::always_inline]] void prefetch_group(const Digest& key) const noexcept {
    const std::size_t line = line_of(key);
    __builtin_prefetch(memory_.slots.data() + line * kSlotsPerLine, 1);
    __builtin_prefetch(memory_.slots.data() + (line ^ 1U) * kSlotsPerLine, 1);
  }

  // ---- for operators --------------------------------------------------------------------------

  struct Entry {
    std::uint64_t fingerprint = 0;  // of the digest: fingerprint_of
    LimitNumber limit = 0;
    Decision decision;  // of a request of cost 0
  };
  [[nodiscard]] static std::uint64_t fingerprint_of(const Digest& key) noexcept;
  [[nodiscard]] static LimitNumber limit_number(std::uint64_t key_word) noexcept {
    return static_cast<LimitNumber>((key_word & kLimitMask) - 1);
  }
  [[nodiscard]] std::optional<Entry> read(const Digest& key, Now now) noexcept;
  [[nodiscard]] std::optional<Entry> read_slot(std::size_t slot, Now now) noexcept;
  bool forget(const Digest& key) noexcept;  // whether it was there
  [[nodiscard]] std::size_t slots() const noexcept { return memory_.slots.size(); }
  [[nodiscard]] TableCounters counters() const noexcept;
  // When a key last found no room; the beginning of time: never.
  [[nodiscard]] MonoTime last_full() const noexcept {
    return MonoTime{Nanos{last_full_.load(std::memory_order_relaxed)}};
  }

  // The cells that newcomers share, and how many of them have usage.
  [[nodiscard]] std::size_t cells() const noexcept { return cells_.size(); }
  std::size_t cells_in_use(Now now) noexcept { return cells_.busy(now) ? cells_.sweep(now) : 0; }
  // The same, to be called at least once in ApproximateCells::kSweepWithin, in use or not.
  std::size_t sweep_cells(Now now) noexcept { return cells_.sweep(now); }
  // Before other threads join, for memory that no process used for so long.
  void drop_cells_drained_within(Nanos unattended) noexcept {
    cells_.drop_drained_within(unattended);
  }

  // Clears slots that have expired, or whose limit is unknown or named by `drop`. Returns how many
  // are left. May be called in parts.
  template <class Drop>
  std::size_t sweep(std::size_t first, std::size_t last, Now now, Drop&& drop) noexcept;

  // After a crash, before other processes join: makes `passed` exact.
  void recount_passed() noexcept;

  [[nodiscard]] bool holds(std::size_t slot, Handle handle) noexcept;
  template <class Visit>
  void for_each_handle(Visit&& visit) noexcept {
    for (Pair& slot : memory_.slots) {
      const Pair pair = Access::load(&slot);
      if ((pair.key & (kWide | kTentative)) == kWide) {
        visit(number_of(&slot), Handle::from(pair.state));
      }
    }
  }

 private:
  static constexpr std::uint64_t kLimitMask = (std::uint64_t{1} << 24U) - 1;
  [[nodiscard]] static std::uint64_t limit_bits(LimitNumber number) noexcept { return number + 1; }
  static constexpr std::uint64_t kTentative = std::uint64_t{1} << 24U;
  static constexpr std::uint64_t kWide = std::uint64_t{1} << 25U;
  static constexpr unsigned kChoiceShift = 26;
  static constexpr std::uint64_t kChoiceMask = std::uint64_t{3} << kChoiceShift;
  static constexpr std::uint64_t kTagMask = ~((std::uint64_t{1} << 28U) - 1);
  [[nodiscard]] static std::uint64_t tag_of(const Digest& key) noexcept { return key.low << 28U; }

  // A newcomer's share of its capacity, at most half: it evicts no key that has used as much.
  [[nodiscard]] static std::uint64_t newcomer_share(const Debt& debt) noexcept {
    return std::min(debt.share(), Debt::kWhole / 2);
  }

  // How far a key's groups lie apart. From the fingerprint alone, so that a slot's other groups
  // follow from the slot. Never 0: with a number of groups that 2 and 3 do not divide, the four
  // choices of a key then differ.
  [[nodiscard]] static std::size_t stride_of(std::uint64_t tag, std::size_t groups) noexcept {
    const std::uint64_t mixed = tag * 0x9e3779b97f4a7c15ULL;
    return 1 + static_cast<std::size_t>(Uint128{mixed} * (groups - 1) >> 64U);
  }
  [[nodiscard]] static std::size_t moved(std::size_t group, std::size_t by,
                                         std::size_t groups) noexcept {
    group += by;
    while (group >= groups) group -= groups;
    return group;
  }

  // A key's places in the order of lookup: its line, that line's neighbour, then the other groups.
  struct Places {
    Pair* slots;
    std::uint64_t tag;  // fingerprint, where the key word has it
    std::size_t line;   // 0 or kSlotsPerLine: where to begin in a group
    std::size_t home;   // number of the first group
    std::size_t groups;

    [[nodiscard]] std::size_t group(std::size_t choice) const noexcept {
      if (choice == 0) [[likely]]
        return home;
      return moved(home, choice * stride_of(tag, groups), groups);
    }
    [[nodiscard]] std::size_t slot(std::size_t place) const noexcept {
      return group(place / kSlotsPerGroup) * kSlotsPerGroup + (place + line) % kSlotsPerGroup;
    }
    [[nodiscard]] Pair* at(std::size_t place) const noexcept { return slots + slot(place); }
  };

  [[nodiscard]] std::size_t groups() const noexcept { return memory_.passed.size(); }
  [[nodiscard]] std::size_t line_of(const Digest& key) const noexcept;
  [[nodiscard]] Places places_of(const Digest& key) const noexcept;
  [[nodiscard]] std::uint32_t number_of(const Pair* at) const noexcept {
    return static_cast<std::uint32_t>(at - memory_.slots.data());
  }

  [[nodiscard]] Places places_from(std::size_t slot, std::uint64_t key) const noexcept;

  [[nodiscard]] bool passed(std::size_t group) const noexcept;
  void raise_passed(const Places& places, std::size_t choice) noexcept;
  void lower_passed(const Places& places, std::size_t choice) noexcept;
  void vacated(const Pair* at, Pair before) noexcept;

  struct Found {
    Pair* at = nullptr;  // null: the key has no slot
    std::size_t place = 0;
    Pair pair;
  };
  [[nodiscard]] static unsigned matches_in(Pair* line, std::uint64_t mask,
                                           std::uint64_t bits) noexcept;
  [[nodiscard]] static Pair* find_word(Pair* line, std::uint64_t key) noexcept;
  [[nodiscard]] bool find_in(const Places& places, std::size_t choice, Found& found) noexcept;
  [[nodiscard]] Found find(const Places& places) noexcept;
  [[nodiscard]] Found find_confirmed(const Places& places, const Check& check, Now now) noexcept;

  // An exchange of one word for another. Without initial values: it would take time to write them.
  struct Prepared {
    Pair* at;
    std::uint64_t key;
    std::uint64_t before;
    std::uint64_t after;
  };
  template <class StepWord>
  [[nodiscard]] Stepped prepare(const Check& check, StepWord&& step, Prepared& prepared) noexcept;
  [[nodiscard]] bool carry_out(const Prepared& prepared) noexcept;
  template <class StepWord>
  [[nodiscard]] bool update_at_once(const Check& check, StepWord&& step) noexcept;
  [[nodiscard, gnu::cold, gnu::noinline]] bool admits_slowly(Check check, Now now) noexcept;

  // Answers come by reference: copying them costs more than making them.
  void operate(const Check& check, const Operation& operation, Now now, Answer& answer) noexcept;

  // Each tries once. False: another thread interfered, and the caller tries again.
  [[nodiscard]] bool try_update_slowly(const Found& found, const Check& check,
                                       const Operation& operation, Now now,
                                       Answer& answer) noexcept;
  [[nodiscard]] bool try_insert(const Places& places, const Check& check,
                                const Operation& operation, Now now, Answer& answer) noexcept;

  [[nodiscard]] Charge redeem(const Check& check, const Charge& charge, Operation operation,
                              Now now) noexcept;
  void refund_in_cells(const Check& check, const Charge& charge, Now now) noexcept;
  void miss_refund(const Check& check, const Charge& charge, Now now) noexcept;
  void carry_over(Pair written, const Check& check, StateBuffer& state, Now now) noexcept;
  [[nodiscard]] Answer would_answer(const Check& check, Now now) noexcept;
  [[nodiscard]] Answer peek(Check check, Now now) noexcept;
  void settle_refusal(std::span<const Check> checks, std::span<Answer> answers, Now now) noexcept;

  struct Target {
    Pair* at = nullptr;  // null: all other keys have used as much
    std::size_t place = 0;
    Pair found;
    std::uint64_t forgiven = 0;
    Nanos room_after{0};  // when there is none: until a key's usage has expired
  };
  [[nodiscard]] Target choose_target(const Places& places, std::uint64_t share, Now now) noexcept;
  [[nodiscard]] Debt debt_of(Pair pair, Now now) noexcept;
  [[nodiscard]] bool expired(Pair pair, Now now) noexcept;

  // Whether the tentative slot at a place may be confirmed; takes it back when it may not.
  [[nodiscard]] bool survives(const Places& places, std::size_t place, Pair tentative) noexcept;
  void help(const Places& places, const Found& tentative, const Check& check, Now now) noexcept;
  bool clear(Pair* at, Pair expected) noexcept;

  [[nodiscard]] bool load_state(const Found& found, StateBuffer& state) noexcept;
  enum class Published : std::uint8_t { yes, no_room, interfered };
  [[nodiscard]] Published publish(Pair* at, Pair before, std::uint64_t key,
                                  const StateBuffer& state, const StoredLimit& limit,
                                  const Debt& debt, Now now) noexcept;
  struct Homeless {
    const Found* slot = nullptr;  // whose state finds no block; null: the key has none
    std::uint64_t forgiven = 0;   // units lost if it is admitted untracked
    Nanos room_after{0};          // until there may be room
  };
  [[nodiscard]] bool without_room(const Check& check, const StoredLimit& limit,
                                  const Operation& operation, const Homeless& key, Now now,
                                  Answer& answer) noexcept;
  [[nodiscard]] Published approximate(const Check& check, const StoredLimit& limit,
                                      const Operation& operation, const Found* slot, Now now,
                                      Answer& answer) noexcept;
  [[nodiscard]] static ApproximateCells::Usage held_before(const Answer& answer) noexcept;
  [[nodiscard]] ApproximateCells::Usage carried_for(const Check& check, const StoredLimit& limit,
                                                    Now now) const noexcept;
  [[nodiscard]] bool decided_by_cells(const Places& places, const ApproximateCells::Usage& carried,
                                      const Check& check, const StoredLimit& limit, Now now,
                                      Answer& answer) noexcept;
  static void begin_with(const ApproximateCells::Usage& carried, const StoredLimit& limit,
                         StateBuffer& state, Now now) noexcept;

  [[nodiscard]] bool exchange(Pair* at, Pair expected, Pair desired) noexcept;
  [[nodiscard]] const StoredLimit* limit_of(Pair pair) const noexcept {
    return limits_.find(limit_number(pair.key));
  }
  static void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
    counter.fetch_add(by, std::memory_order_relaxed);
  }

  Memory memory_;
  std::size_t lines_;
  const LimitSource::Published* known_limits_;
  const LimitSource& limits_;
  BlockPool& blocks_;
  ApproximateCells cells_;

  alignas(64) std::atomic<std::uint64_t> ticket_;
  std::atomic<std::uint64_t> inserted_{0};
  std::atomic<std::uint64_t> evicted_{0};
  std::atomic<std::uint64_t> approximated_{0};
  std::atomic<std::uint64_t> untracked_{0};
  std::atomic<std::uint64_t> forgiven_{0};
  std::atomic<std::uint64_t> rejected_for_room_{0};
  std::atomic<std::uint64_t> refunds_lost_{0};
  std::atomic<std::int64_t> last_full_{MonoTime::min().time_since_epoch().count()};
  std::atomic<std::uint64_t> failed_exchanges_{0};
};

using Table = BasicTable<DirectAccess>;

}  // namespace sluice::store
