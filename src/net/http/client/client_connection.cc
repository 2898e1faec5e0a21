#include "net/http/client/client_connection.h"

#include "net/http/client/client_pool.h"
#include "net/http/client/http_client.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace sluice::net {
namespace {

using Kind = HttpFailure::Kind;

// Others have their turn before the rest of a large response.
constexpr int kStepsPerTurn = 64;

// It asks for nothing to be done: sending it twice does no harm.
bool may_be_repeated(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD";
}

Kind kind_of(const IoResult& result, bool is_connecting) noexcept {
  const IoFailure::Kind why = result.why.kind;
  const bool is_tls = why == IoFailure::Kind::tls || why == IoFailure::Kind::certificate;
  if (result.is_failed() && is_tls) return Kind::tls;
  return is_connecting ? Kind::connect : Kind::closed;
}

}  // namespace

ClientConnection::ClientConnection(ClientPool& pool)
    : pool_(pool),
      begin_(Callback<>::to<&ClientConnection::begin>(*this)),
      timer_(Callback<>::to<&ClientConnection::on_timer>(*this)),
      next_turn_(Callback<>::to<&ClientConnection::on_stream>(*this)),
      lookup_(Callback<const Resolution&>::to<&ClientConnection::on_resolved>(*this)),
      parser_(headers_, pool.options().head) {}

ClientConnection::~ClientConnection() {
  if (call_ != nullptr) call_->detach();
  if (ended_ != nullptr) *ended_ = true;
}

void ClientConnection::start(HttpCall& call) {
  call_ = &call;
  call.connection_ = this;
  timer_.cancel();
  phase_ = Phase::starting;
  pool_.loop().run_soon(begin_);
}

void ClientConnection::wait_idle(Nanos time) noexcept {
  phase_ = Phase::idle;
  is_reused_ = true;
  in_ = {};
  pool_.loop().set(timer_, time);
}

// ---- connecting -------------------------------------------------------------------------------

void ClientConnection::begin() {
  if (!stream_) return look_up();
  begin_exchange();
  on_stream();
}

void ClientConnection::look_up() {
  const Endpoint& endpoint = pool_.origin().url.endpoint;
  phase_ = Phase::looking_up;
  is_reused_ = false;
  addresses_.clear();
  if (endpoint.kind == Endpoint::Kind::name) {
    return pool_.resolver().resolve(endpoint.name, pool_.loop(), lookup_);
  }
  if (endpoint.kind != Endpoint::Kind::unix_path) {
    addresses_.push_back(SocketAddress::of(endpoint.address, endpoint.port));
  } else if (const auto path = SocketAddress::of_path(endpoint.name)) {
    addresses_.push_back(*path);
  } else {
    fail(Kind::connect, "the path is too long for a socket");
    return;
  }
  connect_to_next();
}

void ClientConnection::on_resolved(const Resolution& found) {
  if (!found) {
    fail(Kind::name, found.error().message);
    return;
  }
  for (const IpAddress& address : **found) {
    addresses_.push_back(SocketAddress::of(address, pool_.origin().url.endpoint.port));
  }
  connect_to_next();
}

void ClientConnection::connect_to_next() {
  const HttpOrigin& origin = pool_.origin();
  const SocketAddress to = addresses_.front();
  addresses_.erase(addresses_.begin());
  stream_.emplace(Callback<>::to<&ClientConnection::on_stream>(*this));
  pool_.count_connection();
  phase_ = Phase::connecting;
  pool_.loop().set(timer_, pool_.options().connect_timeout);
  const IoResult result = stream_->connect(pool_.loop(), to);
  if (result.is_failed()) {
    broken(result);
    return;
  }
  const std::string& name = origin.server_name;
  const bool has_tls = origin.tls == nullptr ||
                       stream_->start_tls(*origin.tls, name.empty() ? origin.url.name() : name);
  if (!has_tls) {
    fail(Kind::tls, "TLS cannot be started: is that a name?");
    return;
  }
  on_stream();
}

void ClientConnection::on_timer() {
  if (phase_ == Phase::idle) return pool_.release(*this, false);
  broken(Kind::connect, fmt::format("no connection within {} ms",
                                    pool_.options().connect_timeout.count() / 1'000'000));
}

// ---- exchanging -------------------------------------------------------------------------------

void ClientConnection::on_stream() {
  next_turn_.cancel();
  for (int steps = 0; steps < kStepsPerTurn; ++steps) {
    if (step() != Step::again) return;
  }
  pool_.loop().run_soon(next_turn_);
}

ClientConnection::Step ClientConnection::step() {
  switch (phase_) {
    case Phase::starting:
    case Phase::looking_up: return Step::wait;
    case Phase::connecting: return establish();
    case Phase::exchanging: return exchange();
    case Phase::idle: return hear_unasked();
  }
  return Step::wait;
}

// Nothing has come, but for what TLS sends on its own account.
bool ClientConnection::is_quiet() noexcept {
  char byte = 0;
  return !stream_->can_read() || stream_->read({&byte, 1}).is_blocked();
}

ClientConnection::Step ClientConnection::hear_unasked() {
  if (is_quiet()) return Step::wait;
  pool_.release(*this, false);
  return Step::over;
}

ClientConnection::Step ClientConnection::establish() {
  const IoResult result = stream_->establish();
  if (result.is_blocked()) return Step::wait;
  if (!result.is_done()) return broken(result);
  timer_.cancel();
  begin_exchange();
  return Step::again;
}

