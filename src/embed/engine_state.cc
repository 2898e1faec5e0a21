#include "embed/engine_state.h"

#include "rules/rule_set.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace sluice::embed {
namespace {

template <class Entry>
void erase_ended(std::vector<Entry>& list, WallTime now) {
  std::erase_if(list, [now](const Entry& one) { return !one.holds(now); });
}

// Additions first: of several for one subject, the first in force counts. The file's follow, since
// they apply again once the additions expire, without an edit.
template <class Entry>
std::vector<Entry> merged_list(const std::vector<Entry>& of_file, const std::vector<Entry>& added,
                               WallTime now) {
  std::vector<Entry> all = added;
  all.insert(all.end(), of_file.begin(), of_file.end());
  erase_ended(all, now);
  return all;
}

// The file's entries, except where an addition is in force for the same subject; then additions.
template <class Entry>
std::vector<Entry> shown_list(const std::vector<Entry>& of_file, std::vector<Entry> added,
                              WallTime now) {
  erase_ended(added, now);
  std::vector<Entry> all = of_file;
  for (const Entry& entry : added) {
    std::erase_if(all, [&](const Entry& one) { return one.subject == entry.subject; });
  }
  all.insert(all.end(), added.begin(), added.end());
  erase_ended(all, now);
  return all;
}

}  // namespace

std::unique_ptr<EngineState> EngineState::open(const EngineConfiguration& configuration,
                                               const Clock& clock, config::Diagnostics& diagnostics,
                                               const MakeStores& make_stores) {
  std::unique_ptr<EngineState> state{new EngineState{clock}};
  if (!state->open_state(configuration, make_stores, diagnostics)) return nullptr;
  if (!state->replace(configuration, diagnostics)) return nullptr;
  return state;
}

std::unique_ptr<store::Stores> EngineState::local_stores(store::LocalStore& table,
                                                         config::Diagnostics& /*diagnostics*/) {
  return std::make_unique<store::LocalStores>(table);
}

bool EngineState::open_state(const EngineConfiguration& configuration,
                             const MakeStores& make_stores, config::Diagnostics& diagnostics) {
  const StateConfig& state = configuration.state;
  auto table = store::LocalStore::open(
      {.mapping = {.memory = state.memory, .file = state.file}, .background = &clock_},
      clock_.now());
  if (!table) configuration.files.error(state.file, std::move(table.error()), diagnostics);
  auto book = engine::BlockBook::open(state.file.empty() ? "" : state.file + ".blocks");
  if (!book) configuration.files.error(state.file, std::move(book.error()), diagnostics);
  if (!table || !book) return false;
  table_ = *std::move(table);
  book_ = *std::move(book);
  stores_ = make_stores(*table_, diagnostics);
  return stores_ != nullptr;
}

bool EngineState::replace(const EngineConfiguration& configuration,
                          config::Diagnostics& diagnostics) {
  EngineContent content{.snapshot = nullptr,
                        .envoy = nullptr,
                        .lists = nullptr,
                        .identifier = load_clients(configuration.clients, diagnostics),
                        .policy = configuration.clients.policy};
  if (configuration.envoy) content.envoy = envoy_snapshot(*configuration.envoy, diagnostics);
  const bool has_trees = content.envoy != nullptr || !configuration.envoy;
  if (content.identifier == nullptr || !has_trees) return false;

  ExceptionsConfig before = std::exchange(of_file_, configuration.exceptions);
  if (use_rules(std::move(content), configuration.rules, diagnostics)) return true;
  of_file_ = std::move(before);
  return false;
}

bool EngineState::replace_rules(const EngineConfiguration& configuration,
                                config::Diagnostics& diagnostics) {
  return use_rules(content_, configuration.rules, diagnostics);
}

bool EngineState::use_rules(EngineContent content, const rules::RuleList& rules,
                            config::Diagnostics& diagnostics) {
  ExceptionsConfig all = merged(added_);
  Parsed<void> used = use_with_overrides(content, std::make_shared<const rules::RuleSet>(rules),
                                         std::move(all.overrides));
  if (!used) {
    diagnostics.error(std::move(used.error()));
    return false;
  }
  content.lists = std::make_shared<const engine::Lists>(std::move(all.allow), std::move(all.deny));
  content_ = std::move(content);
  return true;
}

Parsed<void> EngineState::use_with_overrides(EngineContent& content,
                                             std::shared_ptr<const rules::RuleSet> rules,
                                             std::vector<engine::Override> overrides) {
  auto snapshot = engine::Snapshot::make(std::move(rules), std::move(overrides), stores_->limits(),
                                         clock_.now(), content_.snapshot.get());
  if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
  content.snapshot = *std::move(snapshot);
  return {};
}

