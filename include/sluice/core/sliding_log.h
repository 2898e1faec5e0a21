// Sliding log: keeps every admission of the last window, and is exact.
//
// The window is half open, (now - period, now]: an admission leaves the log exactly one period
// after it happened. Requests of one nanosecond share an entry, each keeping its cost. In any
// window of one period at most `amount` is admitted; only sliding_buckets has the same bound. The
// price is memory: up to 16 bytes per admitted request, hence at most 4096 of them.
//
// Time base: monotonic. When time goes back, requests count as made at the newest entry's instant;
// after a step of more than a minute the log moves as a whole, newest entry to now.
//
// The state lives in the caller's memory, a header and a ring, and is changed in place. Nothing is
// written by a peek or a rejection, so expired entries stay until the next admission drops them.
#pragma once

#include <sluice/core/step.h>

#include <cstdint>
#include <span>

namespace sluice::core {

inline constexpr Cost kLogAmountMax = 4096;

struct LogLimit {
  Cost amount = 1;  // at most kLogAmountMax
  Nanos period{1};
  bool count_rejected = false;
};

struct LogEntry {
  std::int64_t at = 0;
  Cost cost = 0;  // > 0 while in use

  friend constexpr bool operator==(const LogEntry&, const LogEntry&) = default;
};

// All zeros is an idle key.
struct LogHeader {
  std::uint32_t first = 0;  // position of the oldest entry
  std::uint32_t size = 0;
  Cost sum = 0;  // of all entries, expired ones included; at most the amount

  friend constexpr bool operator==(const LogHeader&, const LogHeader&) = default;
};

// Entries ascend in time from `first` on and never outnumber the amount. The ring must have a free
// place, or an expired entry, whenever a request may be admitted: `amount` places always suffice.
struct LogView {
  LogHeader* header;
  std::span<LogEntry> ring;
};

[[nodiscard]] Outcome sliding_log_step(const LogLimit& limit, LogView log, MonoTime now,
                                       Cost cost) noexcept;

// Forced charges push out the oldest entries when the log is full.
[[nodiscard]] Outcome sliding_log_charge(const LogLimit& limit, LogView log, MonoTime now,
                                         Cost cost) noexcept;
void sliding_log_refund(LogView log, Receipt receipt, Cost amount) noexcept;

// Both limits have the same period, or the state has to be carried over as a charge instead. Keeps
// the newest entries that fit the new amount; a share that grows is added to the newest one. The
// ring is large enough for either limit.
void sliding_log_convert(const LogLimit& from, const LogLimit& to, LogView log, MonoTime now,
                         OnChange change) noexcept;

}  // namespace sluice::core
