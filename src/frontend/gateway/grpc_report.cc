#include "frontend/gateway/grpc_report.h"

#include "base/text.h"
#include "frontend/responses/grpc_status.h"
#include "net/http/known_header.h"

#include <algorithm>
#include <limits>

namespace sluice::gateway {

bool counts_grpc_status(const engine::Op& op) noexcept {
  return std::ranges::any_of(op.limits(), [](const engine::LimitOutcome& one) {
    return one.rule->count && !one.rule->count->grpc_statuses.empty();
  });
}

std::optional<std::uint8_t> grpc_status_in(std::span<const HeaderView> fields) noexcept {
  for (const HeaderView& field : fields) {
    if (!net::is_named(field.name, "grpc-status")) continue;
    const std::optional<std::uint64_t> number = parse_number(field.value);
    if (!number || *number > std::numeric_limits<std::uint8_t>::max()) return std::nullopt;
    return static_cast<std::uint8_t>(*number);
  }
  return std::nullopt;
}

bool is_grpc_message(std::span<const HeaderView> headers) noexcept {
  return std::ranges::any_of(headers, [](const HeaderView& header) {
    return net::is_named(header.name, "content-type") && frontend::is_grpc(header.value);
  });
}

}  // namespace sluice::gateway
