// Waiting for one's turn, with a thread and without.

#include "limiter/limiter_inside.h"
#include <sluice/limiter.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace sluice {
namespace {

// How often to ask again where nobody can know when there will be room: requests in flight.
constexpr Nanos kAskAgain = std::chrono::milliseconds{5};

// How long the first in line waits before it asks again. Nothing: there is no point in waiting.
std::optional<Nanos> wait_for(const Decision& refused, Nanos left) {
  if (refused.verdict == Verdict::never || left <= Nanos{0}) return std::nullopt;
  if (!refused.retry_after) return std::min(kAskAgain, left);
  if (*refused.retry_after > left) return std::nullopt;
  return std::max(*refused.retry_after, Nanos{1});
}

// Whoever is not first when the time is over was refused by those before it, not by the limit.
Decision out_of_time(Decision now) {
  now.verdict = Verdict::refused;
  now.retry_after.reset();
  return now;
}

}  // namespace

// ---- a thread that waits ----------------------------------------------------------------------

Decision Limiter::acquire(std::string_view key, Nanos timeout, Cost cost) {
  std::array<store::Answer, kLimitsMax> answers;
  const MonoTime deadline = now().mono + timeout;
  const Digest line = inside_->hashers[0](key);
  const auto answered = [&](const Decision& decision) {
    inside_->tell(key, cost, decision);
    if (decision.delay > Nanos{0}) std::this_thread::sleep_for(decision.delay);
    return decision;
  };
  if (inside_->waiting.is_empty(line)) {
    const Decision decision = inside_->decide(key, cost, now(), answers);
    if (decision.allowed() || !wait_for(decision, timeout)) return answered(decision);
  }

  struct Bell {
    std::mutex mutex;
    std::condition_variable rang;
    bool my_turn = false;
  };
  // Shared: whoever leaves the line may ring it after this one has given up.
  const auto bell = std::make_shared<Bell>();
  const WaitingRoom::Number number = inside_->waiting.take_number();
  const bool first = inside_->waiting.join(line, number, [bell] {
    const std::lock_guard guard{bell->mutex};
    bell->my_turn = true;
    bell->rang.notify_one();
  });
  if (!first) {
    std::unique_lock lock{bell->mutex};
    const Nanos left = deadline - now().mono;
    if (!bell->rang.wait_for(lock, left, [&] { return bell->my_turn; })) {
      lock.unlock();
      inside_->waiting.leave(line, number);
      return answered(out_of_time(inside_->decide(key, 0, now(), answers)));
    }
  }
  while (true) {
    const Decision decision = inside_->decide(key, cost, now(), answers);
    const std::optional<Nanos> wait =
        decision.allowed() ? std::nullopt : wait_for(decision, deadline - now().mono);
    if (!wait) {
      inside_->waiting.leave(line, number);
      return answered(decision);
    }
    std::this_thread::sleep_for(*wait);
  }
}

// ---- an event loop ----------------------------------------------------------------------------

namespace {

// One who waits, shared by its timers, its place in the line and whoever may cancel it.
struct Waiting : std::enable_shared_from_this<Waiting> {
  std::function<Decision(Cost)> decide;
  std::function<Nanos()> left;
  std::function<void()> leave;
  std::function<void(const Decision&)> done;
  Timer* timer = nullptr;
  Cost cost = 1;
  std::mutex mutex;
  bool ended = false;  // guarded by mutex

  // Ends it once; true for the one who did.
  bool end() {
    const std::lock_guard guard{mutex};
    return !std::exchange(ended, true);
  }
  [[nodiscard]] bool has_ended() {
    const std::lock_guard guard{mutex};
    return ended;
  }

  void finish(const Decision& decision) {
    if (!end()) return;
    leave();
    if (decision.delay == Nanos{0}) return done(decision);
    timer->after(decision.delay, [self = shared_from_this(), decision] { self->done(decision); });
  }

  void ask() {
    if (has_ended()) return;
    const Decision decision = decide(cost);
    const std::optional<Nanos> wait =
        decision.allowed() ? std::nullopt : wait_for(decision, left());
    if (!wait) return finish(decision);
    timer->after(*wait, [self = shared_from_this()] { self->ask(); });
  }

  void give_up() {
    if (!has_ended()) finish(out_of_time(decide(0)));
  }

  void cancel() {
    if (end()) leave();
  }
};

}  // namespace

Pending Limiter::acquire(std::string key, Nanos timeout, Cost cost, Timer& timer,
                         std::function<void(const Decision&)> done) {
  const MonoTime deadline = now().mono + timeout;
  const Digest line = inside_->hashers[0](key);
  auto waiting = std::make_shared<Waiting>();
  Inside* const inside = inside_.get();
  waiting->timer = &timer;
  waiting->cost = cost;
  waiting->decide = [inside, key](Cost asked) {
    std::array<store::Answer, kLimitsMax> answers;
    return inside->decide(key, asked, inside->clock->now(), answers);
  };
  waiting->left = [inside, deadline] { return deadline - inside->clock->now().mono; };
  waiting->done = [inside, key, cost, done = std::move(done)](const Decision& decision) {
    inside->tell(key, cost, decision);
    done(decision);
  };
  const WaitingRoom::Number number = inside->waiting.take_number();
  waiting->leave = [inside, line, number] { inside->waiting.leave(line, number); };
  const bool first = inside->waiting.join(
      line, number, [waiting, &timer] { timer.after(Nanos{0}, [waiting] { waiting->ask(); }); });
  if (first) {
    waiting->ask();
  } else {
    timer.after(timeout, [waiting] { waiting->give_up(); });
  }
  Pending pending;
  pending.cancel_ = [waiting] { waiting->cancel(); };
  return pending;
}

void Pending::cancel() {
  if (cancel_) cancel_();
}

}  // namespace sluice
