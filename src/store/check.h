// What a store is asked about one request, and what it answers.
//
// A store knows keys as digests and limits as numbers (store/limits.h).
#pragma once

#include "base/digest.h"
#include "store/limits.h"
#include <sluice/core/step.h>
#include <sluice/decision.h>
#include <sluice/limit.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::store {

using core::Cost;
using core::Receipt;

// One limit for one request.
struct Check {
  // Of this limit's own counter. A shared store keeps all limits of a rule and subject together,
  // under `key` without the salt, and tells them apart by the salt. A table needs the first half
  // alone, and only limits that are shared have the second.
  Digest key;
  std::uint64_t salt = 0;
  LimitNumber limit = 0;
  Cost cost = 1;
  OnChange change = OnChange::keep;  // how to treat a state that another limit wrote
  OnTableFull on_table_full = OnTableFull::approximate;

  // Only whether it would be admitted: nothing is charged, unless rejected requests count.
  bool probe = false;

  // For stores with a cache of their own.
  bool may_be_refunded = false;  // a rejection may end before its time
  bool thread_leases = false;    // may be leased, see store/local/thread_cache.h

  // Of rule and subject.
  [[nodiscard]] Digest group_key() const noexcept {
    return {.low = key.low ^ salt, .high = key.high};
  }
};

// A charge, named so that it can be refunded. Opaque to callers.
struct Charge {
  LimitNumber limit = 0;    // that issued the receipt
  std::uint32_t ticks = 0;  // of a shared bucket: its mark, beyond microseconds
  Receipt receipt;
  std::int64_t edition = 0;  // of a shared limit: when the field was made that was charged
};

struct Answer {
  Decision decision;
  Charge charge;
};

// ---- calls ------------------------------------------------------------------------------------

inline constexpr std::size_t kCallChecksMax = 32;

// Where a group was decided.
enum class Source : std::uint8_t {
  local,         // by this node's table, alone
  lease,         // by tokens that the node has leased
  exact,         // by the shared store
  denied_until,  // by an earlier rejection of the shared store
  deny_list,     // by another node's rejection
  share,         // by the node's share: the shared store cannot be reached
  open,          // not at all, for the same reason
  closed,
};
[[nodiscard]] std::string_view to_string(Source source) noexcept;

enum class GroupVerdict : std::uint8_t {
  admitted,
  rejected,
  // Without answers: these groups never bind, and no client is told numbers of them.
  open,       // the store cannot be reached, and the limits do not apply meanwhile
  closed,     // the store cannot be reached, and the request is to be rejected with 503
  not_asked,  // another group rejected the request before this one was decided
};

// The limits of one rule for one subject, of which there is one key at a shared store: checks one
// after another. Decided in one step.
struct Group {
  std::uint8_t first = 0;
  std::uint8_t count = 0;
  GroupVerdict verdict = GroupVerdict::admitted;
  Source source = Source::local;

  [[nodiscard]] bool has_answers() const noexcept { return verdict <= GroupVerdict::rejected; }
};

// The checks of one request. The caller owns it and keeps it in place until it is completed or
// cancelled. It has no views into the request.
struct Call {
  enum class Kind : std::uint8_t {
    all_or_nothing,  // one rejected group, and no group is charged
    independent,     // each group by itself
  };

  std::array<Check, kCallChecksMax> checks;
  std::array<Answer, kCallChecksMax> answers;
  std::array<Group, kCallChecksMax> groups;
  std::size_t count = 0;  // of checks and answers
  std::size_t group_count = 0;
  Kind kind = Kind::all_or_nothing;

  // Once completed: no group rejected it, and none is closed.
  bool admitted = false;

  // Completed later: called once, by the calling worker, after decide_all() has returned. May be
  // null only if all limits are local.
  void (*completed)(Call&) noexcept = nullptr;
  void* owner = nullptr;
  // For the store, while the call is in flight.
  std::uint32_t ticket = 0;

  [[nodiscard]] std::span<const Check> asked() const noexcept {
    return std::span{checks}.first(count);
  }
  [[nodiscard]] std::span<Answer> answered() noexcept { return std::span{answers}.first(count); }
  [[nodiscard]] std::span<Group> all_groups() noexcept {
    return std::span{groups}.first(group_count);
  }
  [[nodiscard]] std::span<const Group> all_groups() const noexcept {
    return std::span{groups}.first(group_count);
  }

  void clear() noexcept {
    count = group_count = 0;
    completed = nullptr;
  }
  // The checks from `first` on are a group.
  void group_from(std::size_t first) noexcept {
    groups[group_count++] = {.first = static_cast<std::uint8_t>(first),
                             .count = static_cast<std::uint8_t>(count - first)};
  }
};

// ---- after the decision -----------------------------------------------------------------------

// What a request holds of a limit until it is over. The caller keeps it and passes it to the store,
// which alone reads and writes it: the result of a correction may not be known yet.
struct Holding {
  Charge charge;
  Charge more;               // what a correction added, if that could not be joined to `charge`
  Cost cost = 0;             // of both, and of what can no longer be refunded
  std::uint32_t ticket = 0;  // of the store, while a result is on its way
};

[[nodiscard]] inline Holding holding(const Charge& charge, Cost cost) noexcept {
  return {.charge = charge, .more = {}, .cost = cost, .ticket = 0};
}

}  // namespace sluice::store
