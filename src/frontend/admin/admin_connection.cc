#include "frontend/admin/admin_connection.h"

#include "frontend/admin/admin_server.h"
#include "net/http/head_writer.h"
#include "net/http/http_date.h"
#include "net/http/status_text.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

namespace sluice::admin {
namespace {

constexpr std::size_t kAnswerHeadBytes = 1024;

std::int64_t unix_seconds(WallTime now) noexcept {
  return std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
}

// Nothing here is for caches, other sites, or guesses about content.
void write_security_headers(net::HeadWriter& head) noexcept {
  head.header("cache-control", "no-store");
  head.header("x-content-type-options", "nosniff");
  head.header("x-frame-options", "DENY");
  head.header("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  head.header("referrer-policy", "no-referrer");
}

}  // namespace

AdminConnection::AdminConnection(AdminServer& server, net::Peer peer)
    : server_(server),
      peer_(peer),
      stream_(net::Callback<>::to<&AdminConnection::drive>(*this)),
      timer_(net::Callback<>::to<&AdminConnection::on_timer>(*this)),
      next_turn_(net::Callback<>::to<&AdminConnection::drive>(*this)),
      parser_(headers_, server.options_.head) {}

bool AdminConnection::open(FileDescriptor descriptor) {
  if (stream_.open(server_.loop_, std::move(descriptor)).is_failed()) return false;
  server_.loop_.set(timer_, server_.options_.request_within);
  return true;
}

// ---- phases -----------------------------------------------------------------------------------

void AdminConnection::drive() {
  next_turn_.cancel();
  run(Step::again);
}

void AdminConnection::run(Step next) {
  while (next == Step::again) next = step();
  if (next == Step::gone) server_.destroy(*this);
}

AdminConnection::Step AdminConnection::step() {
  switch (phase_) {
    case Phase::idle: return wait_for_request();
    case Phase::head: return read_head();
    case Phase::body: return read_body();
    case Phase::answering: return write_answer();
  }
  return Step::gone;
}

void AdminConnection::on_timer() {
  switch (phase_) {
    case Phase::idle: return run(Step::gone);
    case Phase::head:
    case Phase::body: return run(fail(408, "The request took too long."));
    case Phase::answering: stream_.reset(); return run(Step::gone);
  }
}

AdminConnection::Step AdminConnection::wait_for_request() {
  if (end_ == 0) {
    const Step step = read_more();
    if (step != Step::again) return step;
  }
  server_.loop_.set(timer_, server_.options_.request_within);
  phase_ = Phase::head;
  return Step::again;
}

AdminConnection::Step AdminConnection::read_head() {
  const net::HeadParse parsed = parser_.parse({buffer_.get(), end_});
  if (parsed.state == net::HeadParse::State::fault) {
    return fail(parsed.fault.status, parsed.fault.why);
  }
  if (parsed.state == net::HeadParse::State::need_more) return read_more();
  const net::RequestHead& head = parser_.head();
  head_end_ = parsed.head_bytes;
  keep_alive_ = head.keep_alive && ++requests_ < server_.options_.requests_max;
  reader_ = net::BodyReader{head.body, trailers_};
  body_.clear();
  phase_ = Phase::body;
  if (head.body.kind == net::BodyFraming::Kind::length &&
      head.body.length > server_.options_.body_bytes_max) {
    return fail(413, "The body is too large.");
  }
  if (reader_.is_done()) return handle();
  if (const std::optional<Reply> refusal = server_.routes_.refuse(request(), *server_.guard_)) {
    keep_alive_ = false;  // its body is not waited for
    return answer(*refusal, head.method != "HEAD");
  }
  // So few bytes always find room in the buffers of the system.
  if (head.expects_continue) (void)stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
  return Step::again;
}

AdminConnection::Step AdminConnection::read_body() {
  std::size_t at = head_end_;
  while (!reader_.is_done()) {
    const net::BodyPiece piece = reader_.feed({buffer_.get() + at, end_ - at});
    if (piece.fault) return fail(piece.fault.status, piece.fault.why);
    body_ += piece.data;
    if (body_.size() > server_.options_.body_bytes_max) return fail(413, "The body is too large.");
    at += piece.consumed;
    if (piece.consumed == 0) break;
  }
  std::memmove(buffer_.get() + head_end_, buffer_.get() + at, end_ - at);
  end_ -= at - head_end_;
  return reader_.is_done() ? handle() : read_more();
}

AdminConnection::Step AdminConnection::read_more() {
  const std::span<char> room{buffer_.get() + end_, kBufferBytes - end_};
  if (room.empty()) return fail(431, "The headers are too long.");
  const net::IoResult result = stream_.read(room);
  if (result.is_blocked()) return Step::wait;
  if (!result.is_done()) return Step::gone;
  end_ += result.bytes;
  return Step::again;
}

// ---- answers ----------------------------------------------------------------------------------

Request AdminConnection::request() const noexcept {
  const net::RequestHead& head = parser_.head();
  const std::string_view target = head.path_and_query;
  const std::size_t mark = target.find('?');
  return {.method = head.method,
          .path = target.substr(0, mark),
          .query = mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1),
          .host = head.host,
          .headers = head.headers,
          .body = body_,
          .is_local = peer_.is_local};
}

AdminConnection::Step AdminConnection::handle() {
  const Request asked = request();
  return answer(server_.routes_.answer(asked, *server_.guard_), asked.method != "HEAD");
}

// What came is no request, or not all of one: nobody knows where the next would begin.
AdminConnection::Step AdminConnection::fail(std::uint16_t status, const char* why) {
  keep_alive_ = false;
  const bool is_head = head_end_ > 0 && parser_.head().method == "HEAD";
  return answer(problem(status, why), !is_head);
}

// Who asks for what he may not have, or for what does not exist, has to come again for more.
AdminConnection::Step AdminConnection::answer(const Reply& reply, bool with_body) {
  if (reply.status >= 400 && reply.status < 500) keep_alive_ = false;
  std::array<char, kAnswerHeadBytes> room;
  std::array<char, net::kHttpDateBytes> date;
  net::HeadWriter head{room};
  head.status_line(reply.status, net::reason_phrase(reply.status));
  head.header("date", net::format_http_date(unix_seconds(server_.loop_.now().wall()), date));
  head.header("content-type", reply.content_type);
  head.header("content-length", reply.body.size());
  if (!reply.allow.empty()) head.header("allow", reply.allow);
  if (reply.status == 401) head.header("www-authenticate", "Bearer");
  write_security_headers(head);
  net::write_persistence(
      head, net::persistence_for(keep_alive_, head_end_ > 0 ? parser_.head().minor_version : 1));
  const Result<std::string_view> written = head.finish();
  if (!written) return Step::gone;
  out_ = *written;
  if (with_body) out_ += reply.body;
  written_ = 0;
  phase_ = Phase::answering;
  note_progress();
  return Step::again;
}

// The list stays in the order of who took some bytes last.
void AdminConnection::note_progress() noexcept {
  last_progress_ = server_.loop_.now().mono;
  server_.answering_.push_back(*this);
  server_.loop_.set(timer_, server_.options_.written_within);
}

AdminConnection::Step AdminConnection::write_answer() {
  while (written_ < out_.size()) {
    const net::IoResult result = stream_.write(std::string_view{out_}.substr(written_));
    if (result.is_blocked()) return Step::wait;
    if (!result.is_done()) return Step::gone;
    written_ += result.bytes;
    note_progress();
  }
  if (keep_alive_) return next_request();
  // Something of the request may still be on its way: closing now would destroy the answer.
  server_.lingering_.close(stream_);
  return Step::gone;
}

AdminConnection::Step AdminConnection::next_request() {
  std::memmove(buffer_.get(), buffer_.get() + head_end_, end_ - head_end_);
  end_ -= head_end_;
  head_end_ = 0;
  parser_.reset();
  out_ = {};  // a page of metrics may be large
  phase_ = Phase::idle;
  server_.waiting_.push_back(*this);
  server_.loop_.set(timer_, server_.options_.idle_for);
  if (end_ > 0 || stream_.can_read()) server_.loop_.run_soon(next_turn_);
  return Step::wait;
}

}  // namespace sluice::admin
