// Lists of objects that carry their own links: joining and leaving one allocates nothing.
//
// An object is in at most one list and leaves it when destroyed, also while the list is being
// emptied from the front. One thread.
#pragma once

namespace sluice::net {

class ListHook {
 public:
  ListHook() noexcept = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  [[nodiscard]] bool is_linked() const noexcept { return next_ != this; }

  void unlink() noexcept {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
  }

 private:
  template <class T>
  friend class List;

  ListHook* previous_ = this;
  ListHook* next_ = this;
};

// T derives from ListHook. The list has to be empty, or its members gone, before it ends.
template <class T>
class List {
 public:
  [[nodiscard]] bool empty() const noexcept { return !ends_.is_linked(); }

  // Leaves the list it was in before.
  void push_back(T& item) noexcept {
    ListHook& hook = item;
    hook.unlink();
    hook.previous_ = ends_.previous_;
    hook.next_ = &ends_;
    hook.previous_->next_ = &hook;
    ends_.previous_ = &hook;
  }

  void push_front(T& item) noexcept {
    ListHook& hook = item;
    hook.unlink();
    hook.next_ = ends_.next_;
    hook.previous_ = &ends_;
    hook.next_->previous_ = &hook;
    ends_.next_ = &hook;
  }

  // Null when there is none.
  [[nodiscard]] T* front() noexcept { return empty() ? nullptr : static_cast<T*>(ends_.next_); }

  // Of a member: the next one, or null.
  [[nodiscard]] T* behind(T& item) noexcept {
    ListHook* const next = static_cast<ListHook&>(item).next_;
    return next == &ends_ ? nullptr : static_cast<T*>(next);
  }
  [[nodiscard]] T* back() noexcept { return empty() ? nullptr : static_cast<T*>(ends_.previous_); }

  [[nodiscard]] T* pop_front() noexcept {
    T* const first = front();
    if (first != nullptr) static_cast<ListHook*>(first)->unlink();
    return first;
  }

  // Everything of the other list, which is empty afterwards. This one has to be empty.
  void take(List& other) noexcept {
    if (other.empty()) return;
    ends_.next_ = other.ends_.next_;
    ends_.previous_ = other.ends_.previous_;
    ends_.next_->previous_ = &ends_;
    ends_.previous_->next_ = &ends_;
    other.ends_.previous_ = other.ends_.next_ = &other.ends_;
  }

 private:
  ListHook ends_;  // before the first and behind the last
};

}  // namespace sluice::net
