// Objects that requests need for a while, reused: as many as were needed recently, and no more.
//
// A pool never keeps more than kSparesMax, and trim() frees the spares not taken since the last
// trim(): the memory of a flood is freed when the flood is over, while steady traffic allocates
// nothing. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::gateway {

template <class T>
class SparePool {
 public:
  // A request in flight has two buffers: enough for two thousand of them.
  static constexpr std::size_t kSparesMax = 4096;
  static constexpr std::size_t kSparesMin =
      16;  // for the next burst, however long ago the last was

  // Null: there is none.
  [[nodiscard]] std::unique_ptr<T> take() noexcept {
    if (spares_.empty()) return nullptr;
    std::unique_ptr<T> spare = std::move(spares_.back());
    spares_.pop_back();
    untaken_ = std::min(untaken_, spares_.size());
    return spare;
  }
  void give_back(std::unique_ptr<T> spare) {
    if (spare != nullptr && spares_.size() < kSparesMax) spares_.push_back(std::move(spare));
  }
  // Returns how many it freed.
  std::size_t trim() noexcept {
    const std::size_t surplus = untaken_ - std::min(untaken_, kSparesMin);
    spares_.resize(spares_.size() - surplus);
    untaken_ = spares_.size();
    return surplus;
  }
  void clear() noexcept {
    spares_.clear();
    untaken_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return spares_.size(); }
  // There may be something for trim() to free, now or later.
  [[nodiscard]] bool has_surplus() const noexcept { return spares_.size() > kSparesMin; }

 private:
  std::vector<std::unique_ptr<T>> spares_;
  std::size_t untaken_ = 0;  // the minimum of spares since the last trim()
};

// Large, since untouched memory costs nothing: a buffer of a small request only ever uses its first
// page.
class BufferPool {
 public:
  static constexpr std::size_t kBytes = 32768;
  using Buffer = std::unique_ptr<char[]>;

  [[nodiscard]] Buffer take() {
    Buffer buffer = spares_.take();
    return buffer != nullptr ? std::move(buffer) : Buffer{new char[kBytes]};
  }
  void give_back(Buffer buffer) { spares_.give_back(std::move(buffer)); }
  std::size_t trim() noexcept { return spares_.trim(); }
  [[nodiscard]] std::size_t size() const noexcept { return spares_.size(); }
  [[nodiscard]] bool has_surplus() const noexcept { return spares_.has_surplus(); }

 private:
  SparePool<char[]> spares_;
};

}  // namespace sluice::gateway
