// A list with room for a few items of its own; more go to the heap. It keeps that memory when it is
// cleared: reused, it no longer allocates. For plain data; externally synchronised.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace sluice {

template <class T, std::size_t Own>
class SmallList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallList() = default;
  SmallList(const SmallList&) = delete;
  SmallList& operator=(const SmallList&) = delete;
  ~SmallList() = default;

  void push_back(const T& item) {
    if (size_ == room_) [[unlikely]]
      grow();
    items_[size_++] = item;
  }
  void clear() noexcept { size_ = 0; }
  // Keeps the first ones.
  void shorten(std::size_t size) noexcept { size_ = size; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* begin() noexcept { return items_; }
  [[nodiscard]] T* end() noexcept { return items_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return items_; }
  [[nodiscard]] const T* end() const noexcept { return items_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return items_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return items_[i]; }
  [[nodiscard]] std::span<const T> all() const noexcept { return {items_, size_}; }

 private:
  [[gnu::noinline]] void grow() {
    auto more = std::make_unique<T[]>(2 * room_);
    std::copy_n(items_, size_, more.get());
    more_ = std::move(more);
    items_ = more_.get();
    room_ *= 2;
  }

  std::array<T, Own> own_;
  std::unique_ptr<T[]> more_;
  T* items_ = own_.data();
  std::size_t size_ = 0;
  std::size_t room_ = Own;
};

}  // namespace sluice
