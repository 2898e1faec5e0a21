// To a server, and back with its response.
#include "engine/decider.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"
#include "net/http/known_header.h"

#include <utility>

namespace sluice::gateway {
namespace {

using Kind = net::BodyFraming::Kind;

constexpr Nanos kSeekEvery{std::chrono::milliseconds{5}};

// Repeating the request has the same effect as sending it once.
bool is_idempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE";
}

// Marks lines that the gateway writes itself. The request id is the gateway's, whatever the server
// sends. The server's Date is kept. True: there is a Date.
bool note_own_lines(net::ResponseHead& passed) noexcept {
  bool has_date = false;
  for (std::size_t i = 0; i < passed.headers.size(); ++i) {
    const std::string_view name = passed.headers[i].name;
    if (net::is_named(name, "date")) has_date = true;
    if (net::is_named(name, "x-request-id")) passed.restated.add(i);
  }
  return has_date;
}

}  // namespace

// ---- connecting -------------------------------------------------------------------------------

Connection::Step Connection::connect() {
  Exchange& exchange = *exchange_;
  UpstreamServer& server = exchange.group->choose(exchange.client_hash, tried(), now().mono);
  exchange.tried = &server;
  ++exchange.attempts;
  exchange.failure = {};
  if (!server.is_sought()) return connect_to(server);
  exchange.sought_by = now().mono + exchange.group->options().connect_timeout;
  phase_ = Phase::seeking;
  arm(kSeekEvery);
  return watch_client();
}

// After a start or a reload, the first requests may come before the name server's response. This is
// rare enough to poll.
Connection::Step Connection::seek() {
  UpstreamServer& server = *exchange_->tried;
  if (!server.is_sought()) return connect_to(server);
  if (now().mono >= exchange_->sought_by) {
    exchange_->failed_at = server.addresses().all().front();
    blame(server, *exchange_->failed_at);
    return server_failed(504, "the address of the server was not found in time", false);
  }
  arm(kSeekEvery);
  return watch_client();
}

Connection::Step Connection::connect_to(UpstreamServer& server) {
  Exchange& exchange = *exchange_;
  const UpstreamServer::Wanted wanted{.fresh = exchange.wants_fresh,
                                      .except = exchange.failed_at.get()};
  UpstreamServer::Taken taken = server.take(wanted, now().mono);
  // Idle connections, to servers or clients, never cost a request the descriptor that it needs.
  if (taken.lack == LocalExhaustion::descriptors &&
      (exchange.routing->close_an_idle_connection() || gateway_.evict_idle())) {
    taken = server.take(wanted, now().mono);
  }
  if (taken.connection == nullptr) {
    exchange.failure = taken.why;
    exchange.failed_at = std::move(taken.address);
    return not_begun(server, taken.lack);
  }
  exchange.upstream = std::move(taken.connection);
  exchange.upstream->set_user(net::Callback<>::to<&Connection::on_upstream>(*this));
  phase_ = Phase::connecting;
  if (exchange.upstream->is_reused()) return establish();
  arm(exchange.group->options().connect_timeout);
  return Step::again;
}

// A local shortage is no failure of the server. Another address may still have free ports; any
// other shortage would affect it too.
Connection::Step Connection::not_begun(UpstreamServer& server, LocalExhaustion lack) {
  if (lack == LocalExhaustion::ports) return server_failed(503, text_of(lack), false);
  if (lack != LocalExhaustion::nothing) {
    complain(text_of(lack));
    return answer(503, text_of(lack));
  }
  blame(server, *exchange_->failed_at);
  return server_failed(502, "the server cannot be reached", false);
}

Connection::Step Connection::establish() {
  if (client_left()) return client_gone();
  const net::IoResult result = exchange_->upstream->stream().establish();
  if (result.is_blocked()) return Step::wait;
  if (result.is_done()) {
    begin_upload();
    return Step::again;
  }
  exchange_->failure = result.why;
  const bool is_refused = result.why.kind == net::IoFailure::Kind::certificate;
  return server_failed(
      502, is_refused ? "the server cannot be trusted" : "the server cannot be reached", false);
}

