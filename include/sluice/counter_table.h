// Where limiters keep their counts: memory of a fixed size, shared by any number of them.
//
// The table never grows. Only keys with usage need room: plan 32 bytes for each of them. When the
// table is full, it evicts the key with the smallest used share of its limit, and only for a key
// with a greater share. A key without room is counted approximately, in a fixed sixteenth of the
// memory, admitted untracked, or rejected: OnTableFull says which. status() counts each of these
// cases.
//
// With a file, counts survive a restart, however the process ended, and several processes on one
// machine can share them.
//
// Thread-safe.
#pragma once

#include <sluice/clock.h>
#include <sluice/decision.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

struct TableOptions {
  std::size_t memory = std::size_t{16} << 20U;  // bytes, at least 4 MiB

  // Empty: counts are forgotten when the table is destroyed. A file belongs to its owner alone
  // (mode 600), is allocated in full, and goes with the memory size it was made for.
  std::string file;

  // Whether to discard a file that is foreign, damaged, of another size or version. Without it,
  // such a file is rejected.
  bool start_fresh = false;

  bool huge_pages = true;  // where the system has them

  // The table has a thread for upkeep (touching its memory, dropping expired keys); without it,
  // call upkeep() about once a minute.
  bool background = true;

  const Clock* clock = nullptr;  // of the background thread, which outlives it; null: SystemClock
};

struct TableStatus {
  std::size_t bytes = 0;
  std::size_t huge_page_bytes = 0;  // of them
  std::size_t slots = 0;            // room for keys
  std::size_t slots_used = 0;       // at the last sweep
  std::size_t cells = 0;            // shared by keys without a slot
  std::size_t cells_used = 0;       // at the last sweep
  std::size_t block_bytes = 0;      // room for states that a slot cannot hold: logs, slices
  std::size_t block_bytes_used = 0;
  std::size_t limits = 0;  // room for different limits
  std::size_t limits_used = 0;

  // Since the table was opened, by this process:
  std::uint64_t inserted = 0;           // keys that were given a slot
  std::uint64_t evicted = 0;            // of them, by evicting a key that had used less
  std::uint64_t approximated = 0;       // decisions in shared cells: OnTableFull::approximate
  std::uint64_t untracked = 0;          // requests admitted: OnTableFull::allow
  std::uint64_t forgiven = 0;           // units of cost forgotten by eviction, or untracked
  std::uint64_t rejected_for_room = 0;  // OnTableFull::reject
  std::uint64_t refunds_lost = 0;       // units of cost that refunds could not give back
  std::uint64_t failed_exchanges = 0;   // another thread was faster; tried again
};

// A key with usage. Keys are kept as fingerprints, which Limiter::fingerprint computes from a key.
struct KeyEntry {
  std::uint64_t fingerprint = 0;
  Limit limit;
  Decision decision;  // of a request of cost 0
};

class CounterTable {
 public:
  [[nodiscard]] static Parsed<std::shared_ptr<CounterTable>> open(const TableOptions& options = {});

  CounterTable(const CounterTable&) = delete;
  CounterTable& operator=(const CounterTable&) = delete;
  ~CounterTable();

  [[nodiscard]] TableStatus status() const;

  // Keys from `cursor` on, at most `most` of them. The cursor starts at 0, moves on, and is 0 again
  // after the last one.
  [[nodiscard]] std::vector<KeyEntry> list(std::size_t& cursor, std::size_t most, Now now);

  void upkeep(Now now);

 private:
  friend class Limiter;
  struct Inside;
  explicit CounterTable(std::unique_ptr<Inside> inside) noexcept;

  std::unique_ptr<Inside> inside_;
};

}  // namespace sluice
