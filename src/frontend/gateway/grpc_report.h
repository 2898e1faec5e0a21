// How a call of gRPC ended, for rules that count by it.
//
// The status stands in the headers of an answer that has nothing else, and behind the body of every
// other. Pure; no allocation.
#pragma once

#include "engine/op.h"
#include <sluice/request.h>

#include <cstdint>
#include <optional>
#include <span>

namespace sluice::gateway {

// Whether a rule that the request was charged by wants to know.
[[nodiscard]] bool counts_grpc_status(const engine::Op& op) noexcept;

// The number of `grpc-status`; nothing: it is not among them, or is none.
[[nodiscard]] std::optional<std::uint8_t> grpc_status_in(
    std::span<const HeaderView> fields) noexcept;

// Whether a message is one of gRPC, by its content type.
[[nodiscard]] bool is_grpc_message(std::span<const HeaderView> headers) noexcept;

}  // namespace sluice::gateway
