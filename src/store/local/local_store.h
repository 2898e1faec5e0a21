// The local store: a table with its memory, its limits and its upkeep.
//
// Construction and upkeep may allocate, lock and wait; decisions do not (store/local/table.h).
#pragma once

#include "store/local/block_pool.h"
#include "store/local/limit_registry.h"
#include "store/local/mapping.h"
#include "store/local/table.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

namespace sluice::store {

struct LocalStoreOptions {
  MappingOptions mapping;

  // A thread with little work: faults the memory in and sweeps now and then. Its clock must be
  // thread-safe; without it, call upkeep().
  const Clock* background = nullptr;
};

// How full the table is, and the effects of that.
struct LocalStoreStatus {
  TableCounters counters;
  std::size_t slots = 0;
  std::size_t slots_used = 0;  // when last swept
  std::size_t cells = 0;       // that keys without a slot share
  std::size_t cells_used = 0;  // when last swept
  std::size_t block_bytes = 0;
  std::size_t block_bytes_used = 0;
  std::size_t limits = 0;
  std::size_t limits_used = 0;
  std::size_t bytes = 0;
  std::size_t huge_page_bytes = 0;
};

class LocalStore {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<LocalStore>> open(const LocalStoreOptions& options,
                                                                Now now);
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;
  ~LocalStore();

  // ---- limits and keys ------------------------------------------------------------------------

  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, Now now) {
    return use_for(LimitRegistry::For::rule, limit, now);
  }
  // A limit that arrives with a request. A limit that has a number is always found; a new one
  // leaves a quarter of the numbers to rules.
  [[nodiscard]] Parsed<LimitNumber> use_for_request(const Limit& limit, Now now) {
    return use_for(LimitRegistry::For::request, limit, now);
  }
  void stop_using(LimitNumber number) noexcept { limits_->stop_using(number); }
  [[nodiscard]] const StoredLimit& limit(LimitNumber number) const noexcept {
    return *limits_->find(number);
  }
  [[nodiscard]] const StoredLimit* limit_if_known(LimitNumber number) const noexcept {
    return limits_->find(number);
  }
  [[nodiscard]] DigestSecret secret() const noexcept { return mapping_->secret(); }

  // ---- decisions ------------------------------------------------------------------------------

  [[nodiscard]] Answer decide(const Check& check, Now now) noexcept {
    return table_.decide(check, mapping_->stored(now));
  }
  [[nodiscard]] bool admits(const Check& check, Now now) noexcept {
    return table_.admits(check, mapping_->stored(now));
  }
  void decide(const Check& check, Now now, Answer& answer) noexcept {
    table_.decide(check, mapping_->stored(now), answer);
  }
  void decide_batch(std::span<const Check> checks, Now now, std::span<Answer> answers) noexcept {
    table_.decide_batch(checks, mapping_->stored(now), answers);
  }
  [[nodiscard]] bool decide_all(std::span<const Check> checks, Now now,
                                std::span<Answer> answers) noexcept;
  Answer force(const Check& check, Now now) noexcept {
    return table_.force(check, mapping_->stored(now));
  }
  void refund(const Check& check, const Charge& charge, Now now) noexcept;
  // A refund that voids no cached rejection: units that were taken ahead and are not needed.
  void give_back(const Check& check, const Charge& charge, Now now) noexcept {
    table_.refund(check, charge, mapping_->stored(now));
  }
  [[nodiscard]] Charge renew(const Check& check, const Charge& lease, Now now) noexcept {
    return table_.renew(check, lease, mapping_->stored(now));
  }
  [[gnu::always_inline]] void prefetch(const Digest& key) const noexcept { table_.prefetch(key); }

  // Rises when a rejection may have become void before its time: by a refund, a reset, a new limit.
  [[nodiscard]] std::uint32_t epoch(LimitNumber limit) const noexcept {
    return mapping_->epoch(limit);
  }

  // ---- operators ------------------------------------------------------------------------------

  using Entry = Table::Entry;
  [[nodiscard]] static std::uint64_t fingerprint_of(const Digest& key) noexcept {
    return Table::fingerprint_of(key);
  }
  [[nodiscard]] std::optional<Entry> read(const Digest& key, Now now) noexcept {
    return table_.read(key, mapping_->stored(now));
  }
  // Keys with usage from slot `cursor` on, `most` at most. Moves the cursor; at the end it is 0.
  [[nodiscard]] std::vector<Entry> list(std::size_t& cursor, std::size_t most, Now now);
  bool forget(const Digest& key) noexcept;
  [[nodiscard]] LocalStoreStatus status() const;
  // How many keys have usage, in a few milliseconds. Exact in a table of up to four million slots
  // while they are few; otherwise from a part of it, to about a quarter of a percent.
  [[nodiscard]] std::size_t keys_approx(Now now) noexcept;
  // How many cells have usage, in about a millisecond for each 64 MiB.
  [[nodiscard]] std::size_t cells_in_use(Now now) noexcept {
    return table_.cells_in_use(mapping_->stored(now));
  }
  // Whether a key found no room within the last minute.
  [[nodiscard]] bool is_full(Now now) const noexcept;

  // The background thread's work: remembers the time, marks limits as used, reclaims the numbers of
  // unused limits, recovers the blocks of killed processes, sweeps when it is time.
  void upkeep(Now now) noexcept;
  void sweep(Now now) noexcept;

 private:
  LocalStore(std::unique_ptr<Mapping> mapping, std::unique_ptr<LimitRegistry> limits) noexcept;
  [[nodiscard]] Parsed<LimitNumber> use_for(LimitRegistry::For who, const Limit& limit, Now now);
  [[nodiscard]] LimitRegistry::ClearSlots clear_slots(Now now) noexcept;
  void take_over() noexcept;
  void recover_blocks() noexcept;
  void run(const std::stop_token& stop, const Clock& clock);

  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<LimitRegistry> limits_;
  BlockPool blocks_;
  Table table_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> cells_used_{0};
  std::mutex upkeep_;
  MonoTime last_sweep_;

  std::mutex wake_;
  std::condition_variable_any woken_;
  std::jthread background_;  // last: it uses all the others
};

}  // namespace sluice::store