UpstreamGroup::Tried Connection::tried() const noexcept {
  return {.server = exchange_->tried, .address = exchange_->failed_at.get()};
}

// No response has come. Another server is tried only if nothing can happen twice: the request was
// not forwarded, or it is idempotent and none of its body was sent.
Connection::Step Connection::server_failed(std::uint16_t status, const char* why,
                                           bool was_reached) {
  Exchange& exchange = *exchange_;
  if (exchange.head_received) return cut();
  // The server may close an idle connection at any time: that is no failure. Taking a request
  // without responding is one.
  const bool was_stale = status == 502 && exchange.upstream != nullptr &&
                         exchange.upstream->is_reused() && !exchange.heard_server;
  if (exchange.upstream != nullptr && !was_stale) {
    exchange.failed_at = exchange.upstream->address();
    blame_upstream();
  }
  if (!was_stale) complain(why);
  release_upstream(false);
  const bool untouched = !was_reached || exchange.upload.bytes() == 0;
  const bool repeatable =
      !was_reached || (is_idempotent(head().method) && head().body.kind == Kind::none);
  // A server that exceeds response_timeout may be working on the request. A server that exceeds
  // connect_timeout would do so again, and exhausted ports would still be exhausted.
  const bool is_pointless =
      status != 502 && (was_reached || !exchange.group->has_another(tried(), now().mono));
  const auto may_try = [&] {
    return was_stale ||
           (exchange.attempts <= exchange.group->options().retries && exchange.group->may_retry());
  };
  if (untouched && repeatable && !is_pointless && may_try()) {
    // A stale connection is no attempt: the same server may be tried again on a new connection.
    // That happens once, as a new one is never stale.
    if (was_stale) {
      exchange.tried = nullptr;
      --exchange.attempts;
    }
    exchange.wants_fresh = true;
    ++exchange.retries;
    ++gateway_.counts_.retries;
    return connect();
  }
  exchange.fault = why;
  if (!exchange.upload.is_done() && was_reached) keep_alive_ = false;
  return answer(status, why);
}

void Connection::complain(const char* what) {
  const Exchange& exchange = *exchange_;
  const bool has_reason = exchange.failure.kind != net::IoFailure::Kind::none;
  gateway_.observer_.server_failed(
      {.place = place_of(*exchange.tried, *exchange.failed_at),
       .what = what,
       .reason = has_reason ? exchange.failure.reason() : exchange.tried->lost()},
      now());
}

ServerPlace Connection::place_of(const UpstreamServer& server,
                                 const UpstreamAddress& address) noexcept {
  return {.upstream = server.group().name,
          .server = server.name(),
          .address = server.address_told(address)};
}

void Connection::blame(UpstreamServer& server, UpstreamAddress& address) {
  if (!server.failed(address, now().mono)) return;
  gateway_.observer_.server_ejected({.place = place_of(server, address),
                                     .lasts = server.group().ejection_time,
                                     .failures = server.group().max_consecutive_failures});
}

void Connection::blame_upstream() {
  blame(exchange_->upstream->server(), *exchange_->upstream->address());
}

// request_timeout, however active the server was. The server fails if it had the whole request.
Connection::Step Connection::took_too_long() {
  Exchange& exchange = *exchange_;
  exchange.fault = "the request took too long in all";
  if (exchange.head_received) return cut();
  if (exchange.upload.is_done() && phase_ == Phase::relaying) {
    blame_upstream();
  }
  release_upstream(false);
  return answer(504, exchange.fault);
}

// Within its response: the client must see that the response is incomplete.
Connection::Step Connection::broke_off(const char* why) {
  exchange_->fault = why;
  exchange_->broken_off = true;
  blame_upstream();
  return cut();
}

