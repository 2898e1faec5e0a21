// Waiting in a queue, with a thread and without.

#include "limiter/limiter_inside.h"
#include <sluice/core/compiled_limit.h>
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

// How often to check again if the wait is unknown: requests in flight.
constexpr Nanos kAskAgain = std::chrono::milliseconds{5};

// Long enough for any caller; a longer wait would overflow when it is added to an instant.
constexpr Nanos kForever = std::chrono::hours{24 * 365 * 100};

// How long the first in the queue waits before it checks again. Nothing: waiting is pointless.
std::optional<Nanos> wait_for(const Decision& refused, Nanos left) {
  if (refused.verdict == Verdict::never || left <= Nanos{0}) return std::nullopt;
  if (!refused.retry_after) return std::min(kAskAgain, left);
  if (*refused.retry_after > left) return std::nullopt;
  return std::max(*refused.retry_after, Nanos{1});
}

// A caller that is not first at its timeout is rejected because of the queue, not the limit.
Decision out_of_time(Decision now) {
  now.verdict = Verdict::rejected;
  now.retry_after.reset();
  return now;
}

}  // namespace

Decision Limiter::Inside::decide_within(Nanos left, std::string_view key, Cost cost,
                                        Now now) const noexcept {
  std::array<store::Answer, kLimitsMax> answers;
  const Decision decision = decide(key, cost, now, answers);
  if (!decision.allowed() || decision.delay <= std::max(left, Nanos{0})) return decision;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    store().refund(check(i, key, cost), answers[i].charge, now);
  }
  Decision refused = decide(key, 0, now, answers);
  refused.verdict = Verdict::rejected;
  // Until it would not be delayed at all. Waiting does not help: the queue shrinks no faster than
  // the remaining time.
  refused.retry_after = decision.delay;
  refused.delay = Nanos{0};
  return refused;
}

bool Limiter::Inside::can_ever_pass(Cost cost) const noexcept {
  return std::all_of(limits.begin(), limits.end(),
                     [cost](const Limit& limit) { return cost <= core::capacity(limit); });
}

// ---- a thread that waits ----------------------------------------------------------------------

Decision Limiter::acquire(std::string_view key, Nanos timeout, Cost cost) {
  timeout = std::min(timeout, kForever);
  const MonoTime deadline = now().mono + std::max(timeout, Nanos{0});
  const Digest line = inside_->hashers[0](key);
  const auto left = [&] { return deadline - now().mono; };
  const auto answered = [&](const Decision& decision) {
    inside_->tell(key, cost, decision);
    if (decision.delay > Nanos{0}) std::this_thread::sleep_for(decision.delay);
    return decision;
  };
  if (!inside_->can_ever_pass(cost) || inside_->waiting.is_empty(line)) {
    const Decision decision = inside_->decide_within(left(), key, cost, now());
    if (decision.allowed() || !wait_for(decision, left())) return answered(decision);
  }

  struct Bell {
    std::mutex mutex;
    std::condition_variable rang;
    bool my_turn = false;
  };
  // Shared: a caller that leaves the queue may ring it after this one has timed out.
  const auto bell = std::make_shared<Bell>();
  const WaitingRoom::Number number = inside_->waiting.take_number();
  const bool first = inside_->waiting.join(line, number, [bell] {
    const std::lock_guard guard{bell->mutex};
    bell->my_turn = true;
    bell->rang.notify_one();
  });
  if (!first) {
    std::unique_lock lock{bell->mutex};
    if (!bell->rang.wait_for(lock, left(), [&] { return bell->my_turn; })) {
      lock.unlock();
      inside_->waiting.leave(line, number);
      std::array<store::Answer, kLimitsMax> answers;
      return answered(out_of_time(inside_->decide(key, 0, now(), answers)));
    }
  }
  while (true) {
    const Decision decision = inside_->decide_within(left(), key, cost, now());
    const std::optional<Nanos> wait =
        decision.allowed() ? std::nullopt : wait_for(decision, left());
    if (!wait) {
      inside_->waiting.leave(line, number);
      return answered(decision);
    }
    std::this_thread::sleep_for(*wait);
  }
}

// ---- an event loop ----------------------------------------------------------------------------

namespace {

// A waiting request, shared by its timers, its place in the queue and its Pending.
struct Waiting : std::enable_shared_from_this<Waiting> {
  enum class Stage : std::uint8_t { in_line, held, over };

  std::function<Decision(Cost)> decide;
  std::function<Nanos()> left;
  std::function<void()> leave;
  std::function<void(const Decision&)> done;
  Timer* timer = nullptr;
  Cost cost = 1;
  std::mutex mutex;  // locked while deciding: a cancelled request must not have been charged
  Stage stage = Stage::in_line;  // guarded by mutex

  // True for the call that ends it.
  bool end(Stage from) {
    const std::lock_guard guard{mutex};
    if (stage != from) return false;
    stage = Stage::over;
    return true;
  }

  void ask() {
    Decision decision;
    std::optional<Nanos> wait;
    {
      const std::lock_guard guard{mutex};
      if (stage != Stage::in_line) return;
      decision = decide(cost);
      if (!decision.allowed()) wait = wait_for(decision, left());
      if (!wait) stage = decision.delay > Nanos{0} ? Stage::held : Stage::over;
    }
    if (wait) return timer->after(*wait, [self = shared_from_this()] { self->ask(); });
    leave();
    if (decision.delay == Nanos{0}) return done(decision);
    timer->after(decision.delay, [self = shared_from_this(), decision] {
      if (self->end(Stage::held)) self->done(decision);
    });
  }

  void give_up() {
    if (!end(Stage::in_line)) return;
    leave();
    done(out_of_time(decide(0)));
  }

  void cancel() {
    if (end(Stage::in_line))
      leave();
    else
      (void)end(Stage::held);
  }
};

}  // namespace

Pending Limiter::acquire(std::string key, Nanos timeout, Cost cost, Timer& timer,
                         std::function<void(const Decision&)> done) {
  timeout = std::max(std::min(timeout, kForever), Nanos{0});
  const MonoTime deadline = now().mono + timeout;
  const Digest line = inside_->hashers[0](key);
  auto waiting = std::make_shared<Waiting>();
  Inside* const inside = inside_.get();
  waiting->timer = &timer;
  waiting->cost = cost;
  waiting->left = [inside, deadline] { return deadline - inside->clock->now().mono; };
  waiting->decide = [inside, key, deadline](Cost asked) {
    const Now now = inside->clock->now();
    return inside->decide_within(deadline - now.mono, key, asked, now);
  };
  waiting->done = [inside, key = std::move(key), cost,
                   done = std::move(done)](const Decision& decision) {
    inside->tell(key, cost, decision);
    done(decision);
  };
  const WaitingRoom::Number number = inside->waiting.take_number();
  waiting->leave = [inside, line, number] { inside->waiting.leave(line, number); };
  const bool first =
      !inside->can_ever_pass(cost) || inside->waiting.join(line, number, [waiting, &timer] {
        timer.after(Nanos{0}, [waiting] { waiting->ask(); });
      });
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
