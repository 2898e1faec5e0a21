// All that decisions share: counts, rules, who is known, and who is treated otherwise.
//
// Rules travel on their own road: whoever edits them makes a new whole and publishes it here; each
// worker looks at a number once per turn and takes the newest when it has moved. Requests under way
// keep what they were decided by.
//
// Thread-safe. RoomWorker: one thread each; the room outlives them.
#pragma once

#include "app/configuration.h"
#include "config/diagnostics.h"
#include "engine/block_book.h"
#include "engine/envoy_snapshot.h"
#include "engine/envoy_worker.h"
#include "engine/lists.h"
#include "engine/overrides.h"
#include "engine/snapshot.h"
#include "engine/worker.h"
#include "frontend/access_record.h"
#include "frontend/decision_counters.h"
#include "identity/identifier.h"
#include "metrics/registry.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace sluice::app {

class EngineRoom {
 public:
  // What holds at one moment.
  struct Content {
    std::shared_ptr<const engine::Snapshot> snapshot;
    std::shared_ptr<const engine::EnvoySnapshot> envoy;  // null: there are no trees
    std::shared_ptr<const engine::Lists> lists;
    std::shared_ptr<const identity::Identifier> identifier;
    engine::ClientPolicy policy;
    std::shared_ptr<const frontend::DecisionCounters> counters;  // null: nobody counts
    // What the access log writes, and what it hides.
    std::shared_ptr<const frontend::AccessFormat::Options> logged;
  };

  // Opens the table and everything that the configuration names. Decisions are counted in the
  // registry, if there is one. The clock and the registry outlive the room.
  [[nodiscard]] static std::unique_ptr<EngineRoom> open(const Configuration& configuration,
                                                        const Clock& clock,
                                                        config::Diagnostics& diagnostics,
                                                        metrics::Registry* registry = nullptr);
  EngineRoom(const EngineRoom&) = delete;
  EngineRoom& operator=(const EngineRoom&) = delete;
  ~EngineRoom() = default;

  // Rules, clients and exceptions of the file. False, with everything that is wrong reported: all
  // stays as it was. What was added at run time stays in any case.
  bool replace(const Configuration& configuration, config::Diagnostics& diagnostics);
  // Rules alone; files that clients are known by are not looked at.
  bool replace_rules(const Configuration& configuration, config::Diagnostics& diagnostics);

  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Content content() const;

  // ---- exceptions -----------------------------------------------------------------------------

  // In place of one for the same subject that was added before; until it ends or is removed, also
  // of the file's.
  [[nodiscard]] Parsed<void> allow(engine::ListEntry entry);
  [[nodiscard]] Parsed<void> deny(engine::ListEntry entry);
  [[nodiscard]] Parsed<void> multiply(engine::Override entry);
  // Only what was added at run time; the file's are removed by editing it.
  bool remove_allowed(const engine::Subject& subject);
  bool remove_denied(const engine::Subject& subject);
  bool remove_override(const engine::Subject& subject);
  // What holds now: the file's and those that were added.
  [[nodiscard]] ExceptionsConfig exceptions() const;

  // ---- blocks ---------------------------------------------------------------------------------

  [[nodiscard]] std::vector<engine::BlockEntry> blocks() const;
  bool unblock(std::uint64_t block);

  [[nodiscard]] store::LocalStore& table() noexcept { return *table_; }
  [[nodiscard]] engine::BlockBook& book() noexcept { return *book_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }

 private:
  EngineRoom(const Clock& clock, metrics::Registry* registry) noexcept
      : clock_(clock), registry_(registry) {}
  [[nodiscard]] bool open_state(const Configuration& configuration,
                                config::Diagnostics& diagnostics);
  [[nodiscard]] std::shared_ptr<const engine::EnvoySnapshot> envoy_snapshot(
      const EnvoyConfig& envoy, config::Diagnostics& diagnostics);
  // To be looked up: with what holds later, too.
  [[nodiscard]] ExceptionsConfig merged(const ExceptionsConfig& added) const;
  [[nodiscard]] bool publish_rules(Content content, const rules::RuleList& rules,
                                   config::Diagnostics& diagnostics);
  [[nodiscard]] Parsed<void> use_with_overrides(Content& content,
                                                std::shared_ptr<const rules::RuleSet> rules,
                                                std::vector<engine::Override> overrides);
  void publish(Content content) noexcept;
  template <class Entry>
  [[nodiscard]] Parsed<void> add(std::vector<Entry> ExceptionsConfig::* list, Entry entry);
  template <class Entry>
  bool remove(std::vector<Entry> ExceptionsConfig::* list, const engine::Subject& subject);
  template <class Entry>
  [[nodiscard]] Parsed<void> take_over(ExceptionsConfig added);

  const Clock& clock_;
  metrics::Registry* const registry_;
  std::unique_ptr<store::LocalStore> table_;
  std::unique_ptr<store::LocalAuthority> limits_;  // registers limits; decides nothing
  std::unique_ptr<engine::BlockBook> book_;
  std::atomic<std::uint64_t> version_{0};

  // One edit at a time. What holds is made under it, which may take its time: workers do not wait
  // for it.
  mutable std::mutex editing_;  // guards what follows; taken before the other
  ExceptionsConfig of_file_;
  ExceptionsConfig added_;  // those that had not ended at the last edit

  mutable std::mutex mutex_;  // guards what follows, for as long as it takes to copy some pointers
  Content content_;
};

class RoomWorker {
 public:
  // `workers`: how many there are beside each other.
  RoomWorker(EngineRoom& room, unsigned workers);

  // Takes over what was published since. Cheap when nothing was.
  void refresh() {
    if (seen_ != room_.version()) [[unlikely]]
      take_over();
  }
  [[nodiscard]] engine::Worker& worker() noexcept { return worker_; }
  [[nodiscard]] engine::EnvoyWorker& envoy() noexcept { return envoy_; }
  [[nodiscard]] const EngineRoom::Content& content() const noexcept { return content_; }
  [[nodiscard]] const store::LocalAuthority::Counts& store_counts() const noexcept {
    return local_.counts();
  }
  [[nodiscard]] const engine::WorkerCounters& counters() const noexcept {
    return worker_.counters();
  }

 private:
  void take_over();

  EngineRoom& room_;
  store::LocalAuthority local_;
  engine::Worker worker_;
  engine::EnvoyWorker envoy_;
  EngineRoom::Content content_;
  std::uint64_t seen_ = 0;
};

}  // namespace sluice::app
