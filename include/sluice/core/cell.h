// One key's state under one limit, whatever the algorithm.
//
// The obvious storage: a variant that allocates where an algorithm needs room. Replay, load
// generation and tests use it; the counter table keeps the same states in slots. Externally
// synchronised.
#pragma once

#include <sluice/core/compiled_limit.h>
#include <sluice/time.h>

#include <optional>
#include <variant>
#include <vector>

namespace sluice::core {

class Cell {
 public:
  [[nodiscard]] Outcome decide(const CompiledLimit& limit, Now now, Cost cost);

  // Charges a cost that cannot be rejected any more; saturates at the capacity.
  Outcome charge(const CompiledLimit& limit, Now now, Cost cost);

  // Returns up to `amount` of a charge, once; for concurrency, gives the slots back.
  void refund(const CompiledLimit& limit, Now now, Receipt receipt, Cost amount);

  // Concurrency: renews a lease. The result replaces it; its cost is 0 when it had expired.
  // Other charges need no renewal and come back as they were.
  [[nodiscard]] Receipt renew(const CompiledLimit& limit, Now now, Receipt lease);

  // Carries the state over to an edited limit. Where algorithm, period or windows differ, the usage
  // is charged again, at this instant, and receipts issued before are void.
  void convert(const CompiledLimit& from, const CompiledLimit& to, Now now, OnChange change);

  // What is stored for each kind of limit, in the order of CompiledLimit.
  struct Gcra {
    GcraState state;
    std::optional<MonoTime>
        written;  // ticks wrap: a state idle for longer than its drain is dropped
  };
  struct Interval {
    IntervalState state;
  };
  struct Window {
    WindowState state;
  };
  struct FirstRequest {
    WindowState state;
  };
  struct Log {
    LogHeader header;
    std::vector<LogEntry> ring;
  };
  struct Counter {
    CounterState state;
  };
  struct Buckets {
    BucketsHeader header;
    std::vector<Cost> counters;
  };
  // An edit of the TTL, which moved all leases that were alive into one generation of the new TTL.
  struct Carried {
    std::uint32_t edition = 0;      // that ended with the edit
    std::int64_t oldest_alive = 0;  // leases of earlier generations had lapsed by then
    std::int64_t generation = 0;    // where the others went
  };
  struct Concurrency {
    ConcurrencyState state;
    std::vector<Carried> carried;  // oldest first
  };

 private:
  [[nodiscard]] Outcome stamped(Outcome outcome) const noexcept;
  [[nodiscard]] Receipt as_current(Receipt receipt) const noexcept;
  void carry_leases(const ConcurrencyLimit& from, const ConcurrencyLimit& to, Now now);

  // A cell that was never charged, or was last used under another kind of limit, starts idle.
  template <class Stored>
  [[nodiscard]] Stored& stored();

  std::variant<std::monostate, Gcra, Interval, Window, FirstRequest, Log, Counter, Buckets,
               Concurrency>
      state_;
  std::uint32_t edition_ = 0;  // counts the conversions that made receipts void
};

}  // namespace sluice::core
