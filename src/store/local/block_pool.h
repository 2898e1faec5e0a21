// Blocks: room for states that do not fit into a slot's word.
//
// A slot then holds a handle, the block's place and version. A block is never changed while a slot
// refers to it: a decision writes the new state into another block and exchanges the slot's handle.
// So the slot's one exchange commits states of any size, and a process that is killed leaves the
// old state or the new one. Readers copy a block and load the slot again: if it holds the same
// handle, the copy is one whole state.
//
// Each block opens with a pair that is only changed by exchanges:
//
//     free               any process may take it
//     held by a process  it is being written, or was when the process died
//     linked to a slot   in use while that slot holds its handle; then left over, as good as free
//
// and a version that counts the changes. There is no list of free blocks that a killed process
// could break. A thread that needs a block tries the one it freed last, then a few others in turn.
// That also finds blocks linked to slots that have changed or expired. The blocks of a killed
// process are freed by the process that recovers them.
//
// Sizes are powers of two from 64 bytes on, and one for the largest log. A size gets memory in
// slabs, the last ones only if it has none yet: a flood of small states must not leave a growing
// one without room. When all are assigned, a slab without tenants gets another size.
//
// Thread-safe, between processes too. No call allocates or waits.
#pragma once

#include "store/local/atomic16.h"
#include "store/local/stored_limit.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::store {

// A block's place and version: the value that a slot holds.
struct Handle {
  std::uint32_t place = 0;  // in units of kBlockBytesMin
  std::uint32_t version = 0;

  [[nodiscard]] static constexpr Handle from(std::uint64_t word) noexcept {
    return {.place = static_cast<std::uint32_t>(word >> 32U),
            .version = static_cast<std::uint32_t>(word)};
  }
  [[nodiscard]] constexpr std::uint64_t word() const noexcept {
    return std::uint64_t{place} << 32U | version;
  }
  friend constexpr bool operator==(const Handle&, const Handle&) = default;
};

// A block's content beside the state, so that a long log need not be read to learn whether it has
// expired.
struct Summary {
  std::int64_t expires = 0;  // on the limit's time base
  std::uint32_t used = 0;    // when it was written; by now it may be less
};

// A process that uses the mapping; generations tell it from earlier processes with its number.
struct Participant {
  std::uint32_t number = 0;
  std::uint32_t generation = 1;

  friend constexpr bool operator==(const Participant&, const Participant&) = default;
};

class BlockPool {
 public:
  static constexpr std::size_t kBlockBytesMin = 64;
  static constexpr std::size_t kBlockBytesMax = (32 + 8 * kStateWordsMax + 63) / 64 * 64;
  static constexpr std::size_t kSlabBytes = kBlockBytesMax;
  static constexpr std::size_t kSizes = 11;

  // Shared by all processes; all zeros to begin with.
  struct Slabs {
    std::span<std::byte> memory;     // a multiple of kSlabBytes
    std::span<std::uint32_t> sizes;  // per slab: its blocks' size plus one, 0 while unused
    std::uint32_t* used;             // slabs assigned to a size
  };

  BlockPool(Slabs slabs, Participant self) noexcept : slabs_(slabs), self_(self) {}

  // A block that is being written.
  struct Draft {
    std::uint32_t place = 0;
    std::uint64_t version = 0;  // while held

    [[nodiscard]] Handle handle() const noexcept {
      return {.place = place, .version = static_cast<std::uint32_t>(version + 1)};
    }
  };

  // Whether the slot that a block is linked to still needs it.
  enum class Tenant : std::uint8_t { stays, gone };

  // Takes a block for a state of so many words. `ask(slot, handle, may_evict)` says whether the
  // tenant of a block stays. It may clear a slot whose state has expired and, when `may_evict` says
  // that all else failed, a slot with little usage.
  template <class Ask>
  [[nodiscard]] std::optional<Draft> take(std::size_t words, Ask&& ask) noexcept {
    const std::size_t size = size_for(words);
    if (auto draft = try_take(last_freed(size), size, ask, false)) return draft;
    for (int i = 0; i < kQuickProbes; ++i) {
      if (auto draft = try_take(next_in_turn(size), size, ask, false)) return draft;
    }
    // Tenants cluster, so taken blocks in turn say little about the rest. A slab is freed only when
    // all of its tenants have gone. So take a new one only after kProbes probes elsewhere, which
    // hardly ever all fail unless nearly all blocks are taken.
    for (int i = 0; i < kProbes; ++i) {
      if (auto draft = try_take(anywhere(size), size, ask, false)) return draft;
    }
    if (auto draft = take_from_new_slab(size)) return draft;
    for (int i = 0; i < kProbes; ++i) {
      if (auto draft = try_take(next_in_turn(size), size, ask, true)) return draft;
    }
    return take_over_slab(size, ask);
  }

