// Boost.Beast's parser as a second opinion: whatever we accept, it must read the same.
//
// It accepts much that we refuse, and refuses one thing that we accept: see is_beast_stricter().
#pragma once

#include "net/http/http_fixture.h"

#include <boost/beast/http.hpp>
#include <boost/optional.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace sluice::net::fixture {

namespace http = boost::beast::http;

inline std::string lower_case(std::string_view text) {
  std::string copy{text};
  std::transform(copy.begin(), copy.end(), copy.begin(), lower);
  return copy;
}

// Beast keeps headers of one name together, in the order in which they came; so does this.
inline std::string describe_lines(const std::multimap<std::string, std::string>& lines) {
  std::string text;
  for (const auto& [name, whole] : lines) text += whole;
  return text;
}

inline std::string describe_lines(const MessageHead& head) {
  std::multimap<std::string, std::string> lines;
  for (const HeaderView& one : head.headers) {
    lines.emplace(lower_case(one.name), line(one.name, one.value));
  }
  return describe_lines(lines);
}

inline std::string describe_lines(const http::fields& fields) {
  std::multimap<std::string, std::string> lines;
  for (const auto& one : fields) {
    const std::string name{one.name_string()};
    lines.emplace(lower_case(name), line(name, std::string{one.value()}));
  }
  return describe_lines(lines);
}

// As both understand it: what says how long the body is.
template <class Parser>
std::string framing_of_beast(const Parser& parser) {
  if (parser.chunked()) return "chunked";
  if (parser.content_length()) return "length " + std::to_string(*parser.content_length());
  return parser.need_eof() ? "until close" : "none";
}

template <class Parser>
std::string read_by_beast(Parser& parser, std::string_view bytes) {
  parser.header_limit(1U << 30U);
  parser.body_limit(boost::none);
  boost::beast::error_code error;
  const std::size_t read = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error) return "refused: " + error.message();
  if (!parser.is_header_done()) return "needs more";
  return "complete at " + std::to_string(read) + ", " + framing_of_beast(parser);
}

inline std::string request_by_beast(std::string_view head_bytes) {
  http::request_parser<http::empty_body> parser;
  std::string outcome = read_by_beast(parser, head_bytes);
  if (!outcome.starts_with("complete")) return outcome;
  return outcome + "\n" + std::string{parser.get().method_string()} + " " +
         std::string{parser.get().target()} + "\n" + describe_lines(parser.get().base());
}

inline std::string response_by_beast(std::string_view head_bytes) {
  http::response_parser<http::empty_body> parser;
  std::string outcome = read_by_beast(parser, head_bytes);
  if (!outcome.starts_with("complete")) return outcome;
  return outcome + "\n" + std::to_string(parser.get().result_int()) + " " +
         std::string{parser.get().reason()} + "\n" + describe_lines(parser.get().base());
}

inline std::string as_beast_says_it(const RequestHead& head, std::size_t head_bytes) {
  return "complete at " + std::to_string(head_bytes) + ", " + describe(head.body) + "\n" +
         std::string{head.method} + " " + std::string{head.target} + "\n" + describe_lines(head);
}

// "HTTP/1.1 200" without the space that should follow; some servers send it, and there is only one
// way to understand it.
inline bool is_beast_stricter(std::string_view response) {
  return response.substr(0, response.find('\r')).size() == std::string_view{"HTTP/1.1 200"}.size();
}

// Asked for an empty reason, Beast tells what the status is usually called.
inline std::string_view reason_by_beast(const ResponseHead& head) {
  if (!head.reason.empty()) return head.reason;
  const auto usual = http::obsolete_reason(static_cast<http::status>(head.status));
  return {usual.data(), usual.size()};
}

inline std::string as_beast_says_it(const ResponseHead& head, std::size_t head_bytes) {
  return "complete at " + std::to_string(head_bytes) + ", " + describe(head.body) + "\n" +
         std::to_string(head.status) + " " + std::string{reason_by_beast(head)} + "\n" +
         describe_lines(head);
}

// The data of a chunked body, behind a head that announces it.
inline std::string body_by_beast(std::string_view chunks) {
  http::request_parser<http::string_body> parser;
  parser.eager(true);
  const std::string bytes =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string{chunks};
  std::string outcome = read_by_beast(parser, bytes);
  if (!outcome.starts_with("complete")) return outcome;
  return (parser.is_done() ? "done\n" : "not done\n") + parser.get().body();
}

}  // namespace sluice::net::fixture
