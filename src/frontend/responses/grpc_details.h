// grpc-status-details-bin: a refusal in the words of google.rpc, for programs.
//
// A google.rpc.Status with RetryInfo, when it may be tried again, and QuotaFailure, which limits
// are reached; that is what client libraries of gRPC look for. Written by hand: three messages of
// a few fields are no reason for a generator. Pure; no allocation.
#pragma once

#include "engine/op.h"
#include "frontend/responses/grpc_status.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace sluice::frontend {

// Enough for every refusal; of many violated limits as many are named as fit.
inline constexpr std::size_t kStatusDetailsBytesMax = 2048;

// The value of the header: base64 without padding. Empty for refusals that have nothing to do with
// limits. `message` is that of the status.
[[nodiscard]] std::string_view write_status_details(std::span<char> room, const engine::Op& op,
                                                    std::string_view message) noexcept;

}  // namespace sluice::frontend