  void write(const Draft& draft, const StateBuffer& state, Summary summary) noexcept;
  void link(const Draft& draft, std::uint32_t slot) noexcept;  // once the slot holds its handle
  void abandon(const Draft& draft) noexcept;                   // the slot went to another key
  void release(Handle handle, std::uint32_t slot) noexcept;    // the slot has another state

  // The copy may be torn; it is valid if the slot holds the same handle afterwards. False for a
  // handle that no slot can have written.
  [[nodiscard]] bool read(Handle handle, StateBuffer& state) const noexcept;
  [[nodiscard]] std::optional<Summary> summary(Handle handle) const noexcept;

  // After a process died: the handles that its blocks would have had. The caller searches all slots
  // and names the slot that holds one; the dead process can no longer link such a block.
  template <class IsAlive>
  [[nodiscard]] std::vector<Handle> left_behind(IsAlive&& is_alive) const {
    std::vector<Handle> handles;
    for_each_block([&](std::uint32_t place) {
      const Pair head = load16(header(place));
      if (kind(head) != Kind::held || is_alive(holder(head))) return;
      handles.push_back({.place = place, .version = static_cast<std::uint32_t>(head.state + 1)});
    });
    return handles;
  }
  void settle(Handle handle, std::optional<std::uint32_t> slot) noexcept;

  // Slabs whose owner died while it changed their size.
  template <class IsAlive>
  void finish_reshaping(IsAlive&& is_alive) noexcept {
    for (std::uint32_t slab = 0; slab < slabs_.sizes.size(); ++slab) {
      if (size_of_slab(slab) != kReshaping) continue;
      const auto first = static_cast<std::uint32_t>(slab * kUnitsPerSlab);
      const Pair head = load16(header(first));
      if (kind(head) != Kind::held || is_alive(holder(head))) continue;
      if (const auto draft = hold(first, head)) abandon(reshape(slab, 0, draft->version));
    }
  }

  // Slabs without tenants become unused; only while no other process uses the mapping.
  template <class IsLinked>
  void compact(IsLinked&& is_linked) noexcept {
    for (std::uint32_t slab = 0; slab < std::min<std::size_t>(*slabs_.used, slabs_.sizes.size());
         ++slab) {
      bool empty = true;
      for_each_block_of(slab, [&](std::uint32_t place) {
        const Pair head = load16(header(place));
        const Handle handle{.place = place, .version = static_cast<std::uint32_t>(head.state)};
        if (kind(head) == Kind::linked && is_linked(slot_of(head), handle)) empty = false;
      });
      if (empty) wipe(slab);
    }
    *slabs_.used = 0;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return slabs_.memory.size(); }
  [[nodiscard]] std::size_t bytes_handed_out() const noexcept;

 private:
  static constexpr int kQuickProbes = 6;
  static constexpr int kProbes = 48;
  static constexpr std::size_t kTakeoverLooks = 8;
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  static constexpr std::uint32_t kReshaping = ~std::uint32_t{0};  // instead of a slab's size
  static constexpr std::size_t kUnitsPerSlab = kSlabBytes / kBlockBytesMin;

  enum class Kind : std::uint8_t { free, held, linked };

  // Pair::key is the kind, and the slot or the holder; Pair::state is the version.
  [[nodiscard]] static Kind kind(Pair head) noexcept { return static_cast<Kind>(head.key & 3U); }
  [[nodiscard]] static Pair free_block(std::uint64_t version) noexcept {
    return {.key = static_cast<std::uint64_t>(Kind::free), .state = version};
  }
  [[nodiscard]] static Pair linked(std::uint32_t slot, std::uint64_t version) noexcept {
    return {.key = static_cast<std::uint64_t>(Kind::linked) | std::uint64_t{slot} << 32U,
            .state = version};
  }
  [[nodiscard]] static Pair held(Participant by, std::uint64_t version) noexcept {
    return {.key = static_cast<std::uint64_t>(Kind::held) | std::uint64_t{by.number} << 2U |
                   std::uint64_t{by.generation} << 32U,
            .state = version};
  }
  [[nodiscard]] static std::uint32_t slot_of(Pair head) noexcept {
    return static_cast<std::uint32_t>(head.key >> 32U);
  }
  [[nodiscard]] static Participant holder(Pair head) noexcept {
    return {.number = static_cast<std::uint32_t>(head.key) >> 2U,
            .generation = static_cast<std::uint32_t>(head.key >> 32U)};
  }

