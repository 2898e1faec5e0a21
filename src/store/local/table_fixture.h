// For tests: a table of a few groups in memory that the test can see, with limits of its own.
#pragma once

#include "base/digest.h"
#include "store/local/block_pool.h"
#include "store/local/stored_limit.h"
#include "store/local/table.h"
#include <sluice/limit.h>
#include <sluice/time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace sluice::store {

// Limits by the order in which they were given.
class FixedLimits final : public LimitSource {
 public:
  explicit FixedLimits(const std::vector<Limit>& limits) {
    for (const Limit& limit : limits) {
      Parsed<StoredLimit> stored = StoredLimit::from(limit);
      if (!stored) throw std::runtime_error{stored.error().text()};
      limits_.push_back(*std::move(stored));
    }
    pointers_ = std::vector<Published>(limits_.size());
    for (std::size_t i = 0; i < limits_.size(); ++i) pointers_[i] = &limits_[i];
    published_ = pointers_;
  }

 protected:
  [[nodiscard]] const StoredLimit* find_slow(LimitNumber number) const noexcept override {
    return number < limits_.size() ? &limits_[number] : nullptr;
  }

 private:
  std::vector<StoredLimit> limits_;
  std::vector<Published> pointers_;
};

// Memory as a mapping would provide it: zeros, aligned to what the table asks for.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size)
      : size_(size), bytes_(static_cast<std::byte*>(::operator new(size, kAlignment))) {
    std::fill(bytes_.get(), bytes_.get() + size, std::byte{0});
  }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::align_val_t kAlignment{128};
  struct Delete {
    void operator()(std::byte* bytes) const noexcept { ::operator delete(bytes, kAlignment); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Delete> bytes_;
};

template <class Access>
struct TableFixture {
  using TableType = BasicTable<Access>;

  // Without groups of cells, keys that find no slot are admitted untracked.
  TableFixture(const std::vector<Limit>& limits, std::size_t groups, std::size_t slabs,
               std::size_t cell_groups = 0)
      : known(limits),
        slot_bytes(groups * TableType::kSlotsPerGroup * sizeof(Pair)),
        passed(groups),
        slab_bytes(slabs * BlockPool::kSlabBytes),
        slab_sizes(slabs),
        cells(cell_groups > 0 ? (1 + cell_groups) * ApproximateCells::kCellsPerGroup : 0) {
    restart();
  }

  [[nodiscard]] std::span<Pair> slots() const noexcept {
    return {reinterpret_cast<Pair*>(slot_bytes.data()), slot_bytes.size() / sizeof(Pair)};
  }

  // As another process would find the memory.
  void restart() {
    blocks = std::make_unique<BlockPool>(
        BlockPool::Slabs{.memory = {slab_bytes.data(), slab_bytes.size()},
                         .sizes = slab_sizes,
                         .used = &slabs_used},
        Participant{});
    table = std::make_unique<TableType>(
        typename TableType::Memory{.slots = slots(), .passed = passed, .cells = cells}, known,
        *blocks, 1);
  }

  FixedLimits known;
  AlignedBytes slot_bytes;
  std::vector<std::uint8_t> passed;
  AlignedBytes slab_bytes;
  std::vector<std::uint32_t> slab_sizes;
  std::vector<std::uint64_t> cells;
  std::uint32_t slabs_used = 0;
  std::unique_ptr<BlockPool> blocks;
  std::unique_ptr<TableType> table;
};

// Different digests, as good as random.
[[nodiscard]] inline Digest numbered_key(std::uint64_t number) noexcept {
  const auto mixed = [](std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
  };
  return {.low = mixed(2 * number), .high = mixed(2 * number + 1)};
}

}  // namespace sluice::store
