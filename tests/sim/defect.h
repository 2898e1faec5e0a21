// Known defects of distributed limiters, to be put back on purpose: a simulation that does not find
// them is blind. None of them is in the product: each is a decorator around one of its seams, or
// another text of the functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::sim {

enum class Defect : std::uint8_t {
  none,
  node_clock_windows,    // windows follow the clock of the node that asks
  read_then_write,       // looks first and charges in a second call
  blind_resend,          // sends a decision again that may have been carried out
  reply_of_reused_call,  // takes a late reply for that of the call in the same place
  double_refund,         // gives back twice what one request has charged
  missing_compensation,  // keeps what was charged for a request that was not admitted
  share_is_limit,        // every node admits the whole limit during an outage
  outage_not_settled,    // forgets what shares admitted during an outage
  edition_ignored,       // refunds to a field that was made anew
  duplicate_release,     // sends a refund again under another number
};

struct NamedDefect {
  Defect defect;
  std::string_view name;  // as ./dev sim --defect takes it
};

inline constexpr std::array kDefects{
    NamedDefect{Defect::node_clock_windows, "node-clock-windows"},
    NamedDefect{Defect::read_then_write, "read-then-write"},
    NamedDefect{Defect::blind_resend, "blind-resend"},
    NamedDefect{Defect::reply_of_reused_call, "reply-of-reused-call"},
    NamedDefect{Defect::double_refund, "double-refund"},
    NamedDefect{Defect::missing_compensation, "missing-compensation"},
    NamedDefect{Defect::share_is_limit, "share-is-limit"},
    NamedDefect{Defect::outage_not_settled, "outage-not-settled"},
    NamedDefect{Defect::edition_ignored, "edition-ignored"},
    NamedDefect{Defect::duplicate_release, "duplicate-release"},
};

[[nodiscard]] constexpr std::optional<Defect> defect_of(std::string_view name) noexcept {
  for (const NamedDefect& known : kDefects) {
    if (known.name == name) return known.defect;
  }
  return std::nullopt;
}

}  // namespace sluice::sim
