#include "store/local/limit_registry.h"

#include "base/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace sluice::store {
namespace {

enum Flag : std::uint8_t {
  kCountRejected = 1,
  kHasBurst = 2,
  kHasBucketWidth = 4,
  kHasMaxDelay = 8,
  kHasSlotTtl = 16,
  kHasTimezone = 32,
  kStandsIn = 64,
};

constexpr std::size_t kMeaning = offsetof(LimitRecord, amount);  // fields before: bookkeeping

// A record's bytes from there on: equal for equal limits.
std::string_view text_of(const LimitRecord& record) noexcept {
  return {reinterpret_cast<const char*>(&record) + kMeaning, sizeof record - kMeaning};
}

bool says_the_same(const LimitRecord& a, const LimitRecord& b) noexcept {
  return text_of(a) == text_of(b);
}

std::uint64_t checksum_of(const LimitRecord& record) {
  SipHash13 hash{{}};
  hash.append(text_of(record));
  return hash.finish().low | 1U;  // 0 is a free record
}

template <class Enum>
std::uint8_t optional_number(const std::optional<Enum>& value) noexcept {
  return value ? static_cast<std::uint8_t>(static_cast<std::uint8_t>(*value) + 1) : 0;
}

template <class Enum>
std::optional<Enum> optional_enum(std::uint8_t number) noexcept {
  if (number == 0) return std::nullopt;
  return static_cast<Enum>(number - 1);
}

LimitRecord record_of(const Limit& limit) noexcept {
  LimitRecord record{.amount = limit.amount,
                     .period = limit.period.count(),
                     .burst = limit.burst.value_or(0),
                     .bucket_width = limit.bucket_width.value_or(Nanos{0}).count(),
                     .max_delay = limit.max_delay.value_or(Nanos{0}).count(),
                     .slot_ttl = limit.slot_ttl.value_or(Nanos{0}).count(),
                     .algorithm = static_cast<std::uint8_t>(limit.algorithm),
                     .refill = optional_number(limit.refill),
                     .align = optional_number(limit.align),
                     .unit = optional_number(limit.unit)};
  unsigned flags = 0;
  if (limit.count_rejected) flags |= kCountRejected;
  if (limit.burst) flags |= kHasBurst;
  if (limit.bucket_width) flags |= kHasBucketWidth;
  if (limit.max_delay) flags |= kHasMaxDelay;
  if (limit.slot_ttl) flags |= kHasSlotTtl;
  if (limit.timezone) flags |= kHasTimezone;
  if (limit.stands_in) flags |= kStandsIn;
  record.flags = static_cast<std::uint8_t>(flags);
  const std::string zone = limit.timezone.value_or("");
  std::copy_n(zone.begin(), std::min(zone.size(), record.timezone.size() - 1),
              record.timezone.begin());
  record.checksum = checksum_of(record);
  return record;
}

// Fails for a limit that a table cannot count or cannot store.
Parsed<LimitRecord> checked_record(const Limit& limit) {
  Parsed<StoredLimit> compiled = StoredLimit::from(limit);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  const LimitRecord record = record_of(limit);
  if (limit.timezone && limit.timezone->size() >= record.timezone.size()) {
    return mistake(fmt::format("the time zone '{}' has too long a name", *limit.timezone),
                   fmt::format("use at most {} characters", record.timezone.size() - 1));
  }
  return record;
}

Limit limit_of(const LimitRecord& record) {
  Limit limit{.algorithm = static_cast<Algorithm>(record.algorithm),
              .amount = record.amount,
              .period = Nanos{record.period},
              .refill = optional_enum<Refill>(record.refill),
              .align = optional_enum<Align>(record.align),
              .unit = optional_enum<CalendarUnit>(record.unit),
              .count_rejected = (record.flags & kCountRejected) != 0,
              .stands_in = (record.flags & kStandsIn) != 0};
  if ((record.flags & kHasBurst) != 0) limit.burst = record.burst;
  if ((record.flags & kHasBucketWidth) != 0) limit.bucket_width = Nanos{record.bucket_width};
  if ((record.flags & kHasMaxDelay) != 0) limit.max_delay = Nanos{record.max_delay};
  if ((record.flags & kHasSlotTtl) != 0) limit.slot_ttl = Nanos{record.slot_ttl};
  if ((record.flags & kHasTimezone) != 0) limit.timezone = record.timezone.data();
  return limit;
}

std::uint64_t checksum_in(const LimitRecord& record) noexcept {
  return std::atomic_ref<const std::uint64_t>{record.checksum}.load(std::memory_order_acquire);
}

std::int64_t seconds_of(WallTime now) noexcept {
  return std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
}

void stamp(LimitRecord& record, WallTime now) noexcept {
  std::atomic_ref{record.used}.store(seconds_of(now), std::memory_order_relaxed);
}

// Memory may be damaged: an impossible instant counts as 1970.
Nanos unused_for(const LimitRecord& record, WallTime now) noexcept {
  const std::atomic_ref<const std::int64_t> stamped{record.used};
  const std::int64_t used = stamped.load(std::memory_order_relaxed);
  const bool possible = used >= 0 && used < seconds_of(kWallTimeEnd);
  return std::chrono::seconds{seconds_of(now) - (possible ? used : 0)};
}

}  // namespace

