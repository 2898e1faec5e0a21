#include "frontend/gateway/connection.h"

#include "frontend/gateway/gateway.h"

#include <utility>

namespace sluice::gateway {

Connection::Connection(Gateway& gateway, net::Peer peer, const Entrance& entrance)
    : gateway_(gateway),
      stream_(net::Callback<>::to<&Connection::on_stream>(*this)),
      timer_(net::Callback<>::to<&Connection::on_timer>(*this)),
      renewal_(net::Callback<>::to<&Connection::on_renewal>(*this)),
      request_timer_(net::Callback<>::to<&Connection::on_request_timeout>(*this)),
      rest_(net::Callback<>::to<&Connection::drive>(*this)),
      phase_(entrance.proxy_protocol ? Phase::announced : Phase::handshake),
      idle_since_(gateway.loop_.now().mono) {
  set_peer(peer);
  set_port(entrance.port);
}

Connection::~Connection() {
  if (exchange_ != nullptr) give_back_exchange();
  gateway_.buffers_.give_back(std::move(buffer_));
}

const GatewayOptions& Connection::options() const noexcept {
  return exchange_ != nullptr && exchange_->routing != nullptr ? *exchange_->routing->options
                                                               : *gateway_.routing_->options;
}

std::string_view Connection::via(const net::MessageHead& message) const noexcept {
  return message.minor_version == 0 ? gateway_.via_1_0_ : gateway_.via_1_1_;
}

Now Connection::now() const noexcept { return gateway_.loop_.now(); }

void Connection::arm(Nanos after) noexcept { gateway_.loop_.set(timer_, after); }

// ---- phases -----------------------------------------------------------------------------------

void Connection::drive() { run(Step::again); }

void Connection::run(Step next) {
  if (driving_) {
    again_ = true;
    return;
  }
  driving_ = true;
  do {
    again_ = false;
    while (next == Step::again) next = step();
    if (next == Step::gone) return gateway_.destroy(*this);
    if (next == Step::later) {
      gateway_.loop_.run_soon(rest_);  // which handles all events until then
      break;
    }
    next = Step::again;
  } while (again_);
  driving_ = false;
}

Connection::Step Connection::step() {
  switch (phase_) {
    case Phase::announced: return hear_announcement();
    case Phase::handshake: return shake_hands();
    case Phase::idle: return wait_for_request();
    case Phase::head: return read_head();
    case Phase::waiting:
    case Phase::held:
    case Phase::seeking: return watch_client();
    case Phase::connecting: return establish();
    case Phase::relaying: return relay();
    case Phase::answering: return write_answer();
  }
  return Step::gone;
}

// Bytes of the next request, or the end of the stream.
bool Connection::has_input() const noexcept { return in_.begin < in_.end || stream_.can_read(); }

Connection::Step Connection::wait_for_request() {
  if (has_input()) {
    begin_exchange();
    return Step::again;
  }
  if (stream_.peer_hung_up()) return close();
  return Step::wait;
}

Connection::Step Connection::read_head() {
  while (true) {
    if (in_.begin < in_.end) {
      const net::HeadParse parsed = exchange_->request.parse(in_.bytes());
      if (parsed.state == net::HeadParse::State::complete) {
        in_.floor = in_.begin = in_.begin + parsed.head_bytes;
        return begin_request();
      }
      if (parsed.state == net::HeadParse::State::fault) {
        ++gateway_.counts_.faults;
        keep_alive_ = false;
        return answer(parsed.fault.status, parsed.fault.why);
      }
    }
    if (in_.room().empty()) {
      keep_alive_ = false;
      return answer(431, "the headers are too long");
    }
    const net::IoResult result = stream_.read(in_.room());
    if (result.is_blocked()) {
      // No bytes came after all: an idle connection has no buffer.
      if (in_.begin == in_.end) {
        give_back_exchange();
        gateway_.buffers_.give_back(std::move(buffer_));
        in_ = {};
        become_idle();
      }
      return Step::wait;
    }
    if (!result.is_done()) return end_of_requests(result);
    if (in_.begin == in_.end) arm(options().header_timeout);  // the first bytes of a request
    in_.end += result.bytes;
  }
}

// The client sends nothing more. An incomplete request is dropped with the connection.
Connection::Step Connection::end_of_requests(const net::IoResult& result) {
  const bool is_between = in_.begin == in_.end;
  if (!result.is_closed() || !is_between) return Step::gone;
  give_back_exchange();
  become_idle();
  return close();
}

// The only work is to check whether the client is still connected.
Connection::Step Connection::watch_client() { return client_left() ? client_gone() : Step::wait; }

Connection::Step Connection::client_gone() {
  exchange_->fault = "the client left";
  return cut();
}

// A half-closed client may be waiting for its response or may have left, and the resources of a
// client that left could serve others. Only writing tells the two apart: HTTP/1.1 clients ignore a
// 100, and the system of a client that left resets the connection.
bool Connection::client_left() noexcept {
  if (stream_.is_broken()) return true;
  if (!stream_.peer_hung_up()) return false;
  // HTTP/1.0 clients cannot be probed. In a queue they block other clients; elsewhere they do not.
  if (head().minor_version == 0) return phase_ == Phase::held;
  if (std::exchange(exchange_->asked_if_there, true)) return false;
  return !say_continue();
}

// So few bytes have room unless the client reads nothing. Written bytes cannot be withdrawn, and
// under TLS not even unwritten ones: nothing else could follow.
bool Connection::say_continue() noexcept {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  return stream_.write(kContinue).bytes == kContinue.size();
}

// Within a response no client can be probed. A client that half-closes only then has left, as a
// rule: clients that wait for a response half-close with the request.
bool Connection::client_left_its_answer() const noexcept {
  return stream_.is_broken() || (stream_.peer_hung_up() && !exchange_->client_ended);
}

void Connection::on_timer() { run(timed_out()); }

Connection::Step Connection::timed_out() {
  switch (phase_) {
    case Phase::announced:
    case Phase::handshake: ++gateway_.counts_.timeouts; return Step::gone;
    case Phase::idle: return in_.begin < in_.end ? Step::again : close();  // its turn is pending
    case Phase::head:
      ++gateway_.counts_.timeouts;
      keep_alive_ = false;
      return answer(408, "the request took too long");
    case Phase::waiting: return Step::wait;  // for the store, which keeps the time
    case Phase::held:
      leave_hold();
      gateway_.worker_.released(exchange_->op);
      return pass_on();
    case Phase::seeking: return seek();
    case Phase::connecting: return server_failed(504, "the server did not accept in time", false);
    case Phase::relaying: break;
    case Phase::answering: return not_taken();
  }
  Exchange& exchange = *exchange_;
  if (exchange.head_received) {
    return exchange.download.waits_for_source()
               ? broke_off("the server stalled in the middle of its response")
               : not_taken();
  }
  return upload_timed_out();
}

void Connection::renew_in_time() {
  const Nanos every = exchange_->op.renew_every();
  if (every > Nanos{0}) gateway_.loop_.set(renewal_, every);
}

// The request is still in flight: its leases must not expire.
void Connection::on_renewal() {
  gateway_.worker_.renew(exchange_->op, now());
  renew_in_time();
}

void Connection::on_request_timeout() {
  if (phase_ >= Phase::seeking && phase_ <= Phase::relaying) run(took_too_long());
}

// The server stops, or its client trust has changed since this client was authenticated.
bool Connection::is_leaving() const noexcept { return gateway_.is_draining() || is_outdated(); }

bool Connection::is_outdated() const noexcept {
  return stream_.tls() != nullptr && trust_ != gateway_.trust_;
}

void Connection::drain() {
  if (phase_ <= Phase::idle) arm(kFarewell);
}

// ---- exchanges --------------------------------------------------------------------------------

void Connection::become_idle() noexcept {
  phase_ = Phase::idle;
  idle_since_ = now().mono;
  gateway_.is_idle(*this);
}

void Connection::begin_exchange() {
  gateway_.is_busy(*this);
  if (buffer_ == nullptr) {
    buffer_ = gateway_.buffers_.take();
    in_ = {.buffer = {buffer_.get(), BufferPool::kBytes}};
  }
  exchange_ = gateway_.take_exchange();
  Exchange& exchange = *exchange_;
  exchange.request.reset();
  exchange.began = now();
  exchange.group = nullptr;
  exchange.has_two_routes = false;
  exchange.tried = nullptr;
  exchange.failed_at = nullptr;
  exchange.attempts = exchange.retries = 0;
  exchange.wants_fresh = exchange.heard_server = exchange.reports_at_end = false;
  exchange.decided = exchange.body_skipped = false;
  exchange.head_received = exchange.upload_failed = exchange.broken_off = false;
  exchange.status = 0;
  exchange.answer_bytes = 0;
  exchange.upstream_time = Nanos{0};
  exchange.asked_if_there = exchange.client_ended = exchange.has_trace = false;
  exchange.fault = "";
  exchange.failure = {};
  exchange.request_id_bytes = 0;
  exchange.upload.reset();
  exchange.download.reset();
  keep_alive_ = true;
  phase_ = Phase::head;
  // Its first bytes may have come with the last request.
  if (in_.begin < in_.end) arm(options().header_timeout);
}

// The response is complete: continue with the next request, or close.
Connection::Step Connection::end_exchange() {
  const bool body_read = skip_body();
  release_upstream(body_read && exchange_->download.is_done());
  give_back_exchange();
  if (!body_read) return linger();
  ++requests_;
  if (!keep_alive_ || is_outdated()) return close();
  in_.floor = 0;
  in_.compact();
  if (in_.begin == in_.end) {
    gateway_.buffers_.give_back(std::move(buffer_));
    in_ = {};
  }
  become_idle();
  arm(is_leaving() ? kFarewell : options().keepalive_timeout);
  return has_input() ? Step::later : Step::again;
}

void Connection::give_back_exchange() {
  Exchange& exchange = *exchange_;
  renewal_.cancel();
  request_timer_.cancel();
  if (exchange.upstream != nullptr) release_upstream(false);
  if (in_.floor > 0 || exchange.status != 0) tell_observer();
  leave_hold();
  if (std::exchange(exchange.in_flight, false)) --gateway_.in_flight_;
  if (exchange.decided) {
    // Queued or waiting: the request was not forwarded.
    if (phase_ == Phase::held || phase_ == Phase::waiting) {
      gateway_.worker_.abandon(exchange.op, now());
    } else {
      // The gateway's own response counts. A client that left earlier got none.
      const bool is_own = exchange.status != 0 && !exchange.head_received;
      const engine::ResponseView own = is_own ? own_answer() : engine::ResponseView{};
      gateway_.worker_.settle(exchange.op, is_own ? &own : nullptr, now());
    }
    exchange.decided = false;
  }
  gateway_.give_back(std::move(exchange_));
}

// ---- ends -------------------------------------------------------------------------------------

Connection::Step Connection::close() {
  if (in_.begin < in_.end || stream_.can_read()) return linger();
  stream_.finish_writing();
  return Step::gone;
}

Connection::Step Connection::linger() {
  gateway_.lingering_.close(stream_);
  return Step::gone;
}

Connection::Step Connection::cut() {
  stream_.reset();
  return Step::gone;
}

}  // namespace sluice::gateway
