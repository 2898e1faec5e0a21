// Responses as gRPC statuses. Pure; no allocation.
#pragma once

#include "engine/op.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::frontend {

// The numbers are gRPC's.
enum class GrpcStatus : std::uint8_t {
  invalid_argument = 3,
  deadline_exceeded = 4,
  permission_denied = 7,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

// application/grpc, application/grpc+proto, application/grpc-web: with or without parameters.
[[nodiscard]] bool is_grpc(std::string_view content_type) noexcept;

[[nodiscard]] GrpcStatus grpc_status(engine::Reason reason) noexcept;
[[nodiscard]] GrpcStatus grpc_status(std::uint16_t http_status) noexcept;

// grpc-message: percent signs and all but printable ASCII as %xx, cut to the room.
[[nodiscard]] std::string_view percent_encode(std::string_view text, std::span<char> room) noexcept;

}  // namespace sluice::frontend