// Null if the trees are unusable.
std::shared_ptr<const engine::EnvoySnapshot> EngineState::envoy_snapshot(
    const EnvoyConfig& envoy, config::Diagnostics& diagnostics) {
  auto trees = load_envoy(envoy, diagnostics);
  if (trees == nullptr) return nullptr;
  auto made =
      engine::EnvoySnapshot::make(std::move(trees), envoy.modes, stores_->limits(), clock_.now());
  if (!made) diagnostics.error(std::move(made.error()));
  return made ? *std::move(made) : nullptr;
}

// ---- exceptions -------------------------------------------------------------------------------

ExceptionsConfig EngineState::merged(const ExceptionsConfig& added) const {
  const WallTime now = clock_.now().wall();
  return {.allow = merged_list(of_file_.allow, added.allow, now),
          .deny = merged_list(of_file_.deny, added.deny, now),
          .overrides = merged_list(of_file_.overrides, added.overrides, now)};
}

ExceptionsConfig EngineState::exceptions() const {
  const WallTime now = clock_.now().wall();
  return {.allow = shown_list(of_file_.allow, added_.allow, now),
          .deny = shown_list(of_file_.deny, added_.deny, now),
          .overrides = shown_list(of_file_.overrides, added_.overrides, now)};
}

// The content with these additions, one list of which was edited. Rules stay as they are, and so
// does the snapshot, unless an override changes the limits of some. Expired entries are removed:
// repeated edits must not make this longer and longer.
template <class Entry>
Parsed<void> EngineState::use_added(ExceptionsConfig added) {
  const WallTime now = clock_.now().wall();
  erase_ended(added.allow, now);
  erase_ended(added.deny, now);
  erase_ended(added.overrides, now);
  EngineContent content = content_;
  ExceptionsConfig all = merged(added);
  if constexpr (std::is_same_v<Entry, engine::Override>) {
    Parsed<void> used =
        use_with_overrides(content, content.snapshot->shared_rules(), std::move(all.overrides));
    if (!used) return used;
  } else {
    content.lists =
        std::make_shared<const engine::Lists>(std::move(all.allow), std::move(all.deny));
  }
  added_ = std::move(added);
  content_ = std::move(content);
  return {};
}

template <class Entry>
Parsed<void> EngineState::add(std::vector<Entry> ExceptionsConfig::* list, Entry entry) {
  ExceptionsConfig added = added_;
  std::erase_if(added.*list, [&](const Entry& one) { return one.subject == entry.subject; });
  (added.*list).push_back(std::move(entry));
  return use_added<Entry>(std::move(added));
}

template <class Entry>
bool EngineState::remove(std::vector<Entry> ExceptionsConfig::* list,
                         const engine::Subject& subject) {
  ExceptionsConfig added = added_;
  const auto removed =
      std::erase_if(added.*list, [&](const Entry& one) { return one.subject == subject; });
  return removed > 0 && use_added<Entry>(std::move(added)).has_value();
}

Parsed<void> EngineState::allow(engine::ListEntry entry) {
  return add(&ExceptionsConfig::allow, std::move(entry));
}
Parsed<void> EngineState::deny(engine::ListEntry entry) {
  return add(&ExceptionsConfig::deny, std::move(entry));
}
Parsed<void> EngineState::multiply(engine::Override entry) {
  return add(&ExceptionsConfig::overrides, std::move(entry));
}
bool EngineState::remove_allowed(const engine::Subject& subject) {
  return remove(&ExceptionsConfig::allow, subject);
}
bool EngineState::remove_denied(const engine::Subject& subject) {
  return remove(&ExceptionsConfig::deny, subject);
}
bool EngineState::remove_override(const engine::Subject& subject) {
  return remove(&ExceptionsConfig::overrides, subject);
}

// ---- blocks -----------------------------------------------------------------------------------

std::vector<engine::BlockEntry> EngineState::blocks() const {
  return book_->list(clock_.now().wall());
}

bool EngineState::unblock(std::uint64_t block) {
  for (const engine::BlockEntry& entry : blocks()) {
    if (entry.block != block) continue;
    table_->forget({.low = entry.block, .high = 0});
    table_->forget({.low = entry.refusals, .high = 0});
    return book_->erase(block);
  }
  return false;
}

// ---- workers ----------------------------------------------------------------------------------

WorkerEngine::WorkerEngine(EngineState& state, unsigned workers)
    : store_(state.stores().for_worker(workers)),
      decider_(*store_, state.stores().limits()),
      envoy_(*store_) {
  decider_.use(&state.book());
}

void WorkerEngine::use(const EngineContent& content) {
  decider_.use(content.snapshot);
  envoy_.use(content.envoy);
  decider_.use(content.lists);
  decider_.use(content.identifier, content.policy);
}

}  // namespace sluice::embed
