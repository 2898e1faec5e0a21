#include "store/local/block_pool.h"

#include <algorithm>
#include <bit>

namespace sluice::store {
namespace {

// In a block: the header's pair, the expiry, the usage and the number of words that follow.
constexpr std::size_t kExpires = 2;
constexpr std::size_t kUsedAndSize = 3;
constexpr std::size_t kState = 4;

std::uint64_t get(const std::uint64_t* word) noexcept {
  return std::atomic_ref<const std::uint64_t>{*word}.load(std::memory_order_acquire);
}
void put(std::uint64_t* word, std::uint64_t value) noexcept {
  std::atomic_ref{*word}.store(value, std::memory_order_release);
}

// The block that a thread freed last is warm, and other threads rarely want it. Only a hint.
struct Hint {
  const BlockPool* pool = nullptr;
  std::array<std::uint32_t, BlockPool::kSizes> freed;
};
thread_local Hint t_hint;

}  // namespace

std::size_t BlockPool::block_bytes(std::size_t size) noexcept {
  return size + 1 < kSizes ? kBlockBytesMin << size : kBlockBytesMax;
}

std::size_t BlockPool::words_in(std::size_t size) noexcept {
  return block_bytes(size) / sizeof(std::uint64_t) - kState;
}

std::size_t BlockPool::size_for(std::size_t words) noexcept {
  const std::size_t bytes = (kState + words) * sizeof(std::uint64_t);
  const auto size = static_cast<std::size_t>(std::bit_width((bytes - 1) / kBlockBytesMin));
  return std::min(size, kSizes - 1);
}

std::uint32_t BlockPool::size_of_slab(std::size_t slab) const noexcept {
  return std::atomic_ref{slabs_.sizes[slab]}.load(std::memory_order_acquire);
}

std::size_t BlockPool::size_at(std::uint32_t place) const noexcept {
  const std::size_t slab = place / kUnitsPerSlab;
  if (slab >= slabs_.sizes.size()) return kSizes;
  const std::uint32_t size = size_of_slab(slab);
  if (size == 0 || size > kSizes) return kSizes;
  const std::size_t units = block_bytes(size - 1) / kBlockBytesMin;
  const std::size_t unit = place % kUnitsPerSlab;
  return unit % units == 0 && unit + units <= kUnitsPerSlab ? size - 1 : kSizes;
}

Pair* BlockPool::header(std::uint32_t place) const noexcept {
  return reinterpret_cast<Pair*>(slabs_.memory.data() + std::size_t{place} * kBlockBytesMin);
}

std::uint64_t* BlockPool::words(std::uint32_t place) const noexcept {
  return reinterpret_cast<std::uint64_t*>(header(place));
}

std::optional<BlockPool::Draft> BlockPool::hold(std::uint32_t place, Pair head) noexcept {
  if (!exchange16(header(place), head, held(self_, head.state + 1))) return std::nullopt;
  return Draft{.place = place, .version = head.state + 1};
}

// Sizes without a slab come first: as many of them, from the smallest on, as half of the slabs
// serve.
bool BlockPool::may_have_another(std::size_t size) const noexcept {
  std::array<bool, kSizes + 1> has{};
  std::size_t unused = 0;
  for (std::size_t slab = 0; slab < slabs_.sizes.size(); ++slab) {
    const std::uint32_t marked = size_of_slab(slab);
    if (marked <= kSizes) has[marked] = true;
    if (marked == 0) ++unused;
  }
  if (!has[size + 1]) return true;
  const std::size_t promised = std::min(kSizes, slabs_.sizes.size() / 2);
  const auto wanting = static_cast<std::size_t>(
      std::count(has.begin() + 1, has.begin() + 1 + static_cast<std::ptrdiff_t>(promised), false));
  return unused > wanting;
}

// Every thread that finds a slab assigned advances the mark, so that no slab is lost with a process
// that is killed in between.
std::optional<BlockPool::Draft> BlockPool::take_from_new_slab(std::size_t size) noexcept {
  if (!may_have_another(size)) return std::nullopt;
  const std::atomic_ref used{*slabs_.used};
  for (std::uint32_t slab = used.load(); slab < slabs_.sizes.size(); slab = used.load()) {
    std::uint32_t unused = 0;
    const bool ours = std::atomic_ref{slabs_.sizes[slab]}.compare_exchange_strong(
        unused, static_cast<std::uint32_t>(size + 1));
    std::uint32_t expected = slab;
    used.compare_exchange_strong(expected, slab + 1);
    if (!ours) continue;
    const auto place = static_cast<std::uint32_t>(slab * kUnitsPerSlab);
    turns_[size].store(place, std::memory_order_relaxed);
    const Pair head = load16(header(place));
    if (kind(head) == Kind::free) {
      if (auto draft = hold(place, head)) return draft;
    }
  }
  return std::nullopt;
}

void BlockPool::wipe(std::uint32_t slab) noexcept {
  const auto memory = slabs_.memory.subspan(slab * kSlabBytes, kSlabBytes);
  std::fill(memory.begin(), memory.end(), std::byte{0});
  slabs_.sizes[slab] = 0;
}

// This thread holds all blocks of the slab. Their places get versions that none of them had before,
// so that no old handle in a slot becomes valid again. The first block, which every size has, gets
// its version before the slab is marked: from then on any process can finish the reshaping.
BlockPool::Draft BlockPool::reshape(std::uint32_t slab, std::size_t size,
                                    std::uint64_t version) noexcept {
  const auto units = static_cast<std::uint32_t>(block_bytes(size) / kBlockBytesMin);
  const auto first = static_cast<std::uint32_t>(slab * kUnitsPerSlab);
  const auto set = [this](std::uint32_t place, Pair head) {
    while (!exchange16(header(place), load16(header(place)), head)) {
    }
  };
  const std::atomic_ref mark{slabs_.sizes[slab]};
  set(first, held(self_, version + 1));
  mark.store(kReshaping, std::memory_order_seq_cst);
  for (std::uint32_t unit = units; unit + units <= kUnitsPerSlab; unit += units) {
    set(first + unit, free_block(version + 1));
  }
  mark.store(static_cast<std::uint32_t>(size + 1), std::memory_order_seq_cst);
  turns_[size].store(first, std::memory_order_relaxed);
  return {.place = first, .version = version + 1};
}

std::uint32_t BlockPool::last_freed(std::size_t size) const noexcept {
  return t_hint.pool == this ? t_hint.freed[size] : kNowhere;
}

void BlockPool::remember_freed(std::uint32_t place) const noexcept {
  if (t_hint.pool != this) {
    t_hint.pool = this;
    t_hint.freed.fill(kNowhere);
  }
  const std::size_t size = size_at(place);
  if (size < kSizes) t_hint.freed[size] = place;
}

// All blocks of a size get their turn. It is harmless if two threads try the same block.
std::uint32_t BlockPool::next_in_turn(std::size_t size) noexcept {
  std::uint64_t turn = turns_[size].load(std::memory_order_relaxed);
  const std::size_t slabs = slabs_.sizes.size();
  const std::size_t units = block_bytes(size) / kBlockBytesMin;
  for (std::size_t tried = 0; tried <= slabs; ++tried) {
    const std::size_t slab = turn / kUnitsPerSlab;
    const std::size_t unit = turn % kUnitsPerSlab;
    if (slab < slabs && size_of_slab(slab) == size + 1 && unit + units <= kUnitsPerSlab) {
      turns_[size].store(turn + units, std::memory_order_relaxed);
      return static_cast<std::uint32_t>(turn);
    }
    turn = (slab + 1 < slabs ? slab + 1 : 0) * kUnitsPerSlab;
  }
  return kNowhere;
}

// Spread over all blocks of a size, by the golden ratio; each process begins elsewhere.
std::uint32_t BlockPool::anywhere(std::size_t size) noexcept {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t leap = leaps_.fetch_add(kGolden, std::memory_order_relaxed) +
                             (std::uint64_t{self_.generation} << 8U | self_.number) * kGolden;
  const std::size_t units = block_bytes(size) / kBlockBytesMin;
  const std::uint64_t turn = ((leap >> 32U) * slabs_.sizes.size() >> 32U) * kUnitsPerSlab;
  turns_[size].store(turn, std::memory_order_relaxed);
  const std::uint32_t start = next_in_turn(size);  // the first of a slab
  if (start == kNowhere) return kNowhere;
  const std::uint64_t mixed = leap * kGolden;
  const auto unit =
      static_cast<std::uint32_t>(((mixed >> 32U) * (kUnitsPerSlab / units) >> 32U) * units);
  turns_[size].store(start + unit, std::memory_order_relaxed);
  return next_in_turn(size);
}

void BlockPool::write(const Draft& draft, const StateBuffer& state, Summary summary) noexcept {
  std::uint64_t* const to = words(draft.place);
  put(to + kExpires, static_cast<std::uint64_t>(summary.expires));
  put(to + kUsedAndSize, std::uint64_t{summary.used} << 32U | state.size);
  for (std::size_t i = 0; i < state.size; ++i) put(to + kState + i, state.words[i]);
}

void BlockPool::link(const Draft& draft, std::uint32_t slot) noexcept {
  (void)exchange16(header(draft.place), held(self_, draft.version),
                   linked(slot, draft.version + 1));
}

void BlockPool::abandon(const Draft& draft) noexcept {
  if (exchange16(header(draft.place), held(self_, draft.version), free_block(draft.version + 1))) {
    remember_freed(draft.place);
  }
}

void BlockPool::release(Handle handle, std::uint32_t slot) noexcept {
  if (size_at(handle.place) == kSizes) return;
  const Pair head = load16(header(handle.place));
  const bool same = static_cast<std::uint32_t>(head.state) == handle.version;
  if (kind(head) != Kind::linked || slot_of(head) != slot || !same) return;
  if (exchange16(header(handle.place), head, free_block(head.state + 1))) {
    remember_freed(handle.place);
  }
}

void BlockPool::settle(Handle handle, std::optional<std::uint32_t> slot) noexcept {
  const Pair head = load16(header(handle.place));
  const bool same = static_cast<std::uint32_t>(head.state + 1) == handle.version;
  if (kind(head) != Kind::held || !same) return;
  (void)exchange16(header(handle.place), head,
                   slot ? linked(*slot, head.state + 1) : free_block(head.state + 1));
}

bool BlockPool::read(Handle handle, StateBuffer& state) const noexcept {
  const std::size_t size = size_at(handle.place);
  if (size == kSizes) return false;
  const std::uint64_t* const from = words(handle.place);
  const std::size_t used = static_cast<std::uint32_t>(get(from + kUsedAndSize));
  const std::size_t count = std::min({used, words_in(size), std::size_t{kStateWordsMax}});
  for (std::size_t i = 0; i < count; ++i) state.words[i] = get(from + kState + i);
  state.size = count;
  return count > 0;
}

std::optional<Summary> BlockPool::summary(Handle handle) const noexcept {
  if (size_at(handle.place) == kSizes) return std::nullopt;
  const std::uint64_t* const from = words(handle.place);
  return Summary{.expires = static_cast<std::int64_t>(get(from + kExpires)),
                 .used = static_cast<std::uint32_t>(get(from + kUsedAndSize) >> 32U)};
}

std::size_t BlockPool::bytes_handed_out() const noexcept {
  std::size_t slabs = 0;
  for (std::size_t i = 0; i < slabs_.sizes.size(); ++i) slabs += size_of_slab(i) != 0 ? 1U : 0U;
  return slabs * kSlabBytes;
}

}  // namespace sluice::store
