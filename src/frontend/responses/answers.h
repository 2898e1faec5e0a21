// The gateway's own responses: rejections by the engine, and failures of its own.
//
// Headers go to a HeadWriter, to which the caller adds the connection's headers. Bodies are problem
// documents (RFC 9457) in the caller's buffer, or the rule's own. gRPC clients get their status in
// the headers of a 200, since they read any other status as "unavailable". A response names rules
// and numbers, never keys or clients. Immutable, so workers share one; no allocation.
#pragma once

#include "engine/op.h"
#include "frontend/responses/rate_headers.h"
#include "net/http/head_writer.h"
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::frontend {

// What a response needs to know of its request.
struct Asking {
  WallTime now;
  std::string_view client;        // for the partition key of rate limit headers
  std::string_view request_id;    // shown in problem documents
  std::string_view content_type;  // of the request: identifies gRPC clients
  bool is_head = false;
  bool is_cors = false;  // it has an Origin
};

// A failure in the gateway or upstream.
struct Failure {
  std::uint16_t status = 500;
  std::string_view detail;  // for people; empty: the usual text
  std::optional<std::uint64_t> retry_after_s;
  std::string_view allow;               // the allowed methods, for 405
  const engine::Op* charged = nullptr;  // the request's charges, for rate headers
};

// Enough for every problem document. Of many violated policies it names as many as fit.
inline constexpr std::size_t kProblemBytesMax = 4096;

class Answers {
 public:
  // The challenge is the value of WWW-Authenticate.
  explicit Answers(RateHeaders rate_headers, std::string challenge = "Bearer")
      : rate_headers_(std::move(rate_headers)), challenge_(std::move(challenge)) {}

  [[nodiscard]] const RateHeaders& rate_headers() const noexcept { return rate_headers_; }

  // Writes all headers but the empty line. Returns the body, which is empty for HEAD and gRPC. It
  // is in `room` or the rule, and valid until the op is settled. For ops that reject.
  [[nodiscard]] std::string_view refuse(net::HeadWriter& head, std::span<char> room,
                                        const engine::Op& op, const Asking& asking) const noexcept;

  [[nodiscard]] std::string_view fail(net::HeadWriter& head, std::span<char> room,
                                      const Failure& failure, const Asking& asking) const noexcept;

 private:
  void refuse_grpc(net::HeadWriter& head, const engine::Op& op,
                   const Asking& asking) const noexcept;
  void write_rate_headers(net::HeadWriter& head, const engine::Op& op, std::uint16_t status,
                          const Asking& asking) const noexcept;

  RateHeaders rate_headers_;
  std::string challenge_;
};

}  // namespace sluice::frontend