void ClientConnection::begin_exchange() {
  phase_ = Phase::exchanging;
  sent_ = 0;
  is_write_broken_ = has_headers_ = has_heard_ = false;
  in_.clear();
  response_ = {};
  parser_.expect_answer_to(call_->method_);
}

ClientConnection::Step ClientConnection::exchange() {
  const bool has_written = write_request();
  const Step step = read_response();
  return step == Step::wait && has_written ? Step::again : step;
}

// A server that takes no more may have responded already: reading will tell.
bool ClientConnection::write_request() {
  const std::string_view rest = std::string_view{call_->bytes_}.substr(sent_);
  if (rest.empty() || is_write_broken_) return false;
  const IoResult result = stream_->write(rest);
  if (result.is_done()) sent_ += result.bytes;
  is_write_broken_ = !result.is_done() && !result.is_blocked();
  return result.is_done();
}

ClientConnection::Step ClientConnection::read_response() {
  std::array<char, 32768> room;  // not cleared: only what is filled is read
  const IoResult result = stream_->read(room);
  if (result.is_blocked()) return Step::wait;
  if (result.is_closed() && has_headers_ && !reader_.end_of_input()) {
    keep_alive_ = false;
    return complete();
  }
  if (!result.is_done()) return broken(result);
  has_heard_ = true;
  in_.append(room.data(), result.bytes);
  return has_headers_ ? take_body() : take_headers();
}

ClientConnection::Step ClientConnection::take_headers() {
  while (!has_headers_) {
    const HeadParse parsed = parser_.parse(in_);
    if (parsed.state == HeadParse::State::need_more) return Step::again;
    if (parsed.state == HeadParse::State::fault) return fail(Kind::malformed, parsed.fault.why);
    const std::uint16_t status = parser_.head().status;
    if (status == 101) return fail(Kind::malformed, "the protocol changes, unasked");
    if (status >= 200) take_head();
    in_.erase(0, parsed.head_bytes);
    parser_.reset();
  }
  const BodyFraming& body = parser_.head().body;
  const bool is_kept = !call_->on_body_;
  if (is_kept && body.kind == BodyFraming::Kind::length &&
      body.length > pool_.options().body_bytes_max) {
    return fail(Kind::too_large, "the response is too large");
  }
  return take_body();
}

void ClientConnection::take_head() {
  const ResponseHead& head = parser_.head();
  has_headers_ = true;
  response_.status = head.status;
  for (const HeaderView& one : head.headers) response_.headers.emplace_back(one.name, one.value);
  keep_alive_ = head.keep_alive;
  reader_ = BodyReader{head.body, trailers_};
}

ClientConnection::Step ClientConnection::take_body() {
  std::size_t at = 0;
  while (!reader_.is_done()) {
    const BodyPiece piece = reader_.feed(std::string_view{in_}.substr(at));
    if (piece.fault) return fail(Kind::malformed, piece.fault.why);
    if (!piece.data.empty() && !deliver(piece.data)) return Step::over;
    if (response_.body.size() > pool_.options().body_bytes_max) {
      return fail(Kind::too_large, "the response is too large");
    }
    at += piece.consumed;
    if (piece.consumed == 0) break;
  }
  in_.erase(0, at);
  return reader_.is_done() ? complete() : Step::again;
}

// False: the callback has ended the request, and this with it.
bool ClientConnection::deliver(std::string_view piece) {
  const Callback<const HttpResponse&, std::string_view> tell = call_->on_body_;
  if (!tell) {
    response_.body += piece;
    return true;
  }
  bool ended = false;
  ended_ = &ended;
  tell(response_, piece);
  if (!ended) ended_ = nullptr;
  return !ended;
}

// ---- ends -------------------------------------------------------------------------------------

// What follows the response is one to nothing: such a connection is of no more use.
ClientConnection::Step ClientConnection::complete() {
  const bool is_all_sent = sent_ == call_->bytes_.size();
  const bool is_reusable = keep_alive_ && is_all_sent && in_.empty() && is_quiet();
  const HttpResult result = std::move(response_);
  HttpCall& call = *std::exchange(call_, nullptr);
  pool_.release(*this, is_reusable);
  call.finish(result);
  return Step::over;
}

ClientConnection::Step ClientConnection::broken(const IoResult& result) {
  const bool is_connecting = phase_ == Phase::connecting;
  const Kind kind = kind_of(result, is_connecting);
  if (result.is_failed()) return broken(kind, result.why.text());
  return broken(kind, is_connecting ? "the connection was closed"
                                    : "the server closed without a whole response");
}

ClientConnection::Step ClientConnection::broken(Kind kind, const std::string& why) {
  if (phase_ == Phase::connecting && !addresses_.empty()) {
    connect_to_next();
    return Step::over;
  }
  if (is_reused_ && !has_heard_ && may_be_repeated(call_->method_)) {
    stream_.reset();
    look_up();
    return Step::over;
  }
  return fail(kind, why);
}

ClientConnection::Step ClientConnection::fail(Kind kind, const std::string& why) {
  const HttpResult failed = tl::unexpected(
      HttpFailure{.kind = kind, .message = fmt::format("{}: {}", pool_.server(), why)});
  HttpCall& call = *std::exchange(call_, nullptr);
  pool_.release(*this, false);
  call.finish(failed);
  return Step::over;
}

}  // namespace sluice::net
