// W3C Trace Context: the trace that a request belongs to.
//
// A gateway without spans of its own forwards the two headers unchanged. A malformed context starts
// a new trace, as the recommendation demands: half a context is none. Pure; no allocation.
#pragma once

#include <sluice/request.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::frontend {

inline constexpr std::string_view kTraceParent = "traceparent";
inline constexpr std::string_view kTraceState = "tracestate";

// Views into the header.
struct TraceParent {
  std::string_view trace_id;   // 32 hexadecimal digits
  std::string_view parent_id;  // 16
};

// Nothing if malformed. Later versions may append more.
[[nodiscard]] std::optional<TraceParent> parse_traceparent(std::string_view value) noexcept;

// Of the request's only traceparent; empty if there is none, several, or a malformed one.
[[nodiscard]] std::string_view trace_id_of(std::span<const HeaderView> headers) noexcept;

// The context of a new trace. The ids come from a generator that repeats none.
struct TraceStart {
  std::uint64_t high = 0;  // of the trace; the two are not both zero
  std::uint64_t low = 0;
  std::uint64_t parent = 0;  // not zero
  bool sampled = true;
};
using TraceParentText = std::array<char, 55>;
[[nodiscard]] TraceParentText write_traceparent(const TraceStart& start) noexcept;

}  // namespace sluice::frontend
