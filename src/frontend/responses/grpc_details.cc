#include "frontend/responses/grpc_details.h"

#include "base/base64.h"
#include "base/text_writer.h"
#include "frontend/responses/limit_view.h"

#include <array>
#include <chrono>

namespace sluice::frontend {
namespace {

using engine::Reason;

constexpr std::string_view kRetryInfo = "type.googleapis.com/google.rpc.RetryInfo";
constexpr std::string_view kQuotaFailure = "type.googleapis.com/google.rpc.QuotaFailure";

// ---- the wire format of protocol buffers ------------------------------------------------------

void put_varint(TextWriter& writer, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7U) writer.put(static_cast<char>(value | 0x80U));
  writer.put(static_cast<char>(value));
}

void put_number(TextWriter& writer, unsigned field, std::uint64_t value) noexcept {
  if (value == 0) return;  // an absent field means 0
  put_varint(writer, field << 3U);
  put_varint(writer, value);
}

// A text, or a nested message: whole, or not at all.
void put_bytes(TextWriter& writer, unsigned field, std::string_view bytes) noexcept {
  const std::size_t before = writer.size();
  put_varint(writer, field << 3U | 2U);
  put_varint(writer, bytes.size());
  writer.put(bytes);
  if (writer.is_full()) writer.rewind(before);
}

// google.protobuf.Any, as an element of Status.details.
void put_detail(TextWriter& status, std::string_view type, std::string_view message) noexcept {
  std::array<char, kStatusDetailsBytesMax> room;
  TextWriter any{room};
  put_bytes(any, 1, type);
  put_bytes(any, 2, message);
  put_bytes(status, 3, any.text());
}

// ---- details ----------------------------------------------------------------------------------

void put_retry_info(TextWriter& status, Nanos delay) noexcept {
  constexpr Nanos kSecond{std::chrono::seconds{1}};
  std::array<char, 32> duration_room;
  TextWriter duration{duration_room};
  put_number(duration, 1, static_cast<std::uint64_t>(delay / kSecond));
  put_number(duration, 2, static_cast<std::uint64_t>((delay % kSecond).count()));
  std::array<char, 40> room;
  TextWriter info{room};
  put_bytes(info, 1, duration.text());
  put_detail(status, kRetryInfo, info.text());
}

// QuotaFailure.Violation: the limit and its description.
void put_violation(TextWriter& failure, const LimitView& view) noexcept {
  std::array<char, 256> subject_room;
  TextWriter subject{subject_room};
  write_name(subject, view);
  std::array<char, 96> description_room;
  TextWriter description{description_room};
  if (view.has_policy) {
    description.number(view.policy.quota);
    description.put(view.policy.window_s > 0 ? " in " : " at a time");
    if (view.policy.window_s > 0) description.number(view.policy.window_s);
    if (view.policy.window_s > 0) description.put(" s");
  } else {
    description.put("blocked for a while");
  }
  std::array<char, 384> room;
  TextWriter violation{room};
  put_bytes(violation, 1, subject.text());
  put_bytes(violation, 2, description.text());
  put_bytes(failure, 1, violation.text());
}

void put_quota_failure(TextWriter& status, const engine::Op& op) noexcept {
  std::array<char, kStatusDetailsBytesMax / 2> room;
  TextWriter failure{room};
  LimitViews{op}.for_each([&](const LimitView& view) {
    if (view.verdict != Verdict::allowed) put_violation(failure, view);
  });
  put_detail(status, kQuotaFailure, failure.text());
}

}  // namespace

std::string_view write_status_details(std::span<char> room, const engine::Op& op,
                                      std::string_view message) noexcept {
  const GrpcStatus code = grpc_status(op.reason);
  if (code != GrpcStatus::resource_exhausted) return {};
  std::array<char, kStatusDetailsBytesMax * 3 / 4> status_room;
  TextWriter status{status_room};
  put_number(status, 1, static_cast<std::uint64_t>(code));
  put_bytes(status, 2, message);
  if (op.reason != Reason::never && op.decision.retry_after) {
    put_retry_info(status, *op.decision.retry_after);
  }
  put_quota_failure(status, op);
  return encode_base64_unpadded(status.text(), room);
}

}  // namespace sluice::frontend
