#include "app/engine_room.h"

#include "app/logged_fields.h"
#include "rules/rule_set.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace sluice::app {
namespace {

template <class Entry>
void erase_ended(std::vector<Entry>& list, WallTime now) {
  std::erase_if(list, [now](const Entry& one) { return !one.holds(now); });
}

// Added ones first: of several for one subject, the first that holds counts. The file's stand
// behind them, since they hold again once those have ended, when nobody edits anything.
template <class Entry>
std::vector<Entry> merged_list(const std::vector<Entry>& of_file, const std::vector<Entry>& added,
                               WallTime now) {
  std::vector<Entry> all = added;
  all.insert(all.end(), of_file.begin(), of_file.end());
  erase_ended(all, now);
  return all;
}

// Those of the file, except where one that was added holds for the same subject; then the others.
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

std::unique_ptr<EngineRoom> EngineRoom::open(const Configuration& configuration, const Clock& clock,
                                             config::Diagnostics& diagnostics,
                                             metrics::Registry* registry) {
  std::unique_ptr<EngineRoom> room{new EngineRoom{clock, registry}};
  if (!room->open_state(configuration, diagnostics)) return nullptr;
  if (!room->replace(configuration, diagnostics)) return nullptr;
  return room;
}

bool EngineRoom::open_state(const Configuration& configuration, config::Diagnostics& diagnostics) {
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
  limits_ = std::make_unique<store::LocalAuthority>(*table_, 1);
  return true;
}

bool EngineRoom::replace(const Configuration& configuration, config::Diagnostics& diagnostics) {
  Content content{.snapshot = nullptr,
                  .envoy = nullptr,
                  .lists = nullptr,
                  .identifier = load_clients(configuration.clients, diagnostics),
                  .policy = configuration.clients.policy,
                  .counters = nullptr,
                  .logged = std::make_shared<const frontend::AccessFormat::Options>(
                      logged_fields(configuration))};
  if (configuration.envoy) content.envoy = envoy_snapshot(*configuration.envoy, diagnostics);
  const bool has_trees = content.envoy != nullptr || !configuration.envoy;
  if (content.identifier == nullptr || !has_trees) return false;

  const std::lock_guard editing{editing_};
  ExceptionsConfig before = std::exchange(of_file_, configuration.exceptions);
  if (publish_rules(std::move(content), configuration.rules, diagnostics)) return true;
  of_file_ = std::move(before);
  return false;
}

bool EngineRoom::replace_rules(const Configuration& configuration,
                               config::Diagnostics& diagnostics) {
  const std::lock_guard editing{editing_};
  Content content = this->content();
  content.logged =
      std::make_shared<const frontend::AccessFormat::Options>(logged_fields(configuration));
  return publish_rules(std::move(content), configuration.rules, diagnostics);
}

// With these rules, while nobody else edits.
bool EngineRoom::publish_rules(Content content, const rules::RuleList& rules,
                               config::Diagnostics& diagnostics) {
  ExceptionsConfig all = merged(added_);
  Parsed<void> used = use_with_overrides(content, std::make_shared<const rules::RuleSet>(rules),
                                         std::move(all.overrides));
  if (!used) {
    diagnostics.error(std::move(used.error()));
    return false;
  }
  if (registry_ != nullptr) {
    content.counters = std::make_shared<const frontend::DecisionCounters>(
        *registry_, content.snapshot->shared_rules());
  }
  content.lists = std::make_shared<const engine::Lists>(std::move(all.allow), std::move(all.deny));
  publish(std::move(content));
  return true;
}

Parsed<void> EngineRoom::use_with_overrides(Content& content,
                                            std::shared_ptr<const rules::RuleSet> rules,
                                            std::vector<engine::Override> overrides) {
  const std::shared_ptr<const engine::Snapshot> before = this->content().snapshot;
  auto snapshot = engine::Snapshot::make(std::move(rules), std::move(overrides), *limits_,
                                         clock_.now(), before.get());
  if (!snapshot) return tl::unexpected(std::move(snapshot.error()));
  content.snapshot = *std::move(snapshot);
  return {};
}

// What held before goes when nobody waits for the mutex any more.
void EngineRoom::publish(Content content) noexcept {
  const std::lock_guard guard{mutex_};
  std::swap(content_, content);
  version_.fetch_add(1, std::memory_order_release);
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
  const std::lock_guard editing{editing_};
  const WallTime now = clock_.now().wall();
  return {.allow = shown_list(of_file_.allow, added_.allow, now),
          .deny = shown_list(of_file_.deny, added_.deny, now),
          .overrides = shown_list(of_file_.overrides, added_.overrides, now)};
}

// What holds with these additions, of which one list was edited. Rules stay as they are, and so
// does the snapshot, unless an override changes what some of them amount to. Those that have ended
// are forgotten: whoever lists and lists again must not make this longer and longer.
template <class Entry>
Parsed<void> EngineRoom::take_over(ExceptionsConfig added) {
  const WallTime now = clock_.now().wall();
  erase_ended(added.allow, now);
  erase_ended(added.deny, now);
  erase_ended(added.overrides, now);
  Content content = this->content();
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
  publish(std::move(content));
  return {};
}

template <class Entry>
Parsed<void> EngineRoom::add(std::vector<Entry> ExceptionsConfig::* list, Entry entry) {
  const std::lock_guard editing{editing_};
  ExceptionsConfig added = added_;
  std::erase_if(added.*list, [&](const Entry& one) { return one.subject == entry.subject; });
  (added.*list).push_back(std::move(entry));
  return take_over<Entry>(std::move(added));
}

template <class Entry>
bool EngineRoom::remove(std::vector<Entry> ExceptionsConfig::* list,
                        const engine::Subject& subject) {
  const std::lock_guard editing{editing_};
  ExceptionsConfig added = added_;
  const auto removed =
      std::erase_if(added.*list, [&](const Entry& one) { return one.subject == subject; });
  return removed > 0 && take_over<Entry>(std::move(added)).has_value();
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
