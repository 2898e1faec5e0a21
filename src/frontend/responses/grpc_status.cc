#include "frontend/responses/grpc_status.h"

#include "base/text_writer.h"
#include <sluice/request.h>

#include <array>

namespace sluice::frontend {

bool is_grpc(std::string_view content_type) noexcept {
  constexpr std::string_view kPrefix = "application/grpc";
  if (!equals_ignoring_case(content_type.substr(0, kPrefix.size()), kPrefix)) return false;
  const std::string_view rest = content_type.substr(kPrefix.size());
  return rest.empty() || std::string_view{"+-; \t"}.find(rest.front()) != std::string_view::npos;
}

GrpcStatus grpc_status(engine::Reason reason) noexcept {
  using engine::Reason;
  switch (reason) {
    case Reason::limited:
    case Reason::never:
    case Reason::queue_full:
    case Reason::blocked: return GrpcStatus::resource_exhausted;
    case Reason::deny_listed:
    case Reason::missing_value: return GrpcStatus::permission_denied;
    case Reason::unauthenticated: return GrpcStatus::unauthenticated;
    case Reason::ambiguous_value:
    case Reason::ambiguous_credentials:
    case Reason::bad_target: return GrpcStatus::invalid_argument;
    case Reason::no_rule:
    case Reason::too_many_rules:
    case Reason::store_failed:
    case Reason::allowed:
    case Reason::unmatched:
    case Reason::allow_listed:
    case Reason::preflight: return GrpcStatus::unavailable;
  }
  return GrpcStatus::unavailable;
}

GrpcStatus grpc_status(std::uint16_t http_status) noexcept {
  switch (http_status) {
    case 400:
    case 414:
    case 417:
    case 421:
    case 431: return GrpcStatus::invalid_argument;
    case 401: return GrpcStatus::unauthenticated;
    case 403: return GrpcStatus::permission_denied;
    // A method that is not served: a gRPC server sends the same.
    case 404:
    case 405:
    case 501:
    case 505: return GrpcStatus::unimplemented;
    case 408:
    case 504: return GrpcStatus::deadline_exceeded;
    case 413:
    case 429: return GrpcStatus::resource_exhausted;
    case 502:
    case 503: return GrpcStatus::unavailable;
    default: return GrpcStatus::internal;
  }
}

std::string_view percent_encode(std::string_view text, std::span<char> room) noexcept {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  TextWriter writer{room};
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '%') {
      writer.put(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    const std::array<char, 3> encoded{'%', kHex[byte >> 4U], kHex[byte & 15U]};
    writer.put(std::string_view{encoded.data(), encoded.size()});
  }
  return writer.text();
}

}  // namespace sluice::frontend
