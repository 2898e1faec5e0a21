// A limiter: decides in well under a microsecond whether a key is within its limits.
//
//     sluice::Limiter limiter{"100/1s"};
//     if (!limiter.allow("alice")) return too_many_requests();
//     sluice::Decision decision = limiter.check("alice", 5);  // remaining, retry_after, ...
//
// Every key has its own counters from its first request on. Keys need not be declared, and cost
// nothing once they are idle again. `allow()` without a key uses one counter for all.
//
// Several limits for one key are all-or-nothing: a request is allowed if all of them admit it, and
// a rejected request consumes nothing. The decision is then that of the limit that binds: for a
// rejection the limit with the longest wait, else the limit with the least left.
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

// Called for every decision, by the thread that made it; counts or samples it and returns at once.
// Implementations are thread-safe. For requests that wait in acquire() it is called at the end.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void decided(std::string_view limiter, std::string_view key, Cost cost,
                       const Decision& decision) noexcept = 0;
};

// A timer of an event loop: calls `then` from the loop after a time, for acquire() without a
// waiting thread. Any thread that uses the limiter may call it.
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
  // limit's bound holds for windows that are shorter by that much. Refunds drop the units taken
  // ahead. Without it a limit is exact.
  bool thread_leases = false;

  const Clock* clock = nullptr;  // outlives the limiter; null: SystemClock
  Observer* observer = nullptr;  // outlives the limiter
};

// A charge that can be refunded, once. Small and copyable; if it is dropped, the charge stays.
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
  // Ends the wait without a result; does nothing if there was one already. A request that was
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
  // std::runtime_error; what() says what to change. make() does the same without exceptions.
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

  // ---- decisions ------------------------------------------------------------------------------

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

  // A check that can be refunded: because the request does not count after all, or, for
  // `concurrency`, because it has ended.
  [[nodiscard]] Reservation reserve(std::string_view key, Cost cost = 1) {
    return reserve(key, cost, now());
  }
  [[nodiscard]] Reservation reserve(std::string_view key, Cost cost, Now now);

  // Refunds the part of the charge that has not expired, in whole or up to `amount`.
  void refund(const Ticket& ticket) { refund(ticket, ~Cost{0}, now()); }
  void refund(const Ticket& ticket, Cost amount) { refund(ticket, amount, now()); }
  void refund(const Ticket& ticket, Cost amount, Now now);

  // For a cost that is known only after the fact: charged whether or not it fits, up to the limit.
  Decision charge(std::string_view key, Cost cost) { return charge(key, cost, now()); }
  Decision charge(std::string_view key, Cost cost, Now now);

  // `concurrency`: keeps a request's slots beyond the limit's `slot_ttl`; call it at half of that.
  // The result replaces the ticket, and is empty when the slots had expired.
  [[nodiscard]] Ticket renew(const Ticket& ticket) { return renew(ticket, now()); }
  [[nodiscard]] Ticket renew(const Ticket& ticket, Now now);

  // Drops the usage of a key. True if there was any.
  bool forget(std::string_view key);

  // ---- waiting --------------------------------------------------------------------------------

  // Waits its turn, for at most `timeout`; callers that wait for one key are served in order.
  // Rejected only if the cost can never be admitted, or if the time does not suffice (at once,
  // unless other callers wait before it). Uses the limiter's clock, which has to be a real one.
  [[nodiscard]] Decision acquire(std::string_view key, Nanos timeout, Cost cost = 1);

  // The same for event loops: `done` is called from the loop, or at once, from here, if there is
  // nothing to wait for. The limiter and the timer outlive the wait.
  Pending acquire(std::string key, Nanos timeout, Cost cost, Timer& timer,
                  std::function<void(const Decision&)> done);

  // ---- about itself ---------------------------------------------------------------------------

  [[nodiscard]] Now now() const noexcept;
  [[nodiscard]] const std::vector<Limit>& limits() const noexcept;
  [[nodiscard]] const std::shared_ptr<CounterTable>& table() const noexcept;

  // The most that can be admitted in any window of one limit's period, however requests are timed;
  // without refunds, forced charges and usage lost by eviction.
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
