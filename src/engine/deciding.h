// A request while it is being decided: the checks in the store and the rules that they come from.
//
// Deciders keep these and reuse them. A decision that the store makes in place needs the same one
// as the decision before; one that waits keeps its own until it is completed or abandoned. So does
// a shadow rule that the store decides later, when its request may be over.
//
// One thread.
#pragma once

#include "engine/op.h"
#include "engine/snapshot.h"
#include "store/store.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::engine {

struct Deciding {
  // The client, for the book of blocks: the request is gone when the book is written.
  struct Label {
    std::uint16_t first = 0;
    std::uint16_t size = 0;
  };
  // A check in the store, and its rule.
  struct Asked {
    const Plan* plan = nullptr;
    const PlannedLimit* limit = nullptr;
    std::uint64_t amount = 0;
    std::uint64_t key = 0;  // of the rule, without the salt of its limits
    Label label;            // of rules that block
  };

  // Of each kind: checks that may reject, of both phases together, and checks of shadow rules.
  // resolve_rule() takes no rule whose limits would exceed it.
  static constexpr std::size_t kMost = store::kCallChecksMax;
  static constexpr std::size_t kLabelBytes = 512;  // of all labels of a request

  store::Call call;
  std::array<Asked, kMost> asked;
  std::size_t early_count = 0;  // checks asked before verification
  std::array<store::Check, kMost> shadow_checks;
  std::array<Asked, kMost> shadows;
  std::size_t shadow_count = 0;
  std::array<char, kLabelBytes> labels;
  std::size_t label_bytes = 0;

  // Of a shadow rule that is decided later: its request, while that is not over, and what became
  // of the request meanwhile.
  enum class Ended : std::uint8_t {
    not_yet,
    counts,          // the response counts, or there was none
    does_not_count,  // or the request was abandoned
  };
  Op* request = nullptr;
  Now asked_at;
  class Decider* worker = nullptr;
  SnapshotPin* pin = nullptr;  // of its own: the request may be over first
  Ended ended = Ended::not_yet;

  void clear() noexcept {
    call.clear();
    early_count = shadow_count = label_bytes = 0;
  }
};

}  // namespace sluice::engine
