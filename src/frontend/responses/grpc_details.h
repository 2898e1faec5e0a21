// grpc-status-details-bin: a rejection as google.rpc messages, for programs.
//
// A google.rpc.Status with RetryInfo, which says when to retry, and QuotaFailure, which names the
// exceeded limits; gRPC client libraries look for these. Written by hand: three messages of a few
// fields do not justify a generator. Pure; no allocation.
#pragma once

#include "engine/op.h"
#include "frontend/responses/grpc_status.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace sluice::frontend {

// Enough for every rejection. Of many violated limits it names as many as fit.
inline constexpr std::size_t kStatusDetailsBytesMax = 2048;

// The value of the header: base64 without padding. Empty for rejections without a limit. `message`
// is that of the status.
[[nodiscard]] std::string_view write_status_details(std::span<char> room, const engine::Op& op,
                                                    std::string_view message) noexcept;

}  // namespace sluice::frontend
