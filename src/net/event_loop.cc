#include "net/event_loop.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/eventfd.h>
#include <utility>

namespace sluice::net {
namespace {

constexpr std::uint32_t kEverything = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

constexpr Events events_of(std::uint32_t bits) noexcept {
  const bool hung_up = (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  const bool failed = (bits & (EPOLLHUP | EPOLLERR)) != 0;
  return {.readable = (bits & EPOLLIN) != 0 || hung_up,
          .writable = (bits & EPOLLOUT) != 0 || failed,
          .hung_up = hung_up,
          .failed = failed};
}

tl::unexpected<Diagnostic> no_loop() {
  return mistake(std::string{"cannot create an event loop: "} + std::strerror(errno),
                 "raise the limit of open files (ulimit -n)");
}

}  // namespace

Result<void> Watcher::start(EventLoop& loop, int descriptor) noexcept {
  stop();
  epoll_event event{.events = kEverything, .data = {.ptr = this}};
  if (::epoll_ctl(loop.epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    return tl::unexpected(Error{.code = Errc::io, .transient = true, .where = "epoll_ctl"});
  }
  loop_ = &loop;
  descriptor_ = descriptor;
  return {};
}

// Closing alone would do, were the descriptor not possibly shared with a child process.
void Watcher::stop() noexcept {
  if (loop_ == nullptr) return;
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_DEL, descriptor_, nullptr);
  loop_->forget(*this);
  loop_ = nullptr;
  descriptor_ = -1;
}

Parsed<std::unique_ptr<EventLoop>> EventLoop::create(const Clock& clock) {
  FileDescriptor epoll{::epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll) return no_loop();
  FileDescriptor wake{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  if (!wake) return no_loop();
  std::unique_ptr<EventLoop> loop{new EventLoop{clock, std::move(epoll), std::move(wake)}};
  if (!loop->wake_watcher_.start(*loop, loop->wake_.get())) return no_loop();
  return loop;
}

EventLoop::EventLoop(const Clock& clock, FileDescriptor epoll, FileDescriptor wake)
    : clock_(clock),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      now_(clock.now()),
      timers_(now_.mono),
      wake_watcher_(Callback<Events>::to<&EventLoop::run_posted>(*this)) {}

void EventLoop::run() {
  while (!stopped_.load(std::memory_order_acquire)) turn(Nanos::max());
  stopped_.store(false, std::memory_order_relaxed);
}

void EventLoop::turn(Nanos wait_max) {
  wait(wait_max);
  now_ = clock_.now();
  if (turn_hook_) turn_hook_(now_);
  dispatch();
  timers_.advance(now_.mono);
  run_tasks();
}

void EventLoop::wait(Nanos wait_max) noexcept {
  const int count = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                                 timeout_ms(wait_max));
  dispatched_ = 0;
  received_ = static_cast<std::size_t>(std::max(count, 0));  // interrupted: none
}

// Rounded up: waking before a timer is due would only mean waiting once more. It counts from the
// beginning of the last turn, so a timer may be late by what that turn took.
int EventLoop::timeout_ms(Nanos wait_max) const noexcept {
  constexpr Nanos kMilli{1'000'000};
  constexpr Nanos kLongest{std::chrono::hours{1}};
  if (!tasks_.empty()) return 0;
  Nanos wait = wait_max;
  if (const auto next = timers_.next()) wait = std::min(wait, *next - now_.mono);
  if (wait == Nanos::max()) return -1;
  wait = std::clamp(wait, Nanos{0}, kLongest);
  return static_cast<int>((wait + kMilli - Nanos{1}) / kMilli);
}

void EventLoop::dispatch() {
  while (dispatched_ < received_) {
    const epoll_event event = events_[dispatched_++];
    if (event.data.ptr == nullptr) continue;  // forgotten since
    static_cast<Watcher*>(event.data.ptr)->on_events_(events_of(event.events));
  }
}

// A watcher that goes while others are told must not be told any more. Looking through the rest is
// cheaper than the system call that goes before.
void EventLoop::forget(const Watcher& watcher) noexcept {
  for (std::size_t i = dispatched_; i < received_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
  }
}

void EventLoop::run_tasks() {
  List<Task> tasks;
  tasks.take(tasks_);
  while (const Task* const task = tasks.pop_front()) task->run_();
}

void EventLoop::set(Timer& timer, Nanos after) noexcept {
  const Nanos longest = MonoTime::max() - now_.mono;
  timers_.set(timer, now_.mono + std::min(after, longest));
}

void EventLoop::post(std::function<void()> function) {
  bool first = false;
  {
    const std::lock_guard lock{mutex_};
    first = posted_.empty();
    posted_.push_back(std::move(function));
  }
  if (first) wake();
}

void EventLoop::stop() noexcept {
  stopped_.store(true, std::memory_order_release);
  wake();
}

// Every write is an edge of its own, so the counter need not be read back to zero.
void EventLoop::wake() noexcept { (void)::eventfd_write(wake_.get(), 1); }

void EventLoop::run_posted(Events /*events*/) {
  std::vector<std::function<void()>> functions;
  {
    const std::lock_guard lock{mutex_};
    functions.swap(posted_);
  }
  for (const std::function<void()>& function : functions) function();
}

}  // namespace sluice::net
