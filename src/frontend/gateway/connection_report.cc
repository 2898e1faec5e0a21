// Reports of a request: to rules that count by the response, and to the log.
#include "engine/decider.h"
#include "frontend/access_log/access_record.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"
#include "frontend/gateway/grpc_report.h"
#include "frontend/responses/grpc_status.h"

#include <optional>

namespace sluice::gateway {

// Reports the response to rules that count by it, so that they refund responses that do not count.
// If a rule counts by gRPC status, the report waits until the status is known.
void Connection::report_head() {
  Exchange& exchange = *exchange_;
  const net::ResponseHead& response = exchange.response.head();
  engine::ResponseView view{
      .status = response.status, .grpc_status = {}, .headers = response.headers};
  if (counts_grpc_status(exchange.op)) [[unlikely]] {
    view.grpc_status = grpc_status_in(response.headers);
    exchange.reports_at_end = !view.grpc_status && is_grpc_message(response.headers);
    if (exchange.reports_at_end) return;
  }
  gateway_.worker_.responded(exchange.op, view, now());
}

// A response without its expected status is not reported: charges stay, as for a response that
// breaks off.
void Connection::report_trailers() {
  Exchange& exchange = *exchange_;
  if (!exchange.reports_at_end) return;
  const net::ResponseHead& response = exchange.response.head();
  const std::optional<std::uint8_t> status = grpc_status_in(exchange.download.trailers());
  if (!status) return;
  gateway_.worker_.responded(
      exchange.op, {.status = response.status, .grpc_status = status, .headers = response.headers},
      now());
}

// The gateway's own response. gRPC clients get it as a gRPC status.
engine::ResponseView Connection::own_answer() const noexcept {
  const Exchange& exchange = *exchange_;
  engine::ResponseView own{.status = exchange.status, .grpc_status = {}, .headers = {}};
  if (counts_grpc_status(exchange.op) && is_grpc_message(head().headers)) {
    own.grpc_status = static_cast<std::uint8_t>(frontend::grpc_status(exchange.status));
  }
  return own;
}

void Connection::tell_observer() {
  Exchange& exchange = *exchange_;
  frontend::AccessRecord record{
      .at = exchange.began.wall(),
      .duration = now().mono - exchange.began.mono,
      .ip = peer_.address,
      .is_local = peer_.is_local,
      .method = {},
      .host = {},
      .target = {},
      .headers = {},
      .user = {},
      .api_key = {},
      .tenant = {},
      .tier = {},
      .country = {},
      .request_id = {exchange.request_id.data(), exchange.request_id_bytes},
      .trace_id = exchange.trace_id(),
      .fault = exchange.fault,
      .fault_reason = {},
      .status = exchange.status,
      .bytes_in = exchange.upload.bytes(),
      .bytes_out = exchange.download.bytes() + exchange.answer_bytes,
      .upstream = {},
      .op = exchange.decided && !exchange.op.waiting() ? &exchange.op : nullptr,
      .secrets = &options().log_secrets};
  if (in_.floor > 0) {
    record.method = head().method;
    record.host = head().host;
    record.target = head().path_and_query;
    record.protocol = head().minor_version == 0 ? "HTTP/1.0" : "HTTP/1.1";
    record.headers = head().headers;
  }
  if (exchange.decided) {
    const LoggedClient& who = exchange.who;
    record.ip = who.address;
    record.is_local = peer_.is_local && who.address == peer_.address;
    record.user = who.name(0);
    record.api_key = who.name(1);
    record.tenant = who.name(2);
    record.tier = who.name(3);
    if (who.country[0] != '\0') record.country = {who.country.data(), who.country.size()};
    record.asn = who.asn;
    record.through_trusted = exchange.through_trusted;
  }
  if (exchange.tried != nullptr) {
    record.upstream.name = exchange.group->options().name;
    record.upstream.address = exchange.tried->name();
    record.upstream.status = exchange.head_received ? exchange.status : std::uint16_t{0};
    record.upstream.broke_off = exchange.broken_off;
    record.upstream.first_byte = exchange.upstream_time;
    record.upstream.retries = exchange.retries;
    record.upstream.meters = exchange.group->options().meters.get();
  }
  if (exchange.fault[0] != '\0' && exchange.failure.kind != net::IoFailure::Kind::none) {
    record.fault_reason = exchange.failure.reason();
  }
  gateway_.observer_.ended(record, now());
}

}  // namespace sluice::gateway
