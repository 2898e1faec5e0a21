// Keeps the rules in force equal to the content of their source, as long as that is valid.
//
// At the start: the source's rules, or else the last good ones of an earlier run, or else an error.
// From then on only accepted rules replace them: a version that is rejected, or a source that
// fails, does not change the rules in force and is reported once. Accepted rules are kept on disk
// for the next start. Fetching and accepting happen one at a time, in the caller's thread during
// start() and load(), in a thread of this object afterwards.
//
// status() and sync_now() are thread-safe; start(), stop() and load() are for one thread.
#pragma once

#include "rules/source/rule_source.h"
#include "rules/sync/last_good.h"
#include "rules/sync/scheduler.h"
#include "rules/sync/sync_status.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace sluice::rules {

struct RuleSyncOptions {
  ScheduleTimes schedule;
  std::uint64_t seed = 0;
  std::string last_good_file;  // empty: nothing is kept for the next start
  std::size_t bytes_max = std::size_t{16} << 20U;
};

class RuleSync {
 public:
  // Parses, compiles and publishes, or returns the error and changes nothing.
  using Accept = std::function<Parsed<void>(const Fetched&)>;
  // Must not call back, except for status().
  using Report = std::function<void(const SyncReport&)>;

  // Source and clock outlive it; the clock is thread-safe.
  RuleSync(RuleSource& source, Accept accept, const Clock& clock, const RuleSyncOptions& options,
           Report report = nullptr);
  RuleSync(const RuleSync&) = delete;
  RuleSync& operator=(const RuleSync&) = delete;
  ~RuleSync() { stop(); }

  // Loads, watches the source and polls it. If there are no rules to begin with, returns the error
  // and does nothing more.
  [[nodiscard]] Parsed<void> start();
  void stop() noexcept;

  // The first part of start() alone.
  [[nodiscard]] Parsed<void> load();

  // The thread's job. A source that is being written is not read. A change that the watch reported,
  // or a request by sync_now(), is applied at once. A change found by the interval may be half of
  // one: it is applied when two readings in a row are equal.
  bool poll();

  // Soon, in the thread. Also retries a rejected version: a resource that it lacked may exist now.
  void sync_now();

  [[nodiscard]] SyncStatus status() const;

 private:
  enum class Attempt : std::uint8_t { in_force, rejected, failed, unsettled };

  void change_noticed();
  // `noticed`: a change was reported, so that one reading suffices.
  [[nodiscard]] Attempt attempt(bool noticed);
  [[nodiscard]] Attempt failed(Diagnostic why);
  [[nodiscard]] Attempt known_good(const Fetched& fetched);
  [[nodiscard]] Attempt known_bad();
  [[nodiscard]] Attempt judge(const Fetched& fetched);
  [[nodiscard]] bool fall_back();
  void keep(const Fetched& fetched);
  void come_into_force(const Fetched& fetched, std::optional<WallTime> kept_at);
  void last_good_failed(SyncEvent event, Diagnostic why);
  [[nodiscard]] Diagnostic why_not() const;
  void report(SyncEvent event, std::string version = {}, Diagnostic diagnosis = {}) const;
  [[nodiscard]] WallTime wall_now() const noexcept { return clock_.now().wall(); }

  RuleSource& source_;
  const Accept accept_;
  const Clock& clock_;
  const Report report_;
  const std::optional<LastGood> last_good_;
  std::atomic<bool> retry_rejected_ = false;
  std::atomic<bool> noticed_ = false;

  // Locked during an attempt; guards the members that only attempts use.
  std::mutex turn_;
  std::optional<Diagnostic> rejection_;  // of status_.rejected_version
  std::string seen_once_;                // the version of the last reading, if it is not settled
  bool kept_ = false;                    // the version in force is on disk

  mutable std::mutex mutex_;
  SyncStatus status_;         // guarded by the mutex; written by attempts only
  Diagnostic watch_failure_;  // guarded by the mutex

  Scheduler scheduler_;  // last: its thread uses all of the above
};

}  // namespace sluice::rules
