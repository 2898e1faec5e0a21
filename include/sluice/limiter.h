// A limiter: who may do how much, answered in well under a microsecond.
//
//     sluice::Limiter limiter{"100/1s"};
//     if (!limiter.allow("alice")) return too_many_requests();
//     sluice::Decision decision = limiter.check("alice", 5);  // remaining, retry_after, ...
//
// Every key has counts of its own, from its first request on; keys need not be announced, and cost
// nothing once they are idle again. `allow()` without a key is one count for all.
//
// Several limits for one key are all-or-nothing: a request passes if all of them admit it, and one
// that is rejected consumes nothing. The decision is then that of the limit that binds: when
// rejected the one with the longest wait, when allowed the one with the least left.
//
// Thread-safe, all of it. Deciding takes no lock and allocates nothing; only acquire() waits.
#pragma once

#include <sluice/clock.h>
#include <sluice/core/step.h>
#include <sluice/counter_table.h>
#include <sluice/decision.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

using Cost = core::Cost;

// Told of every decision, by the thread that made it; counts or samples it and returns at once.
// Implementations are thread-safe. Requests that wait in acquire() are told when they are answered.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void decided(std::string_view limiter, std::string_view key, Cost cost,
                       const Decision& decision) noexcept = 0;
};

// What an event loop offers: calls `then` after a while, from the loop. For acquire() without a
// thread that waits. May be called by any thread that uses the limiter.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer() = default;

  virtual void after(Nanos delay, std::function<void()> then) = 0;
};

struct LimiterOptions {
  // Tells the counts of limiters in one table apart; with a file, this is how a limiter finds its
  // counts after a restart.
  std::string name = "default";

  // Shared with other limiters; none: a table of its own, with these options.
  std::shared_ptr<CounterTable> table;
  TableOptions own_table;

  OnChange on_change = OnChange::keep;  // for counts that another limit of this name left behind
  OnTableFull on_table_full = OnTableFull::approximate;

  // For a few keys so busy that threads fight for them: threads take some units ahead, and a
  // request may be rejected although up to early_rejections() units are left, with buckets
  // sometimes somewhat more. Units are spent up to a millisecond after they were taken, so the
  // limit's bound holds for windows that are shorter by that much. Refunds drop what was taken
  // ahead. Without it a limit is exact.
  bool thread_leases = false;

  const Clock* clock = nullptr;  // outlives the limiter; null: SystemClock
  Observer* observer = nullptr;  // outlives the limiter
};

// A charge that can be given back, once. Small, copyable, and free to be dropped: then the charge
// stays.
class Ticket {
 public:
  [[nodiscard]] explicit operator bool() const noexcept { return count_ > 0; }

 private:
  friend class Limiter;
  struct Charge {
    std::array<std::uint64_t, 2> key{};  // digest
    std::uint32_t limit = 0;
    core::Receipt receipt;
  };
  static constexpr std::size_t kLimitsMax = 8;

  std::size_t count_ = 0;
  std::array<Charge, kLimitsMax> charges_{};
};

struct Reservation {
  Decision decision;
  Ticket ticket;  // empty unless admitted
};

// A request that waits. Dropping this changes nothing.
class Pending {
 public:
  // Ends the wait without an answer; harmless when there was one already. A request that was
  // admitted and is only queued for its delay stays charged.
  void cancel();

 private:
  friend class Limiter;
  std::function<void()> cancel_;
};

class Limiter {
 public:
  static constexpr std::size_t kLimitsMax = Ticket::kLimitsMax;

  // From text, as in "100/1s" or "1000/month". A limit that makes no sense throws
  // std::invalid_argument, a table that cannot be opened or has no room for another limit
  // std::runtime_error; what() says what to change. make() answers the same without exceptions.
  explicit Limiter(std::string_view limit, LimiterOptions options = {});
  Limiter(std::initializer_list<std::string_view> limits, LimiterOptions options = {});
  explicit Limiter(const Limit& limit, LimiterOptions options = {});
  explicit Limiter(std::span<const Limit> limits, LimiterOptions options = {});
  [[nodiscard]] static Parsed<Limiter> make(std::span<const Limit> limits,
                                            LimiterOptions options = {});

  Limiter(Limiter&& other) noexcept;
  Limiter& operator=(Limiter&& other) noexcept;
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;
  ~Limiter();

  // ---- asking ---------------------------------------------------------------------------------

