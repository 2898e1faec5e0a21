// Objects to borrow and to give back. There are as many as were in use at once, so that lending
// allocates nothing after a while. What was given back last is lent next: it is still in a cache.
//
// One thread. The pool outlives what it lends.
#pragma once

#include <memory>
#include <vector>

namespace sluice {

template <class T>
class Pool {
 public:
  Pool() { grow(); }

  [[nodiscard]] T& take() {
    if (free_.empty()) [[unlikely]]
      grow();
    T& taken = *free_.back();
    free_.pop_back();
    return taken;
  }
  // Never allocates.
  void give_back(T& taken) noexcept { free_.push_back(&taken); }

  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] std::size_t in_use() const noexcept { return all_.size() - free_.size(); }

 private:
  [[gnu::noinline]] void grow() {
    all_.push_back(std::make_unique<T>());
    free_.reserve(all_.capacity());
    free_.push_back(all_.back().get());
  }

  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace sluice
