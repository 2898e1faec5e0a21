#include "net/http/client/http_client.h"

#include "net/http/head_writer.h"
#include "net/lookup.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::net {
namespace {

constexpr std::size_t kHeadBytesMax = 16384;
constexpr std::size_t kReadBytes = 65536;

// The bytes of a question; nothing if it cannot be written as one.
Result<std::string> written(const HttpQuestion& question, const std::string& host) {
  std::array<char, kHeadBytesMax> room;
  HeadWriter writer{room};
  writer.request_line(question.method, question.path);
  writer.header("host", host);
  for (const auto& [name, value] : question.headers) writer.header(name, value);
  if (!question.body.empty()) writer.header("content-length", question.body.size());
  const Result<std::string_view> head = writer.finish();
  if (!head) return tl::unexpected(head.error());
  return std::string{*head} + question.body;
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(
      headers, [name](const auto& one) { return equals_ignoring_case(one.first, name); });
  return found != headers.end() ? std::string_view{found->second} : std::string_view{};
}

HttpClient::HttpClient(EventLoop& loop, Resolver& resolver, HttpTarget target,
                       Callback<const Parsed<HttpAnswer>&> on_answer,
                       const HttpClientOptions& options)
    : loop_(loop),
      resolver_(resolver),
      target_(std::move(target)),
      on_answer_(on_answer),
      options_(options),
      begin_(Callback<>::to<&HttpClient::begin>(*this)),
      late_(Callback<>::to<&HttpClient::on_late>(*this)),
      lookup_(Callback<const Resolution&>::to<&HttpClient::on_found>(*this)),
      parser_(headers_) {}

// ---- asking -----------------------------------------------------------------------------------

void HttpClient::ask(const HttpQuestion& question) {
  Result<std::string> bytes = written(question, target_.host);
  out_ = bytes ? *std::move(bytes) : std::string{};
  parser_.expect_answer_to(question.method);
  may_be_repeated_ = question.method == "GET" || question.method == "HEAD";
  phase_ = Phase::looking_up;
  loop_.set(late_, options_.within);
  loop_.run_soon(begin_);
}

void HttpClient::begin() {
  if (out_.empty()) return fail("the question cannot be written as a request");
  sent_ = 0;
  in_.clear();
  answer_ = {};
  is_reused_ = stream_.has_value();
  if (!is_reused_) return look_up();
  phase_ = Phase::sending;
  on_stream();
}

void HttpClient::look_up() {
  const Endpoint& endpoint = target_.endpoint;
  addresses_.clear();
  phase_ = Phase::looking_up;
  if (endpoint.kind == Endpoint::Kind::name)
    return resolver_.resolve(endpoint.name, loop_, lookup_);
  if (endpoint.kind == Endpoint::Kind::unix_path) {
    addresses_.push_back(*SocketAddress::of_path(endpoint.name));
  } else {
    addresses_.push_back(SocketAddress::of(endpoint.address, endpoint.port));
  }
  connect_to_next();
}

void HttpClient::on_found(const Resolution& found) {
  if (!found) return fail(found.error().message);
  for (const IpAddress& address : **found) {
    addresses_.push_back(SocketAddress::of(address, target_.endpoint.port));
  }
  connect_to_next();
}

void HttpClient::connect_to_next() {
  const SocketAddress to = addresses_.front();
  addresses_.erase(addresses_.begin());
  stream_.emplace(Callback<>::to<&HttpClient::on_stream>(*this));
  ++connections_;
  phase_ = Phase::connecting;
  const IoResult result = stream_->connect(loop_, to);
  if (result.is_failed()) return broken(result.why.text());
  on_stream();
}

// ---- hearing ----------------------------------------------------------------------------------

void HttpClient::on_stream() {
  // Idle, a server has nothing to say: it hangs up.
  if (phase_ == Phase::idle) return stream_.reset();
  while (step()) {
  }
}

bool HttpClient::step() {
  switch (phase_) {
    case Phase::idle:
    case Phase::looking_up: return false;
    case Phase::connecting: return establish();
    case Phase::sending: return send();
    case Phase::head: return read_head();
    case Phase::body: return read_body();
  }
  return false;
}

bool HttpClient::establish() {
  const IoResult result = stream_->establish();
  if (result.is_blocked()) return false;
  if (!result.is_done()) {
    broken(result.is_failed() ? result.why.text() : "the connection was closed");
    return false;
  }
  phase_ = Phase::sending;
  return true;
}

bool HttpClient::send() {
  const IoResult result = stream_->write(std::string_view{out_}.substr(sent_));
  if (result.is_blocked()) return false;
  if (!result.is_done()) {
    broken(result.is_failed() ? result.why.text() : "the connection was closed");
    return false;
  }
  sent_ += result.bytes;
  if (sent_ < out_.size()) return true;
  parser_.reset();
  phase_ = Phase::head;
  return true;
}

bool HttpClient::read_head() {
  if (in_.empty()) return read_more();
  const HeadParse parsed = parser_.parse(in_);
  if (parsed.state == HeadParse::State::need_more) return read_more();
  if (parsed.state == HeadParse::State::fault) {
    fail(parsed.fault.why);
    return false;
  }
  const ResponseHead& head = parser_.head();
  if (head.status < 200 && head.status != 101) {
    in_.erase(0, parsed.head_bytes);
    parser_.reset();
    return true;
  }
  answer_.status = head.status;
  for (const HeaderView& one : head.headers) answer_.headers.emplace_back(one.name, one.value);
  keep_alive_ = head.keep_alive && head.body.kind != BodyFraming::Kind::until_close;
  reader_ = BodyReader{head.body, trailers_};
  in_.erase(0, parsed.head_bytes);
  phase_ = Phase::body;
  return true;
}

bool HttpClient::read_body() {
  while (!reader_.is_done()) {
    const BodyPiece piece = reader_.feed(in_);
    if (piece.fault) {
      fail(piece.fault.why);
      return false;
    }
    answer_.body += piece.data;
    in_.erase(0, piece.consumed);
    if (answer_.body.size() > options_.body_bytes_max) {
      fail("the answer is too large");
      return false;
    }
    if (piece.consumed == 0) return read_more();
  }
  // What nobody asked for makes the connection useless.
  if (!keep_alive_ || !in_.empty()) stream_.reset();
  finish(std::move(answer_));
  return false;
}

bool HttpClient::read_more() {
  const std::size_t before = in_.size();
  in_.resize(before + kReadBytes);
  const IoResult result = stream_->read({in_.data() + before, kReadBytes});
  in_.resize(before + (result.is_done() ? result.bytes : 0));
  if (result.is_done()) return true;
  if (result.is_blocked()) return false;
  const bool is_whole = phase_ == Phase::body && result.is_closed() && !reader_.end_of_input();
  if (is_whole) return true;
  broken(result.is_failed() ? result.why.text() : "the server closed without a whole answer");
  return false;
}

// ---- ends -------------------------------------------------------------------------------------

void HttpClient::on_late() {
  fail(fmt::format("no answer within {} ms", options_.within.count() / 1'000'000));
}

// The connection is. There may be another address, or another chance.
void HttpClient::broken(const std::string& why) {
  if (phase_ == Phase::connecting && !addresses_.empty()) return connect_to_next();
  const bool said_nothing = phase_ != Phase::body && in_.empty();
  if (is_reused_ && may_be_repeated_ && said_nothing) {
    is_reused_ = false;
    sent_ = 0;
    return look_up();
  }
  fail(why);
}

void HttpClient::fail(const std::string& why) {
  stream_.reset();
  lookup_.cancel();
  finish(mistake(fmt::format("{}: {}", target_.text, why)));
}

// Last of all: whoever hears of it may ask again, or end this.
// NOLINTNEXTLINE(performance-unnecessary-value-param): what belongs to this may go with it
void HttpClient::finish(Parsed<HttpAnswer> answer) {
  late_.cancel();
  phase_ = Phase::idle;
  const Callback<const Parsed<HttpAnswer>&> tell = on_answer_;
  tell(answer);
}

}  // namespace sluice::net
