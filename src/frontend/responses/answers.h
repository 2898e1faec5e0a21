// What the gateway itself answers: refusals of the engine, and failures of its own.
//
// Heads go to a HeadWriter, to which the caller adds what concerns the connection; bodies are
// problem documents (RFC 9457) in a buffer of the caller's, or the rule's own. gRPC clients get
// their status in the headers of a 200, since anything else they read as "unavailable". An answer
// names rules and numbers, never keys or who was asking. Immutable, so workers share one; nothing
// is allocated.
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

// What an answer needs to know of its request.
struct Asking {
  WallTime now;
  std::string_view client;        // for the partition key of rate limit headers
  std::string_view request_id;    // shown in problem documents
  std::string_view content_type;  // of the request: tells gRPC clients
  bool is_head = false;
  bool is_cors = false;  // it has an Origin
};

// Something that went wrong in the gateway, or beyond it.
struct Failure {
  std::uint16_t status = 500;
  std::string_view detail;  // for people; empty: the usual words
  std::optional<std::uint64_t> retry_after_s;
  std::string_view allow;               // the methods that are, for 405
  const engine::Op* charged = nullptr;  // what the request was counted by: clients are told
};

// Enough for every problem document; of many violated policies as many are named as fit.
inline constexpr std::size_t kProblemBytesMax = 4096;

class Answers {
 public:
  // The challenge is the value of WWW-Authenticate.
  explicit Answers(RateHeaders rate_headers, std::string challenge = "Bearer")
      : rate_headers_(std::move(rate_headers)), challenge_(std::move(challenge)) {}

  [[nodiscard]] const RateHeaders& rate_headers() const noexcept { return rate_headers_; }

  // All of the head but the empty line, and the body, which is empty for HEAD and for gRPC. It
  // stands in `room` or in the rule, and is good until the op is settled. For ops that reject.
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