Parsed<std::uint64_t> limit_identity(const Limit& limit) {
  return checked_record(limit).map([](const LimitRecord& record) { return record.checksum; });
}

LimitRegistry::LimitRegistry(const Mapping& mapping)
    : mapping_(mapping),
      owned_(mapping.limits().size()),
      checksums_(mapping.limits().size()),
      indexed_(mapping.limits().size()),
      users_(mapping.limits().size()),
      let_go_(mapping.limits().size()),
      pointers_(std::make_unique<std::atomic<const StoredLimit*>[]>(mapping.limits().size())) {
  published_ = {pointers_.get(), mapping.limits().size()};
}

LimitRegistry::~LimitRegistry() = default;

Parsed<std::unique_ptr<LimitRegistry>> LimitRegistry::open(const Mapping& mapping) {
  std::unique_ptr<LimitRegistry> registry{new LimitRegistry{mapping}};
  const Mapping::LimitsLock lock{mapping};
  for (LimitNumber number = 0; number < mapping.limits().size(); ++number) {
    const LimitRecord& record = mapping.limits()[number];
    if (checksum_in(record) == 0) continue;
    if (checksum_in(record) != checksum_of(record) || registry->adopt(number) == nullptr) {
      return mistake(fmt::format("state file '{}': limit {} is damaged", mapping.file(), number),
                     "give another path, or remove it, which forgets all counts");
    }
  }
  return registry;
}

// Makes a record's limit known here. Requires mutex_, or that no other thread has the registry yet.
const StoredLimit* LimitRegistry::adopt(LimitNumber number) const {
  const LimitRecord& record = mapping_.limits()[number];
  if (checksum_in(record) == 0 || checksum_in(record) != checksum_of(record)) return nullptr;
  Parsed<StoredLimit> limit = StoredLimit::from(limit_of(record));
  if (!limit) return nullptr;
  retire(number);
  checksums_[number] = checksum_in(record);
  owned_[number] = std::make_unique<const StoredLimit>(*std::move(limit));
  pointers_[number].store(owned_[number].get(), std::memory_order_release);
  return owned_[number].get();
}

// Another process has freed the number, or given it to another limit.
bool LimitRegistry::is_stale(LimitNumber number) const noexcept {
  return owned_[number] && checksum_in(mapping_.limits()[number]) != checksums_[number];
}

void LimitRegistry::retire(LimitNumber number) const {
  pointers_[number].store(nullptr, std::memory_order_release);
  if (owned_[number]) retired_.push_back(std::move(owned_[number]));
}

