// The status of a gRPC call, for rules that count by it.
//
// The status is in the headers of a trailers-only response, and in the trailers of every other.
// Pure; no allocation.
#pragma once

#include "engine/op.h"
#include <sluice/request.h>

#include <cstdint>
#include <optional>
#include <span>

namespace sluice::gateway {

// Whether a rule that charged the request counts by it.
[[nodiscard]] bool counts_grpc_status(const engine::Op& op) noexcept;

// The number of `grpc-status`; nothing: it is absent or malformed.
[[nodiscard]] std::optional<std::uint8_t> grpc_status_in(
    std::span<const HeaderView> fields) noexcept;

// Whether a message is gRPC, by its content type.
[[nodiscard]] bool is_grpc_message(std::span<const HeaderView> headers) noexcept;

}  // namespace sluice::gateway
