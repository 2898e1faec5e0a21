#include "frontend/responses/answers.h"

#include "base/characters.h"
#include "frontend/responses/grpc_details.h"
#include "frontend/responses/grpc_status.h"
#include "frontend/responses/limit_view.h"
#include "frontend/responses/problem.h"
#include "net/http/known_header.h"
#include "net/http/status_text.h"

#include <algorithm>
#include <array>

namespace sluice::frontend {
namespace {

using engine::Op;
using engine::Reason;

// The rejecting rule may have its own response; internal errors have the gateway's.
const rules::Action* own_words(const Op& op) noexcept {
  switch (op.reason) {
    case Reason::limited:
    case Reason::never:
    case Reason::queue_full:
    case Reason::blocked: return op.rule != nullptr ? &op.rule->action : nullptr;
    default: return nullptr;
  }
}

bool has_header(const rules::Action* over, std::string_view lower_name) noexcept {
  return over != nullptr && std::ranges::any_of(over->headers, [&](const auto& header) {
           return header.first == lower_name;
         });
}

// A rule may not set the length of the body or the lifetime of the connection.
bool may_be_written(std::string_view name) noexcept {
  return net::known_header(name) == net::KnownHeader::other;
}

void write_own_headers(net::HeadWriter& head, const rules::Action* over) noexcept {
  if (over == nullptr) return;
  for (const auto& [name, value] : over->headers) {
    if (may_be_written(name)) head.header(name, trimmed(value));
  }
}

std::string_view content_type_of(std::string_view body) noexcept {
  const bool is_json = body.starts_with('{') || body.starts_with('[');
  return is_json ? "application/json" : "text/plain; charset=utf-8";
}

void write_body_headers(net::HeadWriter& head, std::string_view content_type,
                        std::string_view body) noexcept {
  if (!content_type.empty()) head.own_header("Content-Type", content_type);
  head.framing({.kind = net::BodyFraming::Kind::length, .length = body.size()});
}

// A status may have no name of its own.
std::string_view title_of(std::uint16_t status) noexcept {
  const std::string_view phrase = net::reason_phrase(status);
  return phrase.empty() ? "Rejected" : phrase;
}

// The trailers-only form: the status is among the headers.
void write_grpc(net::HeadWriter& head, std::string_view content_type, GrpcStatus status,
                std::string_view message) noexcept {
  constexpr std::size_t kTypeBytes = 64;
  std::array<char, 3 * kDetailBytesMax> room;
  head.status_line(200);
  head.own_header("Content-Type",
                  content_type.size() <= kTypeBytes ? content_type : "application/grpc");
  head.framing({.kind = net::BodyFraming::Kind::length, .length = 0});
  head.own_header("grpc-status", static_cast<std::uint64_t>(status));
  head.own_header("grpc-message", trimmed(percent_encode(message, room)));
  head.own_line("Cache-Control: no-store");
}

// Milliseconds until the client may retry; -1: it should not retry.
void write_pushback(net::HeadWriter& head, const Op& op) noexcept {
  if (op.reason == Reason::never) return head.own_header("grpc-retry-pushback-ms", "-1");
  const std::optional<std::uint64_t> wait_s = retry_after_s(op);
  if (!wait_s) return;
  const auto exact = op.decision.retry_after;
  constexpr std::int64_t kMilli = 1'000'000;
  const std::uint64_t wait_ms =
      exact ? static_cast<std::uint64_t>((exact->count() + kMilli - 1) / kMilli) : *wait_s * 1000;
  head.own_header("grpc-retry-pushback-ms", wait_ms);
}

}  // namespace

void Answers::write_rate_headers(net::HeadWriter& head, const Op& op, std::uint16_t status,
                                 const Asking& asking) const noexcept {
  rate_headers_.write(
      head, op,
      {.status = status, .now = asking.now, .client = asking.client, .is_cors = asking.is_cors});
}

void Answers::refuse_grpc(net::HeadWriter& head, const Op& op,
                          const Asking& asking) const noexcept {
  std::array<char, kDetailBytesMax> detail;
  const std::string_view message = write_detail(detail, op);
  write_grpc(head, asking.content_type, grpc_status(op.reason), message);
  write_pushback(head, op);
  std::array<char, kStatusDetailsBytesMax> room;
  const std::string_view details = write_status_details(room, op, message);
  if (!details.empty()) head.own_header("grpc-status-details-bin", details);
  write_rate_headers(head, op, op.status, asking);
}

std::string_view Answers::refuse(net::HeadWriter& head, std::span<char> room, const Op& op,
                                 const Asking& asking) const noexcept {
  if (is_grpc(asking.content_type)) {
    refuse_grpc(head, op, asking);
    return {};
  }
  const rules::Action* const own = own_words(op);
  const std::optional<std::uint64_t> retry = retry_after_s(op);
  const bool has_own_body = own != nullptr && !own->body.empty();
  const std::string_view body = has_own_body ? std::string_view{own->body}
                                             : write_problem(room, {.type = problem_type(op.reason),
                                                                    .title = title_of(op.status),
                                                                    .status = op.status,
                                                                    .detail = {},
                                                                    .retry_after_s = retry,
                                                                    .request_id = asking.request_id,
                                                                    .refused = &op});
  const std::string_view usual_type = has_own_body ? content_type_of(body) : kProblemContentType;

  head.status_line(op.status);
  write_body_headers(head, has_header(own, "content-type") ? std::string_view{} : usual_type, body);
  if (!has_header(own, "cache-control")) head.own_line("Cache-Control: no-store");
  if (retry && !has_header(own, "retry-after")) head.own_header("Retry-After", *retry);
  if (op.status == 401) head.own_header("WWW-Authenticate", challenge_);
  write_own_headers(head, own);
  write_rate_headers(head, op, op.status, asking);
  return asking.is_head ? std::string_view{} : body;
}

std::string_view Answers::fail(net::HeadWriter& head, std::span<char> room, const Failure& failure,
                               const Asking& asking) const noexcept {
  const std::string_view detail =
      failure.detail.empty() ? usual_detail(failure.status) : failure.detail;
  if (is_grpc(asking.content_type)) {
    write_grpc(head, asking.content_type, grpc_status(failure.status),
               detail.substr(0, kDetailBytesMax));
    if (failure.retry_after_s)
      head.own_header("grpc-retry-pushback-ms", *failure.retry_after_s * 1000);
    if (failure.charged != nullptr) {
      write_rate_headers(head, *failure.charged, failure.status, asking);
    }
    return {};
  }
  const std::string_view body = write_problem(room, {.type = problem_type(failure.status),
                                                     .title = title_of(failure.status),
                                                     .status = failure.status,
                                                     .detail = detail.substr(0, kDetailBytesMax),
                                                     .retry_after_s = failure.retry_after_s,
                                                     .request_id = asking.request_id});
  head.status_line(failure.status);
  write_body_headers(head, kProblemContentType, body);
  head.own_line("Cache-Control: no-store");
  if (failure.retry_after_s) head.own_header("Retry-After", *failure.retry_after_s);
  if (!failure.allow.empty()) head.own_header("Allow", failure.allow);
  if (failure.status == 401) head.own_header("WWW-Authenticate", challenge_);
  if (failure.charged != nullptr)
    write_rate_headers(head, *failure.charged, failure.status, asking);
  return asking.is_head ? std::string_view{} : body;
}

}  // namespace sluice::frontend