// A number that another process added: its first use here compiles the limit.
const StoredLimit* LimitRegistry::find_slow(LimitNumber number) const noexcept {
  if (number >= mapping_.limits().size()) return nullptr;
  const std::lock_guard guard{mutex_};
  if (owned_[number]) return owned_[number].get();
  return adopt(number);
}

// A limit's number, as far as it is known here. Two different limits have the same checksum by
// accident only.
std::optional<LimitNumber> LimitRegistry::indexed(const LimitRecord& record) const {
  const auto found = numbers_.find(record.checksum);
  const bool is_there =
      found != numbers_.end() && says_the_same(mapping_.limits()[found->second], record);
  return is_there ? std::optional{found->second} : std::nullopt;
}

// The number of a limit that was used a short while ago; no process can have freed it since.
std::optional<LimitNumber> LimitRegistry::recently_used(const LimitRecord& record,
                                                        WallTime now) const {
  const std::optional<LimitNumber> number = indexed(record);
  const bool recent = number && unused_for(mapping_.limits()[*number], now) < kGrace / 2;
  return recent ? number : std::nullopt;
}

// Requires the lock on the mapping's limits, as do all functions below up to `use`.
std::optional<LimitNumber> LimitRegistry::recorded(const LimitRecord& record) {
  learn_changes();
  ++looks_;
  return indexed(record);
}

// Other processes' changes of the records since the last call; all records at the first call.
void LimitRegistry::learn_changes() {
  const std::uint64_t changes = mapping_.limit_changes();
  if (changes_seen_ == changes) return;
  first_free_ = static_cast<LimitNumber>(users_.size());
  looks_ += users_.size();
  for (LimitNumber number = 0; number < users_.size(); ++number) {
    const std::uint64_t checksum = checksum_in(mapping_.limits()[number]);
    if (checksum == 0) first_free_ = std::min(first_free_, number);
    if (checksum != indexed_[number]) index(number, checksum);
  }
  changes_seen_ = changes;
}

// The number now means the limit with that checksum; 0: none.
void LimitRegistry::index(LimitNumber number, std::uint64_t checksum) {
  const auto before = numbers_.find(indexed_[number]);
  if (before != numbers_.end() && before->second == number) numbers_.erase(before);
  if (checksum != 0) numbers_[checksum] = number;
  indexed_[number] = checksum;
}

// Sets a record's checksum, which makes it valid, or clears it. The count rises first: if the
// process dies in between, the others compare in vain, but miss no change.
void LimitRegistry::change(LimitNumber number, std::uint64_t checksum) {
  changes_seen_ = mapping_.raise_limit_changes();
  std::atomic_ref{mapping_.limits()[number].checksum}.store(checksum, std::memory_order_release);
  index(number, checksum);
}

std::optional<LimitNumber> LimitRegistry::free_number() noexcept {
  for (; first_free_ < users_.size(); ++first_free_) {
    ++looks_;
    if (checksum_in(mapping_.limits()[first_free_]) == 0) return first_free_;
  }
  return std::nullopt;
}

Parsed<LimitNumber> LimitRegistry::use(const Limit& limit, For who, WallTime now,
                                       const ClearSlots& clear_slots) {
  const Parsed<LimitRecord> record = checked_record(limit);
  if (!record) return tl::unexpected(record.error());
  const std::lock_guard guard{mutex_};
  std::optional<LimitNumber> number = recently_used(*record, now);
  if (!number) {
    const Mapping::LimitsLock lock{mapping_};
    number = recorded(*record);
    if (!number) number = add(*record, who, now, clear_slots);
    if (!number && who == For::request) {
      return mistake("the table has no room for limits that requests bring along",
                     "give it more memory");
    }
    if (!number) {
      return mistake(fmt::format("{} different limits are in use already", users_.size()),
                     "configure more memory, or use fewer different limits");
    }
    stamp(mapping_.limits()[*number], now);
  }
  if (!owned_[*number] || is_stale(*number)) (void)adopt(*number);
  ++users_[*number];
  return *number;
}

