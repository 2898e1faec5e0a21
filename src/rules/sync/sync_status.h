// The status of the rules for operators: the version in force, since when, and errors.
#pragma once

#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::rules {

struct SyncStatus {
  std::string source;
  std::string version;             // in force; empty before the first rules
  std::optional<WallTime> loaded;  // when that came into force
  std::optional<WallTime> attempted;
  bool from_last_good = false;      // the rules in force are of an earlier run
  std::optional<WallTime> kept_at;  // when the earlier run accepted them
  // Why the source's present content is not in force; nothing if it is.
  std::optional<Diagnostic> error;
  std::string rejected_version;  // the version of the error; empty if it has none
  // Why a restart without the source would not find these rules, or did not find any.
  std::optional<Diagnostic> last_good_error;
  std::string watch_problem;  // why changes may be noticed late; empty if they are not

  std::uint64_t accepted = 0;   // versions that came into force, last good ones included
  std::uint64_t rejected = 0;   // versions that did not
  std::uint64_t failed = 0;     // attempts without content
  std::uint64_t unchanged = 0;  // attempts with a known version
};

enum class SyncEvent : std::uint8_t {
  accepted,           // a version came into force
  rejected,           // a version did not; the rules in force stay
  failed,             // the source failed; reported once, until its error changes
  recovered,          // the source works again, with the version in force
  last_good_used,     // rules of an earlier run came into force
  last_good_ignored,  // they could not be used
  not_kept,           // the version in force could not be kept for the next run
};

[[nodiscard]] constexpr std::string_view to_string(SyncEvent event) noexcept {
  switch (event) {
    case SyncEvent::accepted: return "accepted";
    case SyncEvent::rejected: return "rejected";
    case SyncEvent::failed: return "failed";
    case SyncEvent::recovered: return "recovered";
    case SyncEvent::last_good_used: return "last_good_used";
    case SyncEvent::last_good_ignored: return "last_good_ignored";
    case SyncEvent::not_kept: return "not_kept";
  }
  return "unknown";
}

// Worth a line in the log.
struct SyncReport {
  SyncEvent event = SyncEvent::accepted;
  std::string version;   // empty if there is none
  Diagnostic diagnosis;  // empty if there is no error
};

}  // namespace sluice::rules
