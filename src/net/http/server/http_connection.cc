#include "net/http/server/http_connection.h"

#include "net/http/server/http_server.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

namespace sluice::net {
namespace {

// Behind the headers: pieces of a body, of which the longest that has to be there as a whole are
// trailers (ChunkLimits).
constexpr std::size_t kBodyRoom = 16384;
// A body is not given all the room at once that it only announces.
constexpr std::size_t kReserveMax = 65536;
// Others have their turn before the rest of a large body.
constexpr int kStepsPerTurn = 128;

std::size_t buffer_bytes(const HeadLimits& limits) noexcept {
  constexpr std::size_t kEmptyLine = 2;  // which may come first
  return kEmptyLine + limits.start_line_bytes + limits.header_bytes + kBodyRoom;
}

}  // namespace

HttpConnection::HttpConnection(HttpServer& server, Peer peer)
    : server_(server),
      peer_(peer),
      stream_(Callback<>::to<&HttpConnection::drive>(*this)),
      timer_(Callback<>::to<&HttpConnection::on_timer>(*this)),
      next_turn_(Callback<>::to<&HttpConnection::drive>(*this)),
      buffer_bytes_(buffer_bytes(server.options_.head)),
      parser_(headers_, server.options_.head) {}

HttpConnection::~HttpConnection() {
  leave_long_lived();
  if (handle_ != nullptr) handle_->lose();
}

bool HttpConnection::open(FileDescriptor descriptor, std::shared_ptr<const TlsServer> tls) {
  if (stream_.open(server_.loop_, std::move(descriptor)).is_failed()) return false;
  if (tls != nullptr) {
    client_trust_ = tls->client_trust();
    if (!stream_.start_tls(std::move(tls))) return false;
  }
  request_began_ = server_.loop_.now().mono;
  server_.loop_.set(timer_, server_.options_.header_timeout);
  return true;
}

// ---- phases -----------------------------------------------------------------------------------

void HttpConnection::drive() {
  next_turn_.cancel();
  run(Step::again);
}

void HttpConnection::run_later() noexcept { server_.loop_.run_soon(next_turn_); }

void HttpConnection::run(Step next) {
  for (int steps = 0; next == Step::again; ++steps) {
    if (steps == kStepsPerTurn) return run_later();
    next = step();
  }
  if (next == Step::gone) server_.destroy(*this);
}

HttpConnection::Step HttpConnection::step() {
  switch (phase_) {
    case Phase::handshake: return shake_hands();
    case Phase::idle: return wait_for_request();
    case Phase::headers: return read_headers();
    case Phase::body: return read_body();
    case Phase::handled: return is_gone() ? Step::gone : Step::wait;
    case Phase::responding: return write_response();
    case Phase::streaming: return write_stream();
    case Phase::cut: stream_.reset(); return Step::gone;
  }
  return Step::gone;
}

void HttpConnection::on_timer() {
  if (phase_ == Phase::handshake || phase_ == Phase::idle) return run(Step::gone);
  if (phase_ == Phase::streaming) return run(beat());
  ++server_.counts_.timed_out;
  if (phase_ == Phase::handled) return run(expire());
  if (phase_ != Phase::responding) return run(fail(408, "The request took too long."));
  stream_.reset();
  run(Step::gone);
}

void HttpConnection::drain() {
  const bool is_silent = end_ == 0 && !stream_.can_read();
  if (phase_ == Phase::idle && is_silent) return run(Step::gone);
  if (phase_ == Phase::handled) return run(expire());
  if (phase_ != Phase::streaming) return;
  if (handle_ != nullptr) handle_->lose();
  finish_stream();
}

bool HttpConnection::is_outdated() const noexcept {
  return stream_.tls() != nullptr && client_trust_ != server_.client_trust_;
}

bool HttpConnection::is_leaving() const noexcept { return server_.is_draining_ || is_outdated(); }

// Why a client that was let in by its handshake is not any more; null: it still is.
const char* HttpConnection::lost_trust() const noexcept {
  if (is_outdated()) return "The CAs of client certificates have changed: connect again.";
  const bool has_expired = server_.loop_.now().wall() >= certificate_until_;
  return has_expired ? "The client certificate has expired." : nullptr;
}

// A client that has closed its side only may still read: it gets its response, unless that may
// never come.
bool HttpConnection::is_gone() const noexcept {
  return stream_.is_broken() || (is_long_lived_ && stream_.peer_hung_up());
}

// ---- the request ------------------------------------------------------------------------------

HttpConnection::Step HttpConnection::shake_hands() {
  const IoResult result = stream_.establish();
  if (result.is_blocked()) return Step::wait;
  const TlsSession* const tls = stream_.tls();
  if (result.is_failed() && tls != nullptr && tls->began_as_http()) {
    stream_.drop_tls();
    return fail(400, "This port speaks TLS: use https.");
  }
  if (!result.is_done()) return Step::gone;
  if (is_outdated()) return Step::gone;
  if (tls != nullptr) tls_subject_ = tls->verified_subject();
  if (!tls_subject_.empty()) certificate_until_ = tls->peer_valid_until();
  phase_ = Phase::idle;
  return Step::again;
}

HttpConnection::Step HttpConnection::wait_for_request() {
  if (end_ == 0) {
    if (!stream_.can_read()) return Step::wait;
    const Step step = read_more();
    if (step != Step::again) return step;
  }
  request_began_ = server_.loop_.now().mono;
  server_.loop_.set(timer_, server_.options_.header_timeout);
  phase_ = Phase::headers;
  return Step::again;
}

HttpConnection::Step HttpConnection::read_headers() {
  const HeadParse parsed = parser_.parse({buffer_.get(), end_});
  if (parsed.state == HeadParse::State::need_more) return read_more();
  if (parsed.state == HeadParse::State::complete) return begin_request(parsed.head_bytes);
  ++server_.counts_.malformed;
  return fail(parsed.fault.status, parsed.fault.why);
}

HttpConnection::Step HttpConnection::begin_request(std::size_t head_bytes) {
  const RequestHead& head = parser_.head();
  ++server_.counts_.requests;
  head_end_ = head_bytes;
  keep_alive_ = head.keep_alive && ++requests_ < server_.options_.requests_max;
  describe_request();
  reader_ = BodyReader{head.body, trailers_};
  body_.clear();
  phase_ = Phase::body;
  if (const char* const why = lost_trust()) return fail(403, why);
  const bool has_length = head.body.kind == BodyFraming::Kind::length;
  if (has_length && head.body.length > body_bytes_max_) return fail(413, "The body is too large.");
  if (std::optional<HttpResponse> response = rejection()) return reject(*std::move(response));
  if (reader_.is_done()) return handle();
  if (has_length) body_.reserve(std::min<std::size_t>(head.body.length, kReserveMax));
  const Nanos passed = server_.loop_.now().mono - request_began_;
  server_.loop_.set(timer_, server_.options_.request_timeout - passed);
  // A client that did not wait needs no word.
  if (head.expects_continue && end_ == head_end_) out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  return Step::again;
}

void HttpConnection::describe_request() {
  const RequestHead& head = parser_.head();
  const std::string_view target = head.path_and_query;
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  match_ = server_.routes_.match(head.method, path);
  request_ = {.method = head.method,
              .path = path,
              .query = target.substr(std::min(mark + 1, target.size())),
              .host = head.host,
              .headers = head.headers,
              .body = {},
              .is_local = peer_.is_local,
              .target = target,
              .route = match_.pattern,
              .parameters = match_.parameters,
              .address = peer_.address,
              .is_tls = stream_.tls() != nullptr,
              .tls_subject = tls_subject_};
  body_bytes_max_ = server_.options_.body_bytes_max;
  if (match_.route != nullptr) {
    body_bytes_max_ = match_.route->options.body_bytes_max.value_or(body_bytes_max_);
  }
}

// By the headers alone, whatever the body is.
std::optional<HttpResponse> HttpConnection::rejection() {
  if (server_.options_.filter) {
    std::optional<HttpResponse> response = server_.options_.filter(request_, match_);
    if (response) return response;
  }
  if (match_.kind != RouteMatch::Kind::found) return mismatch();
  if (!match_.route->options.long_lived || enter_long_lived()) return std::nullopt;
  return too_many_long_lived();
}

HttpResponse HttpConnection::mismatch() const {
  using Kind = RouteMatch::Kind;
  const bool is_options = request_.method == "OPTIONS";
  if (is_options && request_.target == "*") return {.status = 204, .headers = {}, .body = {}};
  if (is_options && match_.kind == Kind::no_method) {
    return {.status = 204, .headers = {{"allow", match_.allow + ", OPTIONS"}}, .body = {}};
  }
  if (match_.kind == Kind::no_path) return server_.error(404, "No matching route.");
  if (match_.kind == Kind::malformed) {
    return server_.error(400, "A path parameter cannot be decoded.");
  }
  HttpResponse response = server_.error(405, "This path has no such method.");
  response.headers.emplace_back("allow", match_.allow);
  return response;
}

HttpConnection::Step HttpConnection::read_body() {
  // Of a word that encourages the client to send it.
  while (written_ < out_.size()) {
    const IoResult result = stream_.write(std::string_view{out_}.substr(written_));
    if (result.is_blocked()) return Step::wait;
    if (!result.is_done()) return Step::gone;
    written_ += result.bytes;
  }
  out_.clear();
  written_ = 0;
  std::size_t at = head_end_;
  while (!reader_.is_done()) {
    const BodyPiece piece = reader_.feed({buffer_.get() + at, end_ - at});
    if (piece.fault) {
      ++server_.counts_.malformed;
      return fail(piece.fault.status, piece.fault.why);
    }
    body_ += piece.data;
    if (body_.size() > body_bytes_max_) return fail(413, "The body is too large.");
    at += piece.consumed;
    if (piece.consumed == 0) break;
  }
  std::memmove(buffer_.get() + head_end_, buffer_.get() + at, end_ - at);
  end_ -= at - head_end_;
  return reader_.is_done() ? handle() : read_more();
}

HttpConnection::Step HttpConnection::read_more() {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<char[]>(buffer_bytes_);
  const std::span<char> room{buffer_.get() + end_, buffer_bytes_ - end_};
  if (room.empty()) return fail(431, "The headers are too long.");
  const IoResult result = stream_.read(room);
  if (result.is_blocked()) {
    if (end_ == 0) buffer_.reset();
    return Step::wait;
  }
  if (!result.is_done()) return Step::gone;
  end_ += result.bytes;
  return Step::again;
}

HttpConnection::Step HttpConnection::handle() {
  const HttpRoute& route = *match_.route;
  request_.body = body_;
  if (route.plain) {
    set_response(route.plain(request_));
    return Step::again;
  }
  phase_ = Phase::handled;
  (is_long_lived_ ? server_.long_lived_ : server_.handled_).push_back(*this);
  server_.loop_.set(timer_,
                    route.options.response_timeout.value_or(server_.options_.response_timeout));
  is_calling_ = true;
  route.handler(request_, Responder{*this});
  is_calling_ = false;
  return Step::again;
}

HttpConnection::Step HttpConnection::next_request() {
  std::memmove(buffer_.get(), buffer_.get() + head_end_, end_ - head_end_);
  end_ -= head_end_;
  head_end_ = 0;
  parser_.reset();
  // A page of metrics, or a set of rules, may be large.
  out_ = out_body_ = body_ = {};
  written_ = 0;
  if (end_ == 0) buffer_.reset();
  phase_ = Phase::idle;
  server_.waiting_.push_back(*this);
  server_.loop_.set(timer_, server_.options_.keepalive_timeout);
  if (end_ > 0 || stream_.can_read()) run_later();
  return Step::wait;
}

}  // namespace sluice::net
