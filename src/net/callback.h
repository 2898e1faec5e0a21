// A method of an object, to be called later.
//
// Two words: it owns nothing and allocates nothing, so that it may sit in every timer and every
// watched descriptor. Its giver makes sure that the object outlives the last call.
#pragma once

#include <utility>

namespace sluice::net {

template <class... Args>
class Callback {
 public:
  Callback() = default;

  // Callback<Now>::to<&Worker::on_turn>(worker)
  template <auto Method, class Owner>
  [[nodiscard]] static Callback to(Owner& owner) noexcept {
    return Callback{&owner, [](void* object, Args... args) {
                      (static_cast<Owner*>(object)->*Method)(std::forward<Args>(args)...);
                    }};
  }

  [[nodiscard]] explicit operator bool() const noexcept { return function_ != nullptr; }
  void operator()(Args... args) const { function_(owner_, std::forward<Args>(args)...); }

 private:
  using Function = void (*)(void*, Args...);
  Callback(void* owner, Function function) noexcept : owner_(owner), function_(function) {}

  void* owner_ = nullptr;
  Function function_ = nullptr;
};

}  // namespace sluice::net