void Connection::release_upstream(bool reusable) {
  Exchange& exchange = *exchange_;
  if (exchange.upstream == nullptr) return;
  UpstreamServer& server = exchange.upstream->server();
  const bool keeps = reusable && exchange.response.head().keep_alive &&
                     exchange.response.head().body.kind != Kind::until_close &&
                     exchange.from_server.begin == exchange.from_server.end;
  if (keeps) {
    server.give_back(std::move(exchange.upstream));
  } else {
    server.drop(std::move(exchange.upstream));
  }
}

// ---- both directions --------------------------------------------------------------------------

Connection::Step Connection::relay() {
  Exchange& exchange = *exchange_;
  Step upload = Step::wait;
  if (!exchange.upload.is_done() && !exchange.upload_failed) {
    upload = relay_request();
    if (upload != Step::wait && upload != Step::later) return upload;
  }
  if (!exchange.head_received && exchange.upload.is_done() && client_left()) return client_gone();
  const Step answer = exchange.head_received ? relay_answer() : read_answer();
  return answer == Step::wait ? upload : answer;
}

// ---- the response -----------------------------------------------------------------------------

Connection::Step Connection::read_answer() {
  Exchange& exchange = *exchange_;
  Window& window = exchange.from_server;
  net::Stream& server = exchange.upstream->stream();
  // Only when there is something to read: so requests that wait for servers need one buffer less,
  // and the buffer taken was used recently and is still in the cache.
  if (window.buffer.empty()) {
    if (!server.can_read()) return Step::wait;
    if (exchange.server_buffer == nullptr) exchange.server_buffer = gateway_.buffers_.take();
    window.buffer = {exchange.server_buffer.get(), BufferPool::kBytes};
  }
  while (true) {
    if (window.begin < window.end) {
      const net::HeadParse parsed = exchange.response.parse(window.bytes());
      if (parsed.state == net::HeadParse::State::fault) {
        blame_upstream();
        release_upstream(false);
        exchange.fault = parsed.fault.why;
        if (!exchange.upload.is_done()) keep_alive_ = false;
        return answer(502, parsed.fault.why);
      }
      if (parsed.state == net::HeadParse::State::complete) {
        window.begin += parsed.head_bytes;
        const std::uint16_t status = exchange.response.head().status;
        return status >= 100 && status < 200 ? pass_interim() : begin_answer();
      }
    }
    if (window.room().empty()) {
      exchange.fault = "the response headers are too long";
      release_upstream(false);
      return answer(502, "the response headers are too long");
    }
    if (!server.can_read()) return Step::wait;
    const net::IoResult result = server.read(window.room());
    if (result.is_blocked()) return Step::wait;
    if (!result.is_done()) {
      const bool said_something = window.begin < window.end;
      return server_failed(502,
                           said_something ? "the server closed in the middle of its response"
                                          : "the server closed without a response",
                           true);
    }
    window.end += result.bytes;
    exchange.heard_server = true;
  }
}

// 1xx: early hints go to the client. 100 is dropped: it was sent already, or not expected.
Connection::Step Connection::pass_interim() {
  Exchange& exchange = *exchange_;
  const net::ResponseHead& interim = exchange.response.head();
  if (interim.status == 101) {
    release_upstream(false);
    exchange.fault = "the server switched protocols unasked";
    return answer(502, "the server switched protocols unasked");
  }
  if (interim.status != 100 && head().minor_version >= 1) {
    if (exchange.answer_buffer == nullptr) exchange.answer_buffer = gateway_.buffers_.take();
    net::HeadWriter writer{{exchange.answer_buffer.get(), BufferPool::kBytes}};
    net::write_response(writer, interim, {});
    // Nothing precedes it, so it has room unless the client reads nothing.
    const Result<std::string_view> written = writer.finish();
    if (written && stream_.write(*written).bytes != written->size()) return cut();
  }
  exchange.response.reset();
  exchange.from_server.compact();  // the response gets all the room, whatever preceded it
  return Step::later;              // there may be any number of them
}

