// What workers count with: handles on cells of a Registry, cheap to copy.
//
// The cells of one series lie kBlockCells apart, one for each shard, so that a worker's cells stand
// together and no two workers write the same cache line. Relaxed order suffices: a cell has one
// writer, and readers need no more than some recent value of it.
#pragma once

#include "metrics/reading.h"
#include <sluice/time.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::metrics {

using Cell = std::atomic<std::uint64_t>;
using Shard = std::size_t;

inline constexpr std::size_t kBlockCells = 1024;  // of each shard: whole cache lines

namespace detail {

[[nodiscard]] inline Cell& of_shard(Cell* first, Shard shard) noexcept {
  return first[shard * kBlockCells];
}
// Not fetch_add: with one writer the locked instruction would buy nothing.
inline void add(Cell& cell, std::uint64_t amount) noexcept {
  cell.store(cell.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace detail

// Only goes up.
class Counter {
 public:
  Counter() = default;  // of nothing: not to be counted with

  void add(Shard shard, std::uint64_t amount = 1) const noexcept {
    detail::add(detail::of_shard(cells_, shard), amount);
  }

 private:
  friend class Registry;
  explicit Counter(Cell* cells) noexcept : cells_(cells) {}
  Cell* cells_ = nullptr;
};

// The sum of what all shards say.
class Gauge {
 public:
  Gauge() = default;

  void set(Shard shard, double value) const noexcept {
    detail::of_shard(cells_, shard)
        .store(std::bit_cast<std::uint64_t>(value), std::memory_order_relaxed);
  }
  // Exact for whole numbers up to 2^53.
  void add(Shard shard, double amount) const noexcept {
    const std::uint64_t bits = detail::of_shard(cells_, shard).load(std::memory_order_relaxed);
    set(shard, std::bit_cast<double>(bits) + amount);
  }

 private:
  friend class Registry;
  explicit Gauge(Cell* cells) noexcept : cells_(cells) {}
  Cell* cells_ = nullptr;
};

// Durations in buckets of fixed bounds. Time that runs backwards counts as none.
class DurationHistogram {
 public:
  DurationHistogram() = default;

  void record(Shard shard, Nanos duration) const noexcept {
    const Nanos shown = std::max(duration, Nanos{0});
    Cell* const cells = &detail::of_shard(cells_, shard);
    detail::add(cells[bucket_of(shown)], 1);
    detail::add(cells[kSumCell], static_cast<std::uint64_t>(shown.count()));
  }

 private:
  friend class Registry;

  // One for each bound, one for what is longer, one for the sum in nanoseconds.
  static constexpr std::size_t kSumCell = kDurationBounds.size() + 1;
  static constexpr std::size_t kCells = kSumCell + 1;

  explicit DurationHistogram(Cell* cells) noexcept : cells_(cells) {}

  // The first bucket that holds it: bounds belong to the bucket below them.
  [[nodiscard]] static std::size_t bucket_of(Nanos duration) noexcept {
    const auto* const bound =
        std::ranges::lower_bound(kDurationBounds, duration, {}, &DurationBound::at_most);
    return static_cast<std::size_t>(bound - kDurationBounds.begin());
  }

  Cell* cells_ = nullptr;
};

}  // namespace sluice::metrics
