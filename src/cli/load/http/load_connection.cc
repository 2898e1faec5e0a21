#include "cli/load/http/load_connection.h"

#include <utility>

namespace sluice::cli {
namespace {

// After these another response to the same request follows.
bool is_interim(std::uint16_t status) noexcept { return status < 200 && status != 101; }

// A status line can say 700, which has no meaning.
bool is_known(std::uint16_t status) noexcept { return status >= 200 && status < 600; }

}  // namespace

LoadConnection::LoadConnection(LoadBench& bench) noexcept
    : bench_(bench),
      stream_(net::Callback<>::to<&LoadConnection::on_ready>(*this)),
      timer_(net::Callback<>::to<&LoadConnection::on_timeout>(*this)) {}

// ---- connecting -------------------------------------------------------------------------------

void LoadConnection::open() {
  state_ = State::opening;
  connect();
}

void LoadConnection::stop_opening() noexcept {
  if (is_opening()) close();
}

void LoadConnection::connect() {
  const net::IoResult begun = stream_.connect(bench_.loop, bench_.address);
  const bool failed =
      begun.is_failed() || (bench_.tls != nullptr && !stream_.start_tls(*bench_.tls, bench_.host));
  return failed ? fail_to_connect() : go_on_connecting();
}

void LoadConnection::go_on_connecting() {
  const net::IoResult result = stream_.establish();
  if (result.is_blocked()) return;
  if (!result.is_done()) return fail_to_connect();
  if (state_ == State::connecting) return write_request();
  state_ = State::idle;
  if (stream_.can_read()) hear_unasked();
}

void LoadConnection::fail_to_connect() {
  return state_ == State::connecting ? fail(LoadError::connect) : close();
}

// ---- asking -----------------------------------------------------------------------------------

void LoadConnection::send(const LoadRequest& request, MonoTime now) {
  request_ = request;
  sent_ = now;
  bench_.loop.set(timer_, bench_.timeout);
  if (state_ == State::idle) return write_request();
  state_ = State::connecting;
  connect();
}

void LoadConnection::write_request() {
  state_ = State::busy;
  status_ = 0;
  bench_.request.render(request_.client, bench_.rendered);
  const std::string_view request = bench_.rendered;
  const std::size_t written = write_some(request);
  if (written < request.size()) unsent_ = request.substr(written);
  // Bytes buffered by TLS raise no event.
  if (stream_.can_read()) read_answer();
}

// As much as goes now. A server that takes no more may have answered already: reading will tell.
std::size_t LoadConnection::write_some(std::string_view bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const net::IoResult result = stream_.write(bytes.substr(written));
    if (result.is_blocked()) return written;
    if (!result.is_done()) return bytes.size();
    written += result.bytes;
  }
  return written;
}

// ---- hearing ----------------------------------------------------------------------------------

void LoadConnection::on_ready() {
  switch (state_) {
    case State::closed: return;
    case State::idle: return hear_unasked();
    case State::opening:
    case State::connecting: return go_on_connecting();
    case State::busy: return go_on();
  }
}

// With TLS there may be records without data. A connection with more than that, or a closed one, is
// not reused.
void LoadConnection::hear_unasked() {
  if (!stream_.read(bench_.buffer).is_blocked()) close();
}

void LoadConnection::on_timeout() { fail(LoadError::timeout); }

void LoadConnection::go_on() {
  if (!unsent_.empty()) unsent_.erase(0, write_some(unsent_));
  read_answer();
}

void LoadConnection::read_answer() {
  while (true) {
    const net::IoResult result = stream_.read(bench_.buffer);
    if (result.is_blocked()) return;
    if (result.is_closed()) return end_of_input();
    if (result.is_failed()) return fail(LoadError::closed);
    if (!take({bench_.buffer.data(), result.bytes})) return;
  }
}

// False: the request is over.
bool LoadConnection::take(std::string_view bytes) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::exchange(pending_, {});
    joined += bytes;
    bytes = joined;
  }
  while (status_ == 0) {
    const std::size_t before = bytes.size();
    if (!take_head(bytes)) return false;
    if (bytes.size() == before) {  // the rest of the headers is to come
      pending_ = bytes;
      return true;
    }
  }
  return take_body(bytes);
}

// Removes complete headers from the front. False: the request is over.
bool LoadConnection::take_head(std::string_view& bytes) {
  bench_.parser.expect_answer_to(bench_.method);
  const net::HeadParse parsed = bench_.parser.parse(bytes);
  if (parsed.state == net::HeadParse::State::need_more) return true;
  const net::ResponseHead& head = bench_.parser.head();
  if (parsed.state == net::HeadParse::State::fault ||
      (!is_interim(head.status) && !is_known(head.status))) {
    fail(LoadError::bad_response);
    return false;
  }
  bytes.remove_prefix(parsed.head_bytes);
  if (is_interim(head.status)) return true;
  status_ = head.status;
  keep_alive_ = head.keep_alive;
  body_ = net::BodyReader{head.body, bench_.trailers};
  bench_.on_head(head);
  return true;
}

// False: the request is over.
bool LoadConnection::take_body(std::string_view bytes) {
  while (!body_.is_done() && !bytes.empty()) {
    const net::BodyPiece piece = body_.feed(bytes);
    if (piece.fault) {
      fail(LoadError::bad_response);
      return false;
    }
    bytes.remove_prefix(piece.consumed);
    if (piece.consumed == 0 && !body_.is_done()) break;
  }
  if (!body_.is_done()) {
    pending_ = bytes;
    return true;
  }
  keep_alive_ = keep_alive_ && bytes.empty();  // bytes behind the response belong to no request
  finish();
  return false;
}

void LoadConnection::end_of_input() {
  keep_alive_ = false;
  const bool is_whole = status_ != 0 && !body_.end_of_input();
  return is_whole ? finish() : fail(LoadError::closed);
}

// ---- ending -----------------------------------------------------------------------------------

void LoadConnection::finish() {
  timer_.cancel();
  const bool is_quiet = unsent_.empty() && !stream_.can_read() && !stream_.peer_hung_up();
  if (keep_alive_ && is_quiet) {
    state_ = State::idle;
  } else {
    close();
  }
  bench_.on_end(*this, Ending::answered(status_));
}

void LoadConnection::fail(LoadError error) {
  close();
  bench_.on_end(*this, Ending::failed(error));
}

void LoadConnection::abandon() noexcept { close(); }

void LoadConnection::close() noexcept {
  timer_.cancel();
  stream_.close();
  unsent_.clear();
  pending_.clear();
  state_ = State::closed;
}

}  // namespace sluice::cli
