// How many nodes keep a limit together: where its usage is counted, how far that may be exceeded,
// and what holds while the shared store cannot be reached. Plain data.
#pragma once

#include <cstdint>

namespace sluice {

enum class Mode : std::uint8_t {
  automatic,  // local on one node alone; shared where the nodes have a store in common
  local,
  exact,
  lease,
  writeback,
  owner,
  broadcast,
  gossip,
  leader,
  deny_list,
};

// While the shared store cannot be reached.
enum class OnFailure : std::uint8_t {
  share,   // the node spends its share of the limit
  closed,  // requests are rejected with 503
  open,    // the limit does not apply
};

struct Sharing {
  Mode mode = Mode::local;
  std::uint32_t tolerance_permille = 50;  // of the limit; where a mode may exceed it
  OnFailure on_failure = OnFailure::share;

  friend constexpr bool operator==(const Sharing&, const Sharing&) = default;
};

}  // namespace sluice
