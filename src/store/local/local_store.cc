#include "store/local/local_store.h"

#include "store/local/table_impl.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace sluice::store {
namespace {

constexpr Nanos kSweepEvery = std::chrono::hours{1};
// Upkeep finds a sweep due a minute late, at most.
static_assert(kSweepEvery + LimitRegistry::kTouchEvery < ApproximateCells::kSweepWithin);
constexpr std::size_t kFaultAtOnce = std::size_t{8} << 20U;

// No two placements share a ticket, in any process: the upper bits are the process, by number and
// generation, and no process lives long enough to run out of the lower ones.
std::uint64_t first_ticket(Participant self) noexcept {
  return (std::uint64_t{self.number} << 58U) |
         (std::uint64_t{self.generation % (1U << 18U)} << 40U);
}

}  // namespace

LocalStore::LocalStore(std::unique_ptr<Mapping> mapping,
                       std::unique_ptr<LimitRegistry> limits) noexcept
    : mapping_(std::move(mapping)),
      limits_(std::move(limits)),
      blocks_(mapping_->slabs(), mapping_->self()),
      table_(mapping_->table(), *limits_, blocks_, first_ticket(mapping_->self())) {}

LocalStore::~LocalStore() {
  background_.request_stop();
  woken_.notify_all();
}

Parsed<std::unique_ptr<LocalStore>> LocalStore::open(const LocalStoreOptions& options, Now now) {
  bool discard = false;
  while (true) {
    Parsed<Mapping> opened = Mapping::open(options.mapping, now, discard);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    auto mapping = std::make_unique<Mapping>(*std::move(opened));
    Parsed<std::unique_ptr<LimitRegistry>> limits = LimitRegistry::open(*mapping);
    if (!limits && options.mapping.start_fresh && !discard) {
      discard = true;
      continue;
    }
    if (!limits) return tl::unexpected(std::move(limits.error()));

    std::unique_ptr<LocalStore> store{new LocalStore{std::move(mapping), *std::move(limits)}};
    store->take_over();
    // A file may not have been swept for as long as that: its first upkeep does so.
    const bool has_file = !store->mapping_->file().empty();
    store->last_sweep_ = has_file ? now.mono - kSweepEvery : now.mono;
    if (options.background != nullptr) {
      store->background_ =
          std::jthread{[self = store.get(), clock = options.background](
                           const std::stop_token& stop) { self->run(stop, *clock); }};
    }
    return store;
  }
}

// What only one process may do, before others join. Cells are read only after a break that is
// longer than the time between two sweeps. Of that time they may have been used in the last minute:
// a process remembers the time at each upkeep. Recovery after killed processes is left out for a
// file above kQuicklyRead: a start has to be quick, and no decision depends on it.
void LocalStore::take_over() noexcept {
  const Nanos unattended = mapping_->unattended();
  if (unattended > kSweepEvery) {
    table_.drop_cells_drained_within(unattended - LimitRegistry::kTouchEvery);
  }
  constexpr std::size_t kQuicklyRead = std::size_t{256} << 20U;
  if (mapping_->was_alone() && !mapping_->file().empty() && mapping_->bytes() <= kQuicklyRead) {
    recover_blocks();
    blocks_.compact(
        [this](std::uint32_t slot, Handle handle) { return table_.holds(slot, handle); });
    table_.recount_passed();
  }
  mapping_->let_others_in();
}

void LocalStore::recover_blocks() noexcept {
  const auto is_alive = [this](Participant holder) { return mapping_->is_alive(holder); };
  blocks_.finish_reshaping(is_alive);
  const std::vector<Handle> handles = blocks_.left_behind(is_alive);
  if (handles.empty()) return;
  std::unordered_map<std::uint64_t, std::optional<std::uint32_t>> slots;
  for (const Handle& handle : handles) slots[handle.word()] = std::nullopt;
  table_.for_each_handle([&slots](std::uint32_t slot, Handle handle) {
    const auto found = slots.find(handle.word());
    if (found != slots.end()) found->second = slot;
  });
  for (const Handle& handle : handles) blocks_.settle(handle, slots[handle.word()]);
}

Parsed<LimitNumber> LocalStore::use_for(LimitRegistry::For who, const Limit& limit, Now now) {
  Parsed<LimitNumber> number = limits_->use(limit, who, now.wall(), clear_slots(now));
  if (number) mapping_->raise_all_epochs();
  return number;
}

