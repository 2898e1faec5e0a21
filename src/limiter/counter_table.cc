#include "limiter/counter_table_inside.h"
#include <sluice/counter_table.h>

#include <utility>

namespace sluice {
namespace {

const SystemClock kTableClock;

}  // namespace

CounterTable::CounterTable(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
CounterTable::~CounterTable() = default;

Parsed<std::shared_ptr<CounterTable>> CounterTable::open(const TableOptions& options) {
  const Clock& clock = options.clock != nullptr ? *options.clock : kTableClock;
  Parsed<std::unique_ptr<store::LocalStore>> store = store::LocalStore::open(
      {.mapping = {.memory = options.memory,
                   .file = options.file,
                   .start_fresh = options.start_fresh,
                   .pages = options.huge_pages ? store::Pages::automatic : store::Pages::small},
       .background = options.background ? &clock : nullptr},
      clock.now());
  if (!store) return tl::unexpected(std::move(store.error()));
  auto inside = std::make_unique<Inside>(Inside{.store = *std::move(store)});
  return std::shared_ptr<CounterTable>{new CounterTable{std::move(inside)}};
}

TableStatus CounterTable::status() const {
  const store::LocalStoreStatus status = inside_->store->status();
  return {.bytes = status.bytes,
          .huge_page_bytes = status.huge_page_bytes,
          .slots = status.slots,
          .slots_used = status.slots_used,
          .cells = status.cells,
          .cells_used = status.cells_used,
          .block_bytes = status.block_bytes,
          .block_bytes_used = status.block_bytes_used,
          .limits = status.limits,
          .limits_used = status.limits_used,
          .inserted = status.counters.inserted,
          .evicted = status.counters.evicted,
          .approximated = status.counters.approximated,
          .untracked = status.counters.untracked,
          .forgiven = status.counters.forgiven,
          .rejected_for_room = status.counters.rejected_for_room,
          .refunds_lost = status.counters.refunds_lost,
          .failed_exchanges = status.counters.failed_exchanges};
}

std::vector<KeyEntry> CounterTable::list(std::size_t& cursor, std::size_t most, Now now) {
  std::vector<KeyEntry> entries;
  for (const store::LocalStore::Entry& entry : inside_->store->list(cursor, most, now)) {
    entries.push_back({.fingerprint = entry.fingerprint,
                       .limit = inside_->store->limit(entry.limit).limit(),
                       .decision = entry.decision});
  }
  return entries;
}

void CounterTable::upkeep(Now now) { inside_->store->upkeep(now); }

}  // namespace sluice
