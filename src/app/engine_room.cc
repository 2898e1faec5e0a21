#include "app/engine_room.h"

#include "rules/rule_set.h"

#include <algorithm>
#include <utility>

namespace sluice::app {
namespace {

// Those of the file, except where one was added for the same subject; then those that were added.
template <class Entry>
std::vector<Entry> merged_list(const std::vector<Entry>& of_file, const std::vector<Entry>& added,
                               WallTime now) {
  std::vector<Entry> all = of_file;
  for (const Entry& entry : added) {
    std::erase_if(all, [&](const Entry& one) { return one.subject == entry.subject; });
  }
  all.insert(all.end(), added.begin(), added.end());
  std::erase_if(all, [now](const Entry& one) { return !one.holds(now); });
  return all;
}

}  // namespace

std::unique_ptr<EngineRoom> EngineRoom::open(const Configuration& configuration, const Clock& clock,
                                             config::Diagnostics& diagnostics,
                                             metrics::Registry* registry) {
  std::unique_ptr<EngineRoom> room{new EngineRoom{clock, registry}};
  if (!room->open_state(configuration.state, diagnostics)) return nullptr;
  if (!room->replace(configuration, diagnostics)) return nullptr;
  return room;
}

bool EngineRoom::open_state(const StateConfig& state, config::Diagnostics& diagnostics) {
  auto table = store::LocalStore::open(
      {.mapping = {.memory = state.memory, .file = state.file}, .background = &clock_},
      clock_.now());
  if (!table) diagnostics.error(std::move(table.error()));
  auto book = engine::BlockBook::open(state.file.empty() ? "" : state.file + ".blocks");
  if (!book) diagnostics.error(std::move(book.error()));
  if (!table || !book) return false;
  table_ = *std::move(table);
  book_ = *std::move(book);
  limits_ = std::make_unique<store::LocalAuthority>(*table_, 1);
  return true;
}

bool EngineRoom::replace(const Configuration& configuration, config::Diagnostics& diagnostics) {
  Content content{.snapshot = nullptr,
                  .envoy = nullptr,
                  .lists = nullptr,
                  .identifier = load_clients(configuration.clients, diagnostics),
                  .policy = configuration.clients.policy,
                  .counters = nullptr};
  if (configuration.envoy) content.envoy = envoy_snapshot(*configuration.envoy, diagnostics);
  const bool has_trees = content.envoy != nullptr || !configuration.envoy;
  if (content.identifier == nullptr || !has_trees) return false;
  auto rules = std::make_shared<const rules::RuleSet>(configuration.rules);

  const std::lock_guard guard{mutex_};
  const ExceptionsConfig before = std::exchange(of_file_, configuration.exceptions);
  auto snapshot =
      engine::Snapshot::make(std::move(rules), merged(added_).overrides, *limits_, clock_.now());
  if (!snapshot) {
    of_file_ = before;
    diagnostics.error(std::move(snapshot.error()));
    return false;
  }
  content.snapshot = *std::move(snapshot);
  if (registry_ != nullptr) {
    content.counters = std::make_shared<const frontend::DecisionCounters>(
        *registry_, content.snapshot->shared_rules());
  }
  ExceptionsConfig all = merged(added_);
  content.lists = std::make_shared<const engine::Lists>(std::move(all.allow), std::move(all.deny));
  content_ = std::move(content);
  version_.fetch_add(1, std::memory_order_release);
  return true;
}

// Null when the trees cannot be used.
std::shared_ptr<const engine::EnvoySnapshot> EngineRoom::envoy_snapshot(
    const EnvoyConfig& envoy, config::Diagnostics& diagnostics) {
  auto trees = load_envoy(envoy, diagnostics);
  if (trees == nullptr) return nullptr;
  auto made = engine::EnvoySnapshot::make(std::move(trees), envoy.modes, *limits_, clock_.now());
  if (!made) diagnostics.error(std::move(made.error()));
  return made ? *std::move(made) : nullptr;
}

EngineRoom::Content EngineRoom::content() const {
  const std::lock_guard guard{mutex_};
  return content_;
}

// ---- exceptions -------------------------------------------------------------------------------

ExceptionsConfig EngineRoom::merged(const ExceptionsConfig& added) const {
  const WallTime now = clock_.now().wall();
  return {.allow = merged_list(of_file_.allow, added.allow, now),
          .deny = merged_list(of_file_.deny, added.deny, now),
          .overrides = merged_list(of_file_.overrides, added.overrides, now)};
}

ExceptionsConfig EngineRoom::exceptions() const {
  const std::lock_guard guard{mutex_};
  return merged(added_);
}

// What holds with these additions; under the mutex. Rules stay as they are.
Parsed<void> EngineRoom::publish(Content content, ExceptionsConfig added) {
  ExceptionsConfig all = merged(added);
  auto snapshot = engine::Snapshot::make(content.snapshot->shared_rules(), std::move(all.overrides),
                                         *limits_, clock_.now());
  if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
  content.snapshot = *std::move(snapshot);
  content.lists = std::make_shared<const engine::Lists>(std::move(all.allow), std::move(all.deny));
  content_ = std::move(content);
  added_ = std::move(added);
  version_.fetch_add(1, std::memory_order_release);
  return {};
}

template <class Entry>
Parsed<void> EngineRoom::add(std::vector<Entry> ExceptionsConfig::* list, Entry entry) {
  const std::lock_guard guard{mutex_};
  ExceptionsConfig added = added_;
  std::erase_if(added.*list, [&](const Entry& one) { return one.subject == entry.subject; });
  (added.*list).push_back(std::move(entry));
  return publish(content_, std::move(added));
}

template <class Entry>
bool EngineRoom::remove(std::vector<Entry> ExceptionsConfig::* list,
                        const engine::Subject& subject) {
  const std::lock_guard guard{mutex_};
  ExceptionsConfig added = added_;
  const auto removed =
      std::erase_if(added.*list, [&](const Entry& one) { return one.subject == subject; });
  return removed > 0 && publish(content_, std::move(added)).has_value();
}

Parsed<void> EngineRoom::allow(engine::ListEntry entry) {
  return add(&ExceptionsConfig::allow, std::move(entry));
}
Parsed<void> EngineRoom::deny(engine::ListEntry entry) {
  return add(&ExceptionsConfig::deny, std::move(entry));
}
Parsed<void> EngineRoom::multiply(engine::Override entry) {
  return add(&ExceptionsConfig::overrides, std::move(entry));
}
bool EngineRoom::remove_allowed(const engine::Subject& subject) {
  return remove(&ExceptionsConfig::allow, subject);
}
bool EngineRoom::remove_denied(const engine::Subject& subject) {
  return remove(&ExceptionsConfig::deny, subject);
}
bool EngineRoom::remove_override(const engine::Subject& subject) {
  return remove(&ExceptionsConfig::overrides, subject);
}

// ---- blocks -----------------------------------------------------------------------------------

std::vector<engine::BlockEntry> EngineRoom::blocks() const {
  return book_->list(clock_.now().wall());
}

bool EngineRoom::unblock(std::uint64_t block) {
  for (const engine::BlockEntry& entry : blocks()) {
    if (entry.block != block) continue;
    table_->forget({.low = entry.block, .high = 0});
    table_->forget({.low = entry.refusals, .high = 0});
    return book_->erase(block);
  }
  return false;
}

// ---- workers ----------------------------------------------------------------------------------

RoomWorker::RoomWorker(EngineRoom& room, unsigned workers)
    : room_(room), local_(room.table(), workers), worker_(local_, local_), envoy_(local_) {
  worker_.use(&room.book());
  take_over();
}

void RoomWorker::take_over() {
  seen_ = room_.version();  // before the content: what is published in between is taken next time
  content_ = room_.content();
  worker_.use(content_.snapshot);
  envoy_.use(content_.envoy);
  worker_.use(content_.lists);
  worker_.use(content_.identifier, content_.policy);
}

}  // namespace sluice::app