LimitRegistry::ClearSlots LocalStore::clear_slots(Now now) noexcept {
  return [this, stored = mapping_->stored(now)](const LimitRegistry::Dropped& dropped) {
    (void)table_.sweep(0, table_.slots(), stored, dropped);
  };
}

bool LocalStore::decide_all(std::span<const Check> checks, Now now,
                            std::span<Answer> answers) noexcept {
  const bool admitted = table_.decide_all(checks, mapping_->stored(now), answers);
  if (!admitted) {
    // A limit that was charged and refunded may have rejected other requests meanwhile.
    for (const Check& check : checks) {
      if (checks.size() > 1) mapping_->raise_epoch(check.limit);
    }
  }
  return admitted;
}

void LocalStore::refund(const Check& check, const Charge& charge, Now now) noexcept {
  if (charge.receipt.cost == 0) return;
  table_.refund(check, charge, mapping_->stored(now));
  mapping_->raise_epoch(charge.limit);
}

bool LocalStore::forget(const Digest& key) noexcept {
  const bool was_there = table_.forget(key);
  mapping_->raise_all_epochs();
  return was_there;
}

std::vector<LocalStore::Entry> LocalStore::list(std::size_t& cursor, std::size_t most, Now now) {
  std::vector<Entry> entries;
  const Now stored = mapping_->stored(now);
  for (; cursor < table_.slots() && entries.size() < most; ++cursor) {
    if (const auto entry = table_.read_slot(cursor, stored)) entries.push_back(*entry);
  }
  if (cursor >= table_.slots()) cursor = 0;
  return entries;
}

LocalStoreStatus LocalStore::status() const {
  return {.counters = table_.counters(),
          .slots = table_.slots(),
          .slots_used = used_.load(std::memory_order_relaxed),
          .cells = table_.cells(),
          .cells_used = cells_used_.load(std::memory_order_relaxed),
          .block_bytes = blocks_.bytes(),
          .block_bytes_used = blocks_.bytes_handed_out(),
          .limits = mapping_->limits().size(),
          .limits_used = limits_->size(),
          .bytes = mapping_->bytes(),
          .huge_page_bytes = mapping_->huge_page_bytes()};
}

// A key's hash determines its place, so any part of the table is as full as the rest. Reading a
// part sweeps it.
std::size_t LocalStore::keys_approx(Now now) noexcept {
  constexpr std::size_t kAtOnce = std::size_t{1} << 16U;
  constexpr std::size_t kSlotsMax = std::size_t{1} << 22U;
  constexpr std::size_t kKeysMax = 200'000;
  const auto keep_all = [](LimitNumber) { return false; };
  const Now stored = mapping_->stored(now);
  const std::size_t slots = table_.slots();
  std::size_t keys = 0;
  std::size_t seen = 0;
  while (seen < std::min(slots, kSlotsMax) && keys < kKeysMax) {
    keys += table_.sweep(seen, seen + kAtOnce, stored, keep_all);
    seen = std::min(seen + kAtOnce, slots);
  }
  return seen > 0 ? keys * slots / seen : 0;
}

// ---- upkeep -----------------------------------------------------------------------------------

void LocalStore::upkeep(Now now) noexcept {
  const std::lock_guard guard{upkeep_};
  mapping_->remember_time(now);
  limits_->touch(now.wall());
  limits_->tidy(now.wall(), clear_slots(now));
  recover_blocks();
  if (now.mono - last_sweep_ < kSweepEvery) return;
  last_sweep_ = now.mono;
  sweep(now);
}

void LocalStore::sweep(Now now) noexcept {
  const auto keep_all = [](LimitNumber) { return false; };
  used_.store(table_.sweep(0, table_.slots(), mapping_->stored(now), keep_all),
              std::memory_order_relaxed);
  cells_used_.store(table_.sweep_cells(mapping_->stored(now)), std::memory_order_relaxed);
}

bool LocalStore::is_full(Now now) const noexcept {
  constexpr Nanos kLately = std::chrono::minutes{1};
  const MonoTime last = table_.last_full();
  return last != MonoTime::min() && mapping_->stored(now).mono - last < kLately;
}

void LocalStore::run(const std::stop_token& stop, const Clock& clock) {
  for (std::size_t at = 0; at < mapping_->bytes() && !stop.stop_requested();) {
    at = mapping_->fault_in(at, kFaultAtOnce);
  }
  std::unique_lock lock{wake_};
  while (!stop.stop_requested()) {
    woken_.wait_for(lock, stop, LimitRegistry::kTouchEvery, [] { return false; });
    if (!stop.stop_requested()) upkeep(clock.now());
  }
}

}  // namespace sluice::store