// Requires the lock on the mapping's limits.
std::optional<LimitNumber> LimitRegistry::add(LimitRecord record, For who, WallTime now,
                                              const ClearSlots& clear_slots) {
  if (!has_room(who) && may_reclaim(who, now)) reclaim(now, clear_slots);
  if (!has_room(who)) return std::nullopt;
  const std::optional<LimitNumber> number = free_number();
  if (!number) return std::nullopt;
  LimitRecord& place = mapping_.limits()[*number];
  const std::uint64_t checksum = std::exchange(record.checksum, 0);
  place = record;
  change(*number, checksum);
  return number;
}

bool LimitRegistry::has_room(For who) const noexcept {
  const std::size_t all = users_.size();
  return numbers_.size() < (who == For::rule ? all : all - all / 4);
}

// A request reclaims only if tidy() is not called, and seldom: other requests wait behind it.
bool LimitRegistry::may_reclaim(For who, WallTime now) const noexcept {
  return who == For::rule || !reclaimed_ || std::chrono::abs(now - *reclaimed_) >= 2 * kTouchEvery;
}

void LimitRegistry::stop_using(LimitNumber number) noexcept {
  const std::lock_guard guard{mutex_};
  if (number >= users_.size() || users_[number] == 0) return;
  if (--users_[number] == 0) let_go_[number] = true;
}

// Limits in use now or until a moment ago: slots may have usage as recent as that.
void LimitRegistry::stamp_used(WallTime now) noexcept {
  for (LimitNumber number = 0; number < users_.size(); ++number) {
    if (users_[number] > 0 || let_go_[number]) stamp(mapping_.limits()[number], now);
    let_go_[number] = false;
  }
}

void LimitRegistry::touch(WallTime now) noexcept {
  const std::lock_guard guard{mutex_};
  retired_before_ = std::exchange(retired_, {});
  stamp_used(now);
  for (LimitNumber number = 0; number < users_.size(); ++number) {
    if (users_[number] == 0 && is_stale(number)) retire(number);
  }
}

void LimitRegistry::tidy(WallTime now, const ClearSlots& clear_slots) {
  const std::lock_guard guard{mutex_};
  reclaimed_ = now;  // also if there is nothing to gain yet
  if (numbers_.size() < users_.size() / 2) return;
  const Mapping::LimitsLock lock{mapping_};
  learn_changes();
  reclaim(now, clear_slots);
}

// Requires the lock on the mapping's limits.
void LimitRegistry::reclaim(WallTime now, const ClearSlots& clear_slots) {
  reclaimed_ = now;
  stamp_used(now);
  std::vector<bool> dropped(users_.size());
  for (LimitNumber number = 0; number < users_.size(); ++number) {
    if (checksum_in(mapping_.limits()[number]) == 0) continue;
    const bool known = owned_[number] && !is_stale(number);
    const StoredLimit* const limit = known ? owned_[number].get() : adopt(number);
    const Nanos keep = (limit != nullptr ? limit->drain() : core::kDrainMax) + kGrace;
    dropped[number] = users_[number] == 0 && unused_for(mapping_.limits()[number], now) > keep;
  }
  if (std::find(dropped.begin(), dropped.end(), true) == dropped.end()) return;
  clear_slots(
      [&dropped](LimitNumber number) { return number < dropped.size() && dropped[number]; });
  for (LimitNumber number = 0; number < users_.size(); ++number) {
    if (!dropped[number]) continue;
    change(number, 0);
    first_free_ = std::min(first_free_, number);
    retire(number);
  }
}

std::size_t LimitRegistry::size() const noexcept {
  const auto limits = mapping_.limits();
  return static_cast<std::size_t>(std::count_if(
      limits.begin(), limits.end(), [](const LimitRecord& one) { return checksum_in(one) != 0; }));
}

std::uint64_t LimitRegistry::looks() const noexcept {
  const std::lock_guard guard{mutex_};
  return looks_;
}

}  // namespace sluice::store