  [[nodiscard]] bool allow(std::string_view key = {}) { return allow(key, now()); }
  [[nodiscard]] bool allow(std::string_view key, Now now);
  [[nodiscard]] Decision check(std::string_view key, Cost cost = 1) {
    return check(key, cost, now());
  }
  [[nodiscard]] Decision check(std::string_view key, Cost cost, Now now);

  // What is left; charges nothing.
  [[nodiscard]] Decision peek(std::string_view key) { return check(key, 0); }

  // Many keys, at the price of a few: memory is fetched for later ones while earlier ones are
  // decided.
  struct Request {
    std::string_view key;
    Cost cost = 1;
  };
  void check(std::span<const Request> requests, std::span<Decision> decisions, Now now);
  void check(std::span<const Request> requests, std::span<Decision> decisions) {
    check(requests, decisions, now());
  }

  // One request under several limiters of one table, all or nothing, as in: this user, that tenant,
  // everybody. True if admitted. `decisions` gets one for each.
  struct Ask {
    Limiter* limiter = nullptr;
    std::string_view key;
    Cost cost = 1;
  };
  [[nodiscard]] static bool check_all(std::span<const Ask> asks, std::span<Decision> decisions,
                                      Now now);

  // ---- corrections ----------------------------------------------------------------------------

  // A check that can be taken back: because the request was not counted after all, or, for
  // `concurrency`, because it has ended.
  [[nodiscard]] Reservation reserve(std::string_view key, Cost cost = 1) {
    return reserve(key, cost, now());
  }
  [[nodiscard]] Reservation reserve(std::string_view key, Cost cost, Now now);

  // Gives back what of the charge has not expired, in whole or up to `amount`.
  void refund(const Ticket& ticket) { refund(ticket, ~Cost{0}, now()); }
  void refund(const Ticket& ticket, Cost amount) { refund(ticket, amount, now()); }
  void refund(const Ticket& ticket, Cost amount, Now now);

  // For a cost that is known only after the fact: charged whether or not it fits, up to the limit.
  Decision charge(std::string_view key, Cost cost) { return charge(key, cost, now()); }
  Decision charge(std::string_view key, Cost cost, Now now);

  // `concurrency`: keeps a request's slots beyond the limit's `slot_ttl`; call it at half of that.
  // The answer replaces the ticket, and is empty when it came too late.
  [[nodiscard]] Ticket renew(const Ticket& ticket) { return renew(ticket, now()); }
  [[nodiscard]] Ticket renew(const Ticket& ticket, Now now);

  // Forgets what a key has used. True if there was something.
  bool forget(std::string_view key);

  // ---- waiting --------------------------------------------------------------------------------

  // Waits its turn, for at most `timeout`: those who wait for one key are served in the order in
  // which they came. Rejected only if the time does not suffice (at once, if that can be known; it
  // cannot by those who have others before them) or the cost can never pass. By the limiter's
  // clock, which has to be a real one.
  [[nodiscard]] Decision acquire(std::string_view key, Nanos timeout, Cost cost = 1);

  // The same for event loops: `done` is called from the loop, or at once, from here, when nobody
  // has to wait. The limiter and the timer outlive the wait.
  Pending acquire(std::string key, Nanos timeout, Cost cost, Timer& timer,
                  std::function<void(const Decision&)> done);

  // ---- about itself ---------------------------------------------------------------------------

  [[nodiscard]] Now now() const noexcept;
  [[nodiscard]] const std::vector<Limit>& limits() const noexcept;
  [[nodiscard]] const std::shared_ptr<CounterTable>& table() const noexcept;

  // The most that can pass in any window of one limit's period, however requests are timed; without
  // refunds, forced charges and usage that was forgotten for lack of room.
  [[nodiscard]] std::uint64_t most_admitted(std::size_t limit = 0) const noexcept;
  [[nodiscard]] std::uint64_t early_rejections()
      const noexcept;  // see LimiterOptions::thread_leases

  // The fingerprint under which CounterTable::list shows a key; one for each limit.
  [[nodiscard]] std::uint64_t fingerprint(std::string_view key,
                                          std::size_t limit = 0) const noexcept;

 private:
  struct Inside;
  explicit Limiter(std::unique_ptr<Inside> inside) noexcept;

  std::unique_ptr<Inside> inside_;
};

}  // namespace sluice
