// Something to do later: a callable that is stored in place.
//
// Move-only, never allocates; what it captures has to fit. An event of a simulation costs no
// allocation that way.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace sluice::sim {

class Task {
 public:
  static constexpr std::size_t kCapacity = 80;

  Task() noexcept = default;

  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, Task>)
  Task(Callable&& callable) {  // NOLINT(*-explicit-*): a lambda is passed where a task is wanted
    using Stored = std::remove_cvref_t<Callable>;
    static_assert(sizeof(Stored) <= kCapacity, "captures too much");
    static_assert(alignof(Stored) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Stored>);
    ::new (static_cast<void*>(bytes_)) Stored(std::forward<Callable>(callable));
    kind_ = &kKindOf<Stored>;
  }

  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      clear();
      take(other);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { clear(); }

  explicit operator bool() const noexcept { return kind_ != nullptr; }
  void operator()() { kind_->run(bytes_); }

 private:
  struct Kind {
    void (*run)(void*);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <class Stored>
  static constexpr Kind kKindOf{
      .run = [](void* at) { (*static_cast<Stored*>(at))(); },
      .move =
          [](void* from, void* to) noexcept {
            ::new (to) Stored(std::move(*static_cast<Stored*>(from)));
            static_cast<Stored*>(from)->~Stored();
          },
      .destroy = [](void* at) noexcept { static_cast<Stored*>(at)->~Stored(); }};

  void take(Task& other) noexcept {
    if (other.kind_ == nullptr) return;
    other.kind_->move(other.bytes_, bytes_);
    kind_ = std::exchange(other.kind_, nullptr);
  }
  void clear() noexcept {
    if (kind_ != nullptr) std::exchange(kind_, nullptr)->destroy(bytes_);
  }

  alignas(std::max_align_t) std::byte bytes_[kCapacity];
  const Kind* kind_ = nullptr;
};

}  // namespace sluice::sim
