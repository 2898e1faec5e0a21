// Limits by number.
//
// A slot has room for a number, not for a limit, so each distinct limit gets a number, in a table
// of the mapping that all processes share. Two rules with equal limits share one number, and so do
// limits that arrive with requests.
//
// A number is given to another limit only when no state can refer to it any more: no limiter here
// uses it, and no process has used it for its drain time and some minutes. The caller clears the
// slots that still carry it. Limits that arrive with requests leave a quarter of the numbers to
// rules. Unused numbers are reclaimed in the background, before requests need them.
//
// An index by checksum, of this process, finds a limit's number, so that ten thousand new limits
// take as many looks. A count in the mapping rises with every change. A process that finds another
// count than before compares the checksums of all records and reads the changed ones.
//
// Thread-safe. Finding a limit costs two loads; all else may allocate, lock and wait.
#pragma once

#include "store/local/mapping.h"
#include "store/local/stored_limit.h"
#include "store/local/table.h"
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sluice::store {

// Equal for limits that share one number, in every table. Fails for a limit that no table accepts.
[[nodiscard]] Parsed<std::uint64_t> limit_identity(const Limit& limit);

class LimitRegistry final : public LimitSource {
 public:
  // How long after its drain time an unused limit keeps its number. Processes mark their limits as
  // used every kTouchEvery.
  static constexpr Nanos kGrace = std::chrono::minutes{10};
  static constexpr Nanos kTouchEvery = std::chrono::minutes{1};

  // The user of a limit. Requests leave a quarter of the numbers to rules.
  enum class For : std::uint8_t { rule, request };

  // Rejects a mapping with a damaged limit.
  [[nodiscard]] static Parsed<std::unique_ptr<LimitRegistry>> open(const Mapping& mapping);
  ~LimitRegistry() override;

  // `clear_slots` empties the slots of all numbers for which its argument is true. It is called
  // when there is no free number. For a request it is called only if tidy() was not called lately,
  // since that takes as long as reading the whole table.
  using Dropped = std::function<bool(LimitNumber)>;
  using ClearSlots = std::function<void(const Dropped&)>;
  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, For who, WallTime now,
                                        const ClearSlots& clear_slots);
  void stop_using(LimitNumber number) noexcept;

  // Marks the limits used here as used, and drops limits whose numbers other processes freed. To be
  // called every kTouchEvery.
  void touch(WallTime now) noexcept;
  // Frees the numbers of unused limits, once half of all are assigned: before requests find none.
  // To be called as often.
  void tidy(WallTime now, const ClearSlots& clear_slots);

  [[nodiscard]] std::size_t size() const noexcept;

  // How many records were read so far to find limits and free numbers, for tests of how that grows.
  [[nodiscard]] std::uint64_t looks() const noexcept;

 private:
  explicit LimitRegistry(const Mapping& mapping);
  [[nodiscard]] const StoredLimit* find_slow(LimitNumber number) const noexcept override;
  [[nodiscard]] const StoredLimit* adopt(LimitNumber number) const;
  [[nodiscard]] bool is_stale(LimitNumber number) const noexcept;
  void retire(LimitNumber number) const;
  [[nodiscard]] std::optional<LimitNumber> indexed(const LimitRecord& record) const;
  [[nodiscard]] std::optional<LimitNumber> recently_used(const LimitRecord& record,
                                                         WallTime now) const;
  [[nodiscard]] std::optional<LimitNumber> recorded(const LimitRecord& record);
  void learn_changes();
  void index(LimitNumber number, std::uint64_t checksum);
  void change(LimitNumber number, std::uint64_t checksum);
  [[nodiscard]] std::optional<LimitNumber> add(LimitRecord record, For who, WallTime now,
                                               const ClearSlots& clear_slots);
  [[nodiscard]] bool has_room(For who) const noexcept;
  [[nodiscard]] bool may_reclaim(For who, WallTime now) const noexcept;
  [[nodiscard]] std::optional<LimitNumber> free_number() noexcept;
  void stamp_used(WallTime now) noexcept;
  void reclaim(WallTime now, const ClearSlots& clear_slots);

  const Mapping& mapping_;
  // Recursive: clearing slots, with it locked, may meet a number that is not known here yet.
  mutable std::recursive_mutex mutex_;
  // Guarded by mutex_:
  mutable std::vector<std::unique_ptr<const StoredLimit>> owned_;
  mutable std::vector<std::uint64_t> checksums_;  // of the records that these were made from
  mutable std::vector<std::unique_ptr<const StoredLimit>> retired_;  // decisions may still read
  std::vector<std::unique_ptr<const StoredLimit>> retired_before_;   // no decision reads them
  std::unordered_map<std::uint64_t, LimitNumber> numbers_;  // of all records, by their checksums
  std::vector<std::uint64_t> indexed_;                      // the checksums that are in there
  std::optional<std::uint64_t> changes_seen_;  // the mapping's count at the last update
  LimitNumber first_free_ = 0;                 // none below it is free
  std::uint64_t looks_ = 0;
  std::vector<std::uint32_t> users_;
  std::vector<bool> let_go_;           // their last user left since they were stamped
  std::optional<WallTime> reclaimed_;  // the last attempt

  std::unique_ptr<std::atomic<const StoredLimit*>[]> pointers_;
};

}  // namespace sluice::store