  template <class Ask>
  [[nodiscard]] std::optional<Draft> try_take(std::uint32_t place, std::size_t size, Ask& ask,
                                              bool may_evict) noexcept {
    if (place == kNowhere || size_at(place) != size) return std::nullopt;
    const Pair head = load16(header(place));
    if (kind(head) == Kind::held) return std::nullopt;
    const Handle handle{.place = place, .version = static_cast<std::uint32_t>(head.state)};
    if (kind(head) == Kind::linked && ask(slot_of(head), handle, may_evict) == Tenant::stays) {
      return std::nullopt;
    }
    return hold(place, head);
  }

  template <class Visit>
  void for_each_block_of(std::uint32_t slab, Visit&& visit) const noexcept {
    const std::uint32_t size = size_of_slab(slab);
    if (size == 0 || size > kSizes) return;
    const auto units = static_cast<std::uint32_t>(block_bytes(size - 1) / kBlockBytesMin);
    const auto first = static_cast<std::uint32_t>(slab * kUnitsPerSlab);
    for (std::uint32_t unit = 0; unit + units <= kUnitsPerSlab; unit += units) visit(first + unit);
  }
  template <class Visit>
  void for_each_block(Visit&& visit) const noexcept {
    for (std::uint32_t slab = 0; slab < slabs_.sizes.size(); ++slab) {
      for_each_block_of(slab, visit);
    }
  }

  // Tries a few slabs of other sizes, in turn. A slab whose tenants have all gone gets this size.
  // Most are given up at their first block.
  template <class Ask>
  [[nodiscard]] std::optional<Draft> take_over_slab(std::size_t size, Ask& ask) noexcept {
    const std::size_t slabs = slabs_.sizes.size();
    for (std::size_t i = 0; i < std::min(slabs, kTakeoverLooks); ++i) {
      const std::uint32_t turn = takeovers_.fetch_add(1, std::memory_order_relaxed);
      const auto slab = static_cast<std::uint32_t>(turn % slabs);
      if (auto draft = try_take_over(slab, size, ask)) return draft;
    }
    return std::nullopt;
  }

  // While this thread holds all blocks of a slab, no other thread touches the slab.
  template <class Ask>
  [[nodiscard]] std::optional<Draft> try_take_over(std::uint32_t slab, std::size_t size,
                                                   Ask& ask) noexcept {
    const std::uint32_t before = size_of_slab(slab);
    if (before == 0 || before > kSizes || before == size + 1) return std::nullopt;
    std::uint32_t held = 0;
    std::uint64_t version = 0;
    bool ours = true;
    for_each_block_of(slab, [&](std::uint32_t place) {
      if (!ours) return;
      const auto draft = try_take(place, before - 1, ask, false);
      ours = draft.has_value();
      if (!ours) return;
      ++held;
      version = std::max(version, draft->version);
    });
    if (ours) return reshape(slab, size, version);
    for_each_block_of(slab, [&](std::uint32_t place) {
      if (held == 0) return;
      --held;
      abandon({.place = place, .version = load16(header(place)).state});
    });
    return std::nullopt;
  }

  [[nodiscard]] static std::size_t size_for(std::size_t words) noexcept;
  [[nodiscard]] static std::size_t block_bytes(std::size_t size) noexcept;
  [[nodiscard]] static std::size_t words_in(std::size_t size) noexcept;

  [[nodiscard]] std::uint32_t size_of_slab(std::size_t slab) const noexcept;
  [[nodiscard]] std::size_t size_at(std::uint32_t place) const noexcept;  // kSizes: no block there
  [[nodiscard]] Pair* header(std::uint32_t place) const noexcept;
  [[nodiscard]] std::uint64_t* words(std::uint32_t place) const noexcept;

  [[nodiscard]] std::optional<Draft> hold(std::uint32_t place, Pair head) noexcept;
  [[nodiscard]] std::optional<Draft> take_from_new_slab(std::size_t size) noexcept;
  [[nodiscard]] bool may_have_another(std::size_t size) const noexcept;
  [[nodiscard]] std::uint32_t last_freed(std::size_t size) const noexcept;
  [[nodiscard]] std::uint32_t next_in_turn(std::size_t size) noexcept;
  [[nodiscard]] std::uint32_t anywhere(std::size_t size) noexcept;
  void remember_freed(std::uint32_t place) const noexcept;
  void wipe(std::uint32_t slab) noexcept;
  [[nodiscard]] Draft reshape(std::uint32_t slab, std::size_t size, std::uint64_t version) noexcept;

  Slabs slabs_;
  Participant self_;
  std::array<std::atomic<std::uint64_t>, kSizes> turns_{};  // where each size's search continues
  std::atomic<std::uint64_t> leaps_{0};
  std::atomic<std::uint32_t> takeovers_{0};
};

}  // namespace sluice::store
