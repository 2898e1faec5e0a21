#include "frontend/access_log/trace_context.h"

#include "base/hex.h"

#include <algorithm>

namespace sluice::frontend {
namespace {

// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kParentAt = kTraceAt + kTraceDigits + 1;
constexpr std::size_t kParentDigits = 16;
constexpr std::size_t kFlagsAt = kParentAt + kParentDigits + 1;
constexpr std::size_t kBytes = kFlagsAt + 2;
static_assert(kBytes == std::tuple_size_v<TraceParentText>);

bool is_hex(std::string_view text) noexcept {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) noexcept {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view value) noexcept {
  if (value.size() < kBytes) return std::nullopt;
  const std::string_view version = value.substr(0, 2);
  if (!is_hex(version) || version == "ff") return std::nullopt;
  const bool has_more = value.size() > kBytes;
  if (has_more && (version == "00" || value[kBytes] != '-')) return std::nullopt;
  const TraceParent parent{.trace_id = value.substr(kTraceAt, kTraceDigits),
                           .parent_id = value.substr(kParentAt, kParentDigits)};
  const bool is_well_formed = value[kTraceAt - 1] == '-' && value[kParentAt - 1] == '-' &&
                              value[kFlagsAt - 1] == '-' && is_hex(value.substr(kFlagsAt, 2));
  if (!is_well_formed || !is_id(parent.trace_id) || !is_id(parent.parent_id)) return std::nullopt;
  return parent;
}

std::string_view trace_id_of(std::span<const HeaderView> headers) noexcept {
  std::string_view found;
  for (const HeaderView& header : headers) {
    if (!equals_ignoring_case(header.name, kTraceParent)) continue;
    const std::optional<TraceParent> parent = parse_traceparent(header.value);
    if (!parent || !found.empty()) return {};
    found = parent->trace_id;
  }
  return found;
}

TraceParentText write_traceparent(const TraceStart& start) noexcept {
  TraceParentText text;
  char* at = std::ranges::copy(std::string_view{"00-"}, text.begin()).out;
  at = put_hex(put_hex(at, start.high), start.low);
  *at++ = '-';
  at = put_hex(at, start.parent);
  std::ranges::copy(std::string_view{start.sampled ? "-01" : "-00"}, at);
  return text;
}

}  // namespace sluice::frontend
