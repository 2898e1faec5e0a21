// What a connection writes: whole responses, and those in pieces.

#include "net/http/head_writer.h"
#include "net/http/http_date.h"
#include "net/http/server/http_connection.h"
#include "net/http/server/http_server.h"
#include "net/http/status_text.h"

#include <array>
#include <chrono>
#include <utility>

namespace sluice::net {
namespace {

// Of all headers of a response; what is longer is a mistake of the handler.
constexpr std::size_t kResponseHeadBytes = 16384;
// Written bytes, to be removed from the front of a stream's buffer.
constexpr std::size_t kCompactBytes = 65536;

std::int64_t unix_seconds(WallTime now) noexcept {
  return std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
}

bool has_no_body(std::uint16_t status) noexcept { return status == 204 || status == 304; }

bool is_client_error(std::uint16_t status) noexcept { return status >= 400 && status < 500; }

// In small letters, as all that handlers write.
void write_framing(HeadWriter& writer, const BodyFraming& body) noexcept {
  if (body.kind == BodyFraming::Kind::length) writer.header("content-length", body.length);
  if (body.kind == BodyFraming::Kind::chunked) writer.header("transfer-encoding", "chunked");
}

// False: a header that is the server's to write.
bool write_all(HeadWriter& writer, const HttpHeaders& headers) noexcept {
  for (const auto& [name, value] : headers) {
    if (is_stated_by_writer(name)) return false;
    writer.header(name, value);
  }
  return true;
}

}  // namespace

// ---- whole responses --------------------------------------------------------------------------

// What came is no request, or not all of one: where the next would begin is unknown.
HttpConnection::Step HttpConnection::fail(std::uint16_t status, const char* why) {
  keep_alive_ = false;
  set_response(server_.error(status, why));
  return Step::again;
}

HttpConnection::Step HttpConnection::reject(HttpResponse response) {
  if (!reader_.is_done()) keep_alive_ = false;  // its body is not waited for
  set_response(std::move(response));
  return Step::again;
}

HttpConnection::Step HttpConnection::expire() {
  if (handle_ != nullptr) handle_->lose();
  set_response(otherwise_ != nullptr ? std::move(*otherwise_)
                                     : server_.error(503, "The response took too long."));
  return Step::again;
}

void HttpConnection::respond(HttpResponse response, bool has_length) {
  set_response(std::move(response), has_length);
  if (!is_calling_) run_later();
}

void HttpConnection::respond_for_nobody() {
  respond(server_.error(500, "The request was given up."));
}

void HttpConnection::set_deadline(Nanos after, HttpResponse otherwise) {
  otherwise_ = std::make_unique<HttpResponse>(std::move(otherwise));
  server_.loop_.set(timer_, after);
}

void HttpConnection::set_response(HttpResponse response, bool has_length) {
  leave_long_lived();
  otherwise_.reset();
  if (server_.options_.close_after_client_error && is_client_error(response.status)) {
    keep_alive_ = false;
  }
  BodyFraming framing{.kind = BodyFraming::Kind::length, .length = response.body.size()};
  if (!has_length || has_no_body(response.status)) framing = {};
  if (!write_headers(response, framing)) {
    ++server_.counts_.invalid_responses;
    response = text_response(500, "The response cannot be written.\n");
    framing = {.kind = BodyFraming::Kind::length, .length = response.body.size()};
    if (!write_headers(response, framing)) keep_alive_ = false;  // nothing can be said
  }
  const bool is_head = head_end_ > 0 && parser_.head().method == "HEAD";
  const bool has_body = !is_head && framing.kind == BodyFraming::Kind::length;
  out_body_ = has_body ? std::move(response.body) : std::string{};
  phase_ = Phase::responding;
  note_progress();
}

// Behind what is there already. False: a handler's mistake, and nothing was written.
bool HttpConnection::write_headers(const HttpResponse& response, const BodyFraming& framing) {
  if (response.status < 200 || response.status > 599) return false;
  if (is_leaving()) keep_alive_ = false;
  std::array<char, kResponseHeadBytes> room;  // not cleared: only what is filled is read
  std::array<char, kHttpDateBytes> date;
  HeadWriter writer{room};
  writer.status_line(response.status, reason_phrase(response.status));
  if (!has_header(response.headers, "date")) {
    writer.header("date", format_http_date(unix_seconds(server_.loop_.now().wall()), date));
  }
  if (!write_all(writer, response.headers)) return false;
  for (const auto& [name, value] : server_.options_.headers) {
    if (!has_header(response.headers, name)) writer.header(name, value);
  }
  write_framing(writer, framing);
  write_persistence(writer,
                    persistence_for(keep_alive_, head_end_ > 0 ? parser_.head().minor_version : 1));
  const Result<std::string_view> written = writer.finish();
  if (written) out_ += *written;
  return written.has_value();
}

// The list stays in the order of who took some bytes last.
void HttpConnection::note_progress() noexcept {
  last_progress_ = server_.loop_.now().mono;
  server_.loop_.set(timer_, server_.options_.send_timeout);
  if (phase_ == Phase::responding) server_.responding_.push_back(*this);
}

IoResult HttpConnection::write_some() {
  while (written_ < out_.size() + out_body_.size()) {
    const std::size_t of_out = std::min(written_, out_.size());
    const std::array<iovec, 2> parts{
        part_of(std::string_view{out_}.substr(of_out)),
        part_of(std::string_view{out_body_}.substr(written_ - of_out))};
    // A part that is empty would cost a copy under TLS.
    const std::size_t first = parts[0].iov_len > 0 ? 0 : 1;
    const std::size_t count = (parts[0].iov_len > 0 ? 1U : 0U) + (parts[1].iov_len > 0 ? 1U : 0U);
    const IoResult result = stream_.write(std::span{parts}.subspan(first, count));
    if (!result.is_done()) return result;
    written_ += result.bytes;
    note_progress();
  }
  return IoResult::done();
}

HttpConnection::Step HttpConnection::write_response() {
  const IoResult result = write_some();
  if (result.is_blocked()) return Step::wait;
  if (!result.is_done()) return Step::gone;
  // The server may have begun to drain since the headers were written.
  if (keep_alive_ && !is_leaving()) return next_request();
  // Something of the request may still be on its way: closing now would destroy the response.
  server_.lingering_.close(stream_);
  return Step::gone;
}

// ---- responses in pieces ----------------------------------------------------------------------

bool HttpConnection::enter_long_lived() noexcept {
  if (is_long_lived_) return true;
  if (server_.long_lived_count_ >= server_.options_.long_lived_max) {
    ++server_.counts_.long_lived_rejected;
    return false;
  }
  ++server_.long_lived_count_;
  return is_long_lived_ = true;
}

HttpResponse HttpConnection::too_many_long_lived() const {
  HttpResponse response = server_.error(503, "Too many long-lived requests.");
  response.headers.emplace_back("retry-after", "1");
  return response;
}

void HttpConnection::leave_long_lived() noexcept {
  if (std::exchange(is_long_lived_, false)) --server_.long_lived_count_;
}

// False: the client gets a whole response instead.
bool HttpConnection::begin_stream(HttpResponse headers, const StreamOptions& options) {
  using Kind = BodyFraming::Kind;
  const RequestHead& head = parser_.head();
  if (has_no_body(headers.status)) headers.status = 0;  // which no response has
  headers.body.clear();
  if (head.method == "HEAD") {
    respond(std::move(headers), false);  // how long the body would be is unknown
    return false;
  }
  if (!enter_long_lived()) {
    respond(too_many_long_lived());
    return false;
  }
  is_chunked_ = head.minor_version == 1;
  if (!is_chunked_ || is_leaving()) keep_alive_ = false;
  if (!write_headers(headers, {.kind = is_chunked_ ? Kind::chunked : Kind::until_close})) {
    respond({.status = 0, .headers = {}, .body = {}});
    return false;
  }
  otherwise_.reset();
  stream_options_ = options;
  unsent_ = 0;  // whatever the last heartbeat of an earlier stream left
  phase_ = Phase::streaming;
  server_.long_lived_.push_back(*this);
  note_progress();
  if (!is_calling_) run_later();
  return true;
}

bool HttpConnection::write_piece(std::string_view bytes) {
  constexpr std::size_t kFraming = kChunkHeadBytesMax + kChunkEnd.size();
  if (bytes.empty()) return true;  // an empty chunk is the last
  if (unwritten() + bytes.size() + kFraming > server_.options_.stream_bytes_max) {
    ++server_.counts_.pieces_rejected;
    return false;
  }
  append_piece(bytes);
  if (!is_calling_) run_later();
  return true;
}

void HttpConnection::append_piece(std::string_view bytes) {
  if (unwritten() == 0) server_.loop_.set(timer_, server_.options_.send_timeout);
  if (unwritten() == 0 || written_ > kCompactBytes) {
    out_.erase(0, written_);
    written_ = 0;
  }
  unsent_ = 0;
  std::array<char, kChunkHeadBytesMax> room;
  if (is_chunked_) out_ += format_chunk_head(bytes.size(), room);
  out_ += bytes;
  if (is_chunked_) out_ += kChunkEnd;
}

HttpConnection::Step HttpConnection::write_stream() {
  if (is_gone()) return Step::gone;
  const bool had_some = unwritten() > 0;
  const IoResult result = write_some();
  if (result.is_blocked()) return Step::wait;
  if (!result.is_done()) return Step::gone;
  if (!had_some) return Step::wait;
  if (stream_options_.heartbeat.empty()) {
    timer_.cancel();
  } else {
    server_.loop_.set(timer_, stream_options_.heartbeat_interval);
  }
  // In this phase the handle is a stream. The function may write to it, finish it or end it, itself
  // included.
  const auto* const stream = static_cast<ResponseStream*>(handle_);
  const std::function<void()> tell = stream != nullptr ? stream->on_drained_ : nullptr;
  if (tell) tell();
  return Step::wait;
}

// Nothing was written for an interval. What the client's system has not taken since needs no
// heartbeat to find out whether it is there: it is not, if another interval changes nothing.
HttpConnection::Step HttpConnection::beat() {
  const std::size_t unsent = stream_.unsent();
  const bool is_stuck = unwritten() > 0 || (unsent_ > 0 && unsent >= unsent_);
  if (is_stuck) {
    ++server_.counts_.timed_out;
    stream_.reset();
    return Step::gone;
  }
  if (unsent > 0) {
    unsent_ = unsent;
    server_.loop_.set(timer_, stream_options_.heartbeat_interval);
    return Step::wait;
  }
  append_piece(stream_options_.heartbeat);
  return write_stream();
}

void HttpConnection::finish_stream() {
  if (is_chunked_) out_ += kLastChunk;
  if (is_leaving()) keep_alive_ = false;
  leave_long_lived();
  phase_ = Phase::responding;
  note_progress();
  if (!is_calling_) run_later();
}

void HttpConnection::cut_stream() {
  phase_ = Phase::cut;
  timer_.cancel();  // a heartbeat may be due in this very turn
  if (!is_calling_) run_later();
}

}  // namespace sluice::net