Connection::Step Connection::begin_answer() {
  Exchange& exchange = *exchange_;
  const net::ResponseHead& response = exchange.response.head();
  exchange.head_received = true;
  exchange.client_ended = stream_.peer_hung_up();
  exchange.status = response.status;
  exchange.upstream_time = now().mono - exchange.asked_at;
  UpstreamConnection& upstream = *exchange.upstream;
  if (upstream.address()->succeeded()) {
    gateway_.observer_.server_recovered(place_of(upstream.server(), *upstream.address()));
  }
  report_head();

  net::BodyFraming framing = response.body;
  const bool knows_chunks = head().minor_version >= 1;
  if (framing.kind == Kind::until_close && knows_chunks) framing.kind = Kind::chunked;
  if (framing.kind == Kind::chunked && !knows_chunks) framing.kind = Kind::until_close;
  if (framing.kind == Kind::until_close || !exchange.upload.is_done()) keep_alive_ = false;
  if (is_leaving()) keep_alive_ = false;  // maybe since the request began

  if (exchange.answer_buffer == nullptr) exchange.answer_buffer = gateway_.buffers_.take();
  const std::span<char> buffer{exchange.answer_buffer.get(), BufferPool::kBytes};
  net::HeadWriter writer{buffer};
  // If both state the same limit, the origin's value stays unless the gateway's is stricter.
  const frontend::RateHeaders& rates = options().answers->rate_headers();
  net::ResponseHead passed = response;
  const bool has_date = note_own_lines(passed);
  const frontend::Asking asked = asking();
  const frontend::RateHeaders::Context context{.status = response.status,
                                               .now = asked.now,
                                               .client = asked.client,
                                               .is_cors = asked.is_cors};
  const frontend::FamilySet families =
      rates.merge(exchange.op, response.headers, context, passed.restated);
  net::write_response(writer, passed, framing,
                      {.persistence = net::persistence_for(keep_alive_, head().minor_version)});
  rates.write(writer, exchange.op, context, families);
  writer.header("x-request-id", {exchange.request_id.data(), exchange.request_id_bytes});
  if (options().adds_via) writer.header("via", via(response));
  if (!has_date) writer.header("date", gateway_.date());
  const Result<std::string_view> written = writer.finish();
  if (!written) {
    exchange.head_received = false;
    release_upstream(false);
    return answer(502, "the response headers are too long");
  }
  exchange.from_server.floor = exchange.from_server.begin;
  exchange.download.begin({.from = &exchange.upstream->stream(),
                           .to = &stream_,
                           .window = &exchange.from_server,
                           .reader = net::BodyReader{response.body, exchange.response_trailers},
                           .chunked = framing.kind == Kind::chunked,
                           .trailers = head().accepts_trailers,
                           .head = *written,
                           .trailer_buffer = buffer.subspan(written->size())});
  answer_seen_ = kNothingSeen;
  return relay_answer();
}

Connection::Step Connection::relay_answer() {
  Exchange& exchange = *exchange_;
  switch (exchange.download.pump()) {
    case BodyPump::Progress::paused:
      arm(exchange.group->options().read_timeout);
      return Step::later;
    case BodyPump::Progress::waiting: {
      // Client input shows neither that the server is active nor that the client reads.
      const bool has_moved =
          std::exchange(answer_seen_, exchange.download.moved()) != exchange.download.moved();
      if (!exchange.download.waits_for_source()) {
        if (has_moved) wait_for_client();
        return Step::wait;
      }
      if (has_moved) arm(exchange.group->options().read_timeout);
      return client_left_its_answer() ? client_gone() : Step::wait;
    }
    case BodyPump::Progress::done: report_trailers(); return end_exchange();
    case BodyPump::Progress::source_ended:
    case BodyPump::Progress::source_wrong:
      return broke_off("the server closed in the middle of its response");
    case BodyPump::Progress::sink_failed: return client_gone();
  }
  return cut();
}

}  // namespace sluice::gateway
