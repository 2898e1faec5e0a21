// The request on its way to the server, and the timeouts of both sides.
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"

#include <algorithm>
#include <utility>

namespace sluice::gateway {

void Connection::begin_upload() {
  Exchange& exchange = *exchange_;
  exchange.from_server = {};
  exchange.response.expect_answer_to(head().method);
  exchange.upload_failed = exchange.heard_server = false;
  const std::size_t head_bytes = exchange.request_head.size();
  exchange.upload.begin(
      {.from = &stream_,
       .to = &exchange.upstream->stream(),
       .window = &in_,
       .reader = net::BodyReader{head().body, exchange.request_trailers},
       .chunked = head().body.kind == net::BodyFraming::Kind::chunked,
       .trailers = true,
       .bytes_max = options().max_body_size,
       .head = exchange.request_head,
       .trailer_buffer =
           std::span{exchange.request_buffer.get(), BufferPool::kBytes}.subspan(head_bytes)});
  exchange.asked_at = now().mono;
  phase_ = Phase::relaying;
  await_body();
}

// Also waits when the upload is done: the response is next.
Connection::Step Connection::relay_request() {
  Exchange& exchange = *exchange_;
  const std::uint64_t before = exchange.upload.bytes();
  const BodyPump::Progress progress = exchange.upload.pump();
  if (exchange.upload.bytes() != before) body_at_ = now().mono;
  switch (progress) {
    case BodyPump::Progress::waiting: watch_upload(); break;
    case BodyPump::Progress::paused: return Step::later;
    case BodyPump::Progress::done:
      if (!exchange.head_received) await_answer();
      break;
    case BodyPump::Progress::source_ended: return client_gone();
    case BodyPump::Progress::source_wrong: {
      const net::HttpFault fault = exchange.upload.fault();
      keep_alive_ = false;
      release_upstream(false);
      ++gateway_.counts_.faults;
      return exchange.head_received ? cut() : answer(fault.status, fault.why);
    }
    case BodyPump::Progress::sink_failed: exchange.upload_failed = true; break;
  }
  return Step::wait;
}

// ---- timeouts ---------------------------------------------------------------------------------

// Times the side that has to act. A client that waits for a slow server is not late, and vice
// versa. Once the response has begun, its timeouts apply.
void Connection::watch_upload() {
  const Exchange& exchange = *exchange_;
  if (exchange.head_received) return;
  const bool for_client = exchange.upload.waits_for_source();
  if (for_client && awaited_ != Awaited::body) await_body();
  if (!for_client && awaited_ != Awaited::room) await_room();
}

void Connection::await_body() noexcept {
  awaited_ = Awaited::body;
  body_seen_ = exchange_->upload.bytes();
  body_at_ = now().mono;
  arm(options().upload_rate_interval);
}

void Connection::await_room() noexcept {
  awaited_ = Awaited::room;
  taken_ = taken_by_server();
  taken_at_ = now().mono;
  arm(exchange_->group->options().send_timeout / kLooksPerTimeout);
}

// Much of a long body may still be in the system's buffer, and the server cannot respond before it
// has all of it. A short body counts as taken: response_timeout covers it.
void Connection::await_answer() noexcept {
  Exchange& exchange = *exchange_;
  if (exchange.upload.bytes() > BodyPump::kBytesPerTurn &&
      exchange.upstream->stream().unsent() > 0) {
    return await_room();
  }
  awaited_ = Awaited::answer;
  arm(exchange.group->options().response_timeout);
}

Connection::Taken Connection::taken_by_server() const noexcept {
  return {.sent = exchange_->upload.sent(), .unsent = exchange_->upstream->stream().unsent()};
}

Connection::Step Connection::upload_timed_out() {
  switch (awaited_) {
    case Awaited::body: return body_is_late();
    case Awaited::room: return look_what_is_taken();
    case Awaited::answer: break;
  }
  return server_failed(504, "the server did not respond in time", true);
}

// The next interval starts at the last bytes, since none came after them: a client that left is
// noticed one interval later, not two.
Connection::Step Connection::body_is_late() {
  Exchange& exchange = *exchange_;
  const Nanos every = options().upload_rate_interval;
  const std::uint64_t came = exchange.upload.bytes() - body_seen_;
  if (came < bytes_within(every, options().min_upload_rate)) {
    ++gateway_.counts_.timeouts;
    keep_alive_ = false;
    release_upstream(false);
    return answer(408, "the body comes too slowly");
  }
  if (came == 0) body_at_ = now().mono;  // any rate will do if none is configured
  body_seen_ = exchange.upload.bytes();
  arm(body_at_ + every - now().mono);
  return Step::wait;
}

// No event reports that the server's system has taken bytes: the socket becomes writable only when
// a third of a buffer of megabytes is free. So a timer polls it.
Connection::Step Connection::look_what_is_taken() {
  const UpstreamOptions& upstream = exchange_->group->options();
  const Taken taken = taken_by_server();
  if (exchange_->upload.is_done() && taken.unsent == 0) {
    await_answer();
    return Step::wait;
  }
  if (taken != std::exchange(taken_, taken)) taken_at_ = now().mono;
  const Nanos left = taken_at_ + upstream.send_timeout - now().mono;
  if (left <= Nanos{0}) return server_failed(504, "the server does not take the request", true);
  arm(std::min(left, upstream.send_timeout / kLooksPerTimeout));
  return Step::wait;
}

}  // namespace sluice::gateway
