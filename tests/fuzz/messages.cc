#include "messages.h"

#include "fuzz.h"
#include "net/http/body_reader.h"
#include "net/http/request_parser.h"
#include "net/http/response_parser.h"

#include <algorithm>
#include <array>

namespace sluice::fuzz {
namespace {

using State = net::HeadParse::State;
using Kind = net::BodyFraming::Kind;

// Seen by nobody's parser: a line is a line, and says once how long the body is.
void expect_plain_lines(std::string_view head) {
  expect(head.ends_with("\r\n\r\n"), "a head ends with an empty line");
  head.remove_suffix(2);
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    constexpr std::string_view kForbidden{"\r\n\0", 3};
    expect(!line.empty() && line.find_first_of(kForbidden) == line.npos, "a line is a line");
    head.remove_prefix(end + 2);
  }
}

void expect_one_framing(const Message& message) {
  const std::size_t lengths = message.count("content-length");
  const std::size_t encodings = message.count("transfer-encoding");
  expect(lengths <= 1 && encodings <= 1 && lengths + encodings <= 1, "there is one framing");
}

void copy_head(Message& message, const net::MessageHead& head) {
  message.framing = head.body;
  for (const HeaderView& header : head.headers) {
    message.headers.emplace_back(header.name, header.value);
  }
}

// Takes the body off the bytes. False: it is wrong.
bool take_body(Message& message, std::string_view& bytes) {
  std::array<HeaderView, 64> trailers;
  net::BodyReader reader{message.framing, trailers};
  while (!reader.is_done()) {
    const net::BodyPiece piece = reader.feed(bytes);
    if (piece.fault) return false;
    message.body += piece.data;
    bytes.remove_prefix(piece.consumed);
    if (piece.consumed == 0 && !piece.done) break;
  }
  message.is_complete = reader.is_done();
  return true;
}

// Passes over interim answers; complete with the first that is none.
net::HeadParse take_head(net::ResponseParser& parser, std::string_view& bytes) {
  while (true) {
    const net::HeadParse parsed = parser.parse(bytes);
    const bool is_interim = parsed.state == State::complete && parser.head().status < 200 &&
                            parser.head().status != 101;
    if (!is_interim) return parsed;
    bytes.remove_prefix(parsed.head_bytes);
    parser.reset();
  }
}

}  // namespace

std::size_t Message::count(std::string_view lower_name) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers, [&](const auto& header) { return equals_ignoring_case(header.first, lower_name); }));
}

std::string Message::last(std::string_view lower_name) const {
  std::string value;
  for (const auto& [name, text] : headers) {
    if (equals_ignoring_case(name, lower_name)) value = text;
  }
  return value;
}

std::vector<Message> read_requests(std::string_view bytes, Reader reader,
                                   const net::HeadLimits& limits) {
  std::vector<Message> messages;
  std::array<HeaderView, net::kHeadersMax> headers;
  const bool is_strict = reader == Reader::strict;
  while (!bytes.empty()) {
    net::RequestParser parser{headers, limits};
    const net::HeadParse parsed = parser.parse(bytes);
    expect(!is_strict || parsed.state != State::fault, "a server can read what is passed on");
    if (parsed.state != State::complete) break;
    Message& message = messages.emplace_back();
    message.method = parser.head().method;
    message.target = parser.head().path_and_query;
    copy_head(message, parser.head());
    if (is_strict) {
      expect_plain_lines(bytes.substr(0, parsed.head_bytes));
      expect_one_framing(message);
    }
    bytes.remove_prefix(parsed.head_bytes);
    const bool is_right = take_body(message, bytes);
    expect(!is_strict || is_right, "a server can read a body that is passed on");
    if (!message.is_complete) break;
  }
  return messages;
}

std::vector<Message> read_answers(std::string_view bytes, const std::vector<std::string>& methods) {
  std::vector<Message> messages;
  std::array<HeaderView, net::kHeadersMax> headers;
  for (const std::string& method : methods) {
    net::ResponseParser parser{headers};
    parser.expect_answer_to(method);
    const net::HeadParse parsed = take_head(parser, bytes);
    if (parsed.state != State::complete) break;
    Message& message = messages.emplace_back();
    message.status = parser.head().status;
    copy_head(message, parser.head());
    bytes.remove_prefix(parsed.head_bytes);
    const bool is_right = take_body(message, bytes);
    // Who stops sending has sent all, by this framing.
    if (message.framing.kind == Kind::until_close) message.is_complete = true;
    if (!is_right || !message.is_complete) break;
  }
  return messages;
}

std::optional<Message> take_answer(std::string_view& bytes, std::string_view method) {
  std::array<HeaderView, net::kHeadersMax> headers;
  net::ResponseParser parser{headers};
  parser.expect_answer_to(method);
  const net::HeadParse parsed = take_head(parser, bytes);
  expect(parsed.state != State::fault, "a client can read its answer");
  if (parsed.state == State::need_more) {
    bytes = {};
    return std::nullopt;
  }
  Message message;
  message.status = parser.head().status;
  copy_head(message, parser.head());
  expect_plain_lines(bytes.substr(0, parsed.head_bytes));
  expect_one_framing(message);
  bytes.remove_prefix(parsed.head_bytes);
  expect(take_body(message, bytes), "a client can read the body of its answer");
  return message;
}

}  // namespace sluice::fuzz
