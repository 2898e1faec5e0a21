// The newest of something immutable, handed from the thread that makes it to threads that use it.
//
// A user compares version() with the one it has seen, which is one atomic load, and calls get()
// only when the number has moved. `std::atomic<std::shared_ptr>` would take a lock on each look.
//
// Thread-safe. A user that reads the version before it calls get() misses nothing: what is
// published in between is taken then, and looked at once more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice {

template <class T>
class Published {
 public:
  // 0: nothing was published yet.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::shared_ptr<const T> get() const {
    const std::lock_guard guard{mutex_};
    return value_;
  }
  // The caller's argument takes what held before, and destroys it after the lock is released.
  void publish(std::shared_ptr<const T> next) {
    const std::lock_guard guard{mutex_};
    value_.swap(next);
    version_.fetch_add(1, std::memory_order_release);
  }

 private:
  mutable std::mutex mutex_;  // guards what follows, for as long as it takes to copy a pointer
  std::shared_ptr<const T> value_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace sluice
