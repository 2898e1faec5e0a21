// What decisions share: the counter table, the book of blocks, rules, identity, lists and
// overrides.
//
// EngineContent is the state at one moment: immutable parts behind shared pointers, so that an edit
// makes only the part that it changes. EngineState owns everything that outlives edits and makes
// the next content; its owner publishes that (base/published.h) to the threads that decide.
// Requests in flight keep the content that they were decided by.
//
// EngineState: one thread at a time, but for table() and book(), which are thread-safe.
// WorkerEngine: one thread each; the state outlives it.
#pragma once

#include "config/diagnostics.h"
#include "embed/config/engine_configuration.h"
#include "engine/block_book.h"
#include "engine/decider.h"
#include "engine/envoy_decider.h"
#include "engine/envoy_snapshot.h"
#include "engine/lists.h"
#include "engine/overrides.h"
#include "engine/snapshot.h"
#include "identity/identifier.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"
#include "store/stores.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sluice::embed {

struct EngineContent {
  std::shared_ptr<const engine::Snapshot> snapshot;
  std::shared_ptr<const engine::EnvoySnapshot> envoy;  // null: there are no trees
  std::shared_ptr<const engine::Lists> lists;
  std::shared_ptr<const identity::Identifier> identifier;
  engine::ClientPolicy policy;
};

class EngineState {
 public:
  // The stores that decide, over the table; null: they could not be made, and it was reported.
  using MakeStores =
      std::function<std::unique_ptr<store::Stores>(store::LocalStore&, config::Diagnostics&)>;
  [[nodiscard]] static std::unique_ptr<store::Stores> local_stores(
      store::LocalStore& table, config::Diagnostics& diagnostics);

  // Opens the table and every file that the configuration names. The clock outlives the state.
  [[nodiscard]] static std::unique_ptr<EngineState> open(
      const EngineConfiguration& configuration, const Clock& clock,
      config::Diagnostics& diagnostics, const MakeStores& make_stores = &local_stores);
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;
  ~EngineState() = default;

  // The newest.
  [[nodiscard]] const EngineContent& content() const noexcept { return content_; }

  // Rules, clients and exceptions of the file. False, with all mistakes reported: all stays as it
  // was. Exceptions added at run time always stay.
  bool replace(const EngineConfiguration& configuration, config::Diagnostics& diagnostics);
  // Rules alone; files that identify clients are not read.
  bool replace_rules(const EngineConfiguration& configuration, config::Diagnostics& diagnostics);

  // ---- exceptions -----------------------------------------------------------------------------

  // Replaces an earlier addition for the same subject; until it ends or is removed, it also
  // replaces the file's.
  [[nodiscard]] Parsed<void> allow(engine::ListEntry entry);
  [[nodiscard]] Parsed<void> deny(engine::ListEntry entry);
  [[nodiscard]] Parsed<void> multiply(engine::Override entry);
  // Only run-time additions; the file's are removed by editing it.
  bool remove_allowed(const engine::Subject& subject);
  bool remove_denied(const engine::Subject& subject);
  bool remove_override(const engine::Subject& subject);
  // In force now: from the file and added at run time.
  [[nodiscard]] ExceptionsConfig exceptions() const;

  // ---- blocks: thread-safe ----------------------------------------------------------------------

  [[nodiscard]] std::vector<engine::BlockEntry> blocks() const;
  bool unblock(std::uint64_t block);

  [[nodiscard]] store::LocalStore& table() noexcept { return *table_; }
  [[nodiscard]] store::Stores& stores() noexcept { return *stores_; }
  [[nodiscard]] engine::BlockBook& book() noexcept { return *book_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }

 private:
  explicit EngineState(const Clock& clock) noexcept : clock_(clock) {}
  [[nodiscard]] bool open_state(const EngineConfiguration& configuration,
                                const MakeStores& make_stores, config::Diagnostics& diagnostics);
  [[nodiscard]] std::shared_ptr<const engine::EnvoySnapshot> envoy_snapshot(
      const EnvoyConfig& envoy, config::Diagnostics& diagnostics);
  // For lookups: with entries that apply later, too.
  [[nodiscard]] ExceptionsConfig merged(const ExceptionsConfig& added) const;
  [[nodiscard]] bool use_rules(EngineContent content, const rules::RuleList& rules,
                               config::Diagnostics& diagnostics);
  [[nodiscard]] Parsed<void> use_with_overrides(EngineContent& content,
                                                std::shared_ptr<const rules::RuleSet> rules,
                                                std::vector<engine::Override> overrides);
  template <class Entry>
  [[nodiscard]] Parsed<void> add(std::vector<Entry> ExceptionsConfig::* list, Entry entry);
  template <class Entry>
  bool remove(std::vector<Entry> ExceptionsConfig::* list, const engine::Subject& subject);
  template <class Entry>
  [[nodiscard]] Parsed<void> use_added(ExceptionsConfig added);

  const Clock& clock_;
  std::unique_ptr<store::LocalStore> table_;
  std::unique_ptr<store::Stores> stores_;
  std::unique_ptr<engine::BlockBook> book_;
  ExceptionsConfig of_file_;
  ExceptionsConfig added_;  // at run time; without entries that had expired at the last edit
  EngineContent content_;
};

class WorkerEngine {
 public:
  // `workers`: their total number.
  WorkerEngine(EngineState& state, unsigned workers);

  // For requests from now on.
  void use(const EngineContent& content);

  // In every turn of the worker's loop, and again at wake_at(): see store/store.h.
  void advance(Now now) noexcept { store_->advance(now); }
  [[nodiscard]] MonoTime wake_at() const noexcept { return store_->wake_at(); }
  // For a caller without a loop: until the request is decided.
  void wait_for(const engine::Op& op) noexcept {
    while (op.waiting()) store_->wait();
  }

  [[nodiscard]] engine::Decider& decider() noexcept { return decider_; }
  [[nodiscard]] engine::EnvoyDecider& envoy() noexcept { return envoy_; }
  [[nodiscard]] const store::StoreCounts& store_counts() const noexcept { return store_->counts(); }
  [[nodiscard]] const engine::DeciderCounters& counters() const noexcept {
    return decider_.counters();
  }

 private:
  std::unique_ptr<store::Store> store_;
  engine::Decider decider_;
  engine::EnvoyDecider envoy_;
};

}  // namespace sluice::embed
