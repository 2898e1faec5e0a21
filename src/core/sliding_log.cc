#include <sluice/core/sliding_log.h>

#include <algorithm>

namespace sluice::core {
namespace {

// The log as seen at an instant, without having touched it.
struct LogLook {
  std::int64_t now;       // the clock, or the newest entry when the clock is behind that
  std::int64_t behind;    // how far the clock is behind `now` and has to catch up
  std::int64_t shift;     // how far the log has to move because the clock was set back
  std::uint32_t expired;  // entries at the front that no longer count
  Cost sum;               // of the entries that count
};

LogEntry& entry(LogView log, std::uint32_t i) noexcept {
  const std::size_t place = std::size_t{log.header->first} + i;
  return log.ring[place < log.ring.size() ? place : place - log.ring.size()];
}

LogLook look(const LogLimit& limit, LogView log, MonoTime now, bool may_write = true) noexcept {
  LogLook seen{.now = now.time_since_epoch().count(),
               .behind = 0,
               .shift = 0,
               .expired = 0,
               .sum = log.header->sum};
  const std::uint32_t size = log.header->size;
  if (size > 0 && entry(log, size - 1).at > seen.now) {
    const std::int64_t ahead = entry(log, size - 1).at - seen.now;
    seen.now += ahead;
    const bool set_back = clock_was_set_back(Nanos{ahead}, Nanos{0});
    (set_back && may_write ? seen.shift : seen.behind) = ahead;
  }
  const std::int64_t horizon = seen.now - limit.period.count();
  while (seen.expired < size && entry(log, seen.expired).at <= horizon) {
    seen.sum -= entry(log, seen.expired).cost;
    ++seen.expired;
  }
  return seen;
}

// Until an entry leaves the window.
Nanos leaves_after(const LogLimit& limit, const LogLook& seen, const LogEntry& entry) noexcept {
  return Nanos{entry.at - seen.now + seen.behind} + limit.period;
}

Nanos retry_after(const LogLimit& limit, LogView log, const LogLook& seen, Cost cost) noexcept {
  const std::uint64_t must_go = std::uint64_t{seen.sum} + cost - limit.amount;
  std::uint64_t gone = 0;
  std::uint32_t i = seen.expired;
  for (; i < log.header->size; ++i) {
    gone += entry(log, i).cost;
    if (gone >= must_go) break;
  }
  return leaves_after(limit, seen, entry(log, i));
}

Outcome answer(const LogLimit& limit, LogView log, const LogLook& seen, Verdict verdict) noexcept {
  const std::uint32_t size = log.header->size;
  return {.decision = {.verdict = verdict,
                       .limit = limit.amount,
                       .remaining = limit.amount - seen.sum,
                       .reset_after = size > seen.expired
                                          ? leaves_after(limit, seen, entry(log, size - 1))
                                          : Nanos{0},
                       .retry_after = std::nullopt},
          .receipt = {}};
}

void drop_front(LogView log, Cost cost) noexcept {
  LogHeader& header = *log.header;
  header.sum -= cost;
  while (cost > 0) {
    LogEntry& oldest = entry(log, 0);
    const Cost taken = std::min(cost, oldest.cost);
    oldest.cost -= taken;
    cost -= taken;
    if (oldest.cost > 0) break;
    header.first = static_cast<std::uint32_t>((header.first + 1) % log.ring.size());
    --header.size;
  }
}

// Writes down what `look` saw: expired entries go, a log from the future moves to now.
LogLook settle(LogView log, LogLook seen) noexcept {
  drop_front(log, log.header->sum - seen.sum);
  if (seen.shift > 0) {
    for (std::uint32_t i = 0; i < log.header->size; ++i) entry(log, i).at -= seen.shift;
    seen.now -= seen.shift;
    seen.shift = 0;
  }
  seen.expired = 0;
  return seen;
}

void append(LogView log, LogLook& seen, Cost cost) noexcept {
  LogHeader& header = *log.header;
  if (header.size > 0 && entry(log, header.size - 1).at == seen.now) {
    entry(log, header.size - 1).cost += cost;
  } else {
    ++header.size;
    entry(log, header.size - 1) = {.at = seen.now, .cost = cost};
  }
  header.sum += cost;
  seen.sum += cost;
}

// As much of the cost as fits after pushing out the oldest entries. Answers how much more the log
// holds than before, which is what a refund may take out: those pushed out stay counted.
Cost append_saturating(const LogLimit& limit, LogView log, LogLook& seen, Cost cost) noexcept {
  const Cost charged = std::min(cost, limit.amount);
  const Cost room = limit.amount - seen.sum;
  if (charged > room) {
    drop_front(log, charged - room);
    seen.sum -= charged - room;
  }
  if (charged > 0) append(log, seen, charged);
  return std::min(charged, room);
}

}  // namespace

Outcome sliding_log_step(const LogLimit& limit, LogView log, MonoTime now, Cost cost) noexcept {
  LogLook seen = look(limit, log, now, writes(cost, limit.amount));
  if (cost == 0) return answer(limit, log, seen, Verdict::allowed);
  if (cost > limit.amount) return answer(limit, log, seen, Verdict::never);

  if (cost <= limit.amount - seen.sum) {
    seen = settle(log, seen);
    append(log, seen, cost);
    Outcome admitted = answer(limit, log, seen, Verdict::allowed);
    admitted.receipt = {.mark = seen.now, .cost = cost};
    return admitted;
  }

  if (limit.count_rejected || seen.shift > 0) seen = settle(log, seen);
  if (limit.count_rejected) append_saturating(limit, log, seen, cost);
  Outcome refused = answer(limit, log, seen, Verdict::rejected);
  refused.decision.retry_after = retry_after(limit, log, seen, cost);
  return refused;
}

Outcome sliding_log_charge(const LogLimit& limit, LogView log, MonoTime now, Cost cost) noexcept {
  LogLook seen = settle(log, look(limit, log, now));
  const Cost charged = append_saturating(limit, log, seen, cost);
  Outcome outcome = answer(limit, log, seen, Verdict::allowed);
  outcome.receipt = {.mark = charged > 0 ? seen.now : 0, .cost = charged};
  return outcome;
}

void sliding_log_refund(LogView log, Receipt receipt, Cost amount) noexcept {
  LogHeader& header = *log.header;
  for (std::uint32_t i = 0; i < header.size; ++i) {
    LogEntry& charged = entry(log, i);
    if (charged.at != receipt.mark) continue;
    const Cost given = std::min({amount, receipt.cost, charged.cost});
    charged.cost -= given;
    header.sum -= given;
    if (charged.cost > 0) return;
    for (; i + 1 < header.size; ++i) entry(log, i) = entry(log, i + 1);
    --header.size;
    return;
  }
}

void sliding_log_convert(const LogLimit& from, const LogLimit& to, LogView log, MonoTime now,
                         OnChange change) noexcept {
  const LogLook seen = settle(log, look(from, log, now));  // what has expired is not used any more
  const Cost converted = converted_count(from.amount, to.amount, seen.sum, change);
  const Cost kept = std::min(converted, to.amount);  // the ring holds no more
  if (kept < seen.sum) {
    drop_front(log, seen.sum - kept);
  } else if (kept > seen.sum) {
    entry(log, log.header->size - 1).cost += kept - seen.sum;
    log.header->sum = kept;
  }
}

}  // namespace sluice::core
