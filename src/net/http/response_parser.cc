#include "net/http/response_parser.h"

#include "net/http/characters.h"

#include <algorithm>

namespace sluice::net {
namespace {

using State = HeadParse::State;

constexpr HttpFault bad_response(const char* why) noexcept { return {502, why}; }

bool is_status(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), is_digit) && text.front() != '0';
}

// "HTTP/1.1 200 OK". Some servers leave out the space behind the status when nothing follows it.
HttpFault parse_status_line(std::string_view line, ResponseHead& head) noexcept {
  constexpr std::size_t kShortest = 12;
  if (line.size() < kShortest || !line.starts_with("HTTP/")) {
    return bad_response("the response does not begin with a version and a status");
  }
  const std::string_view version = line.substr(0, 9);
  if (version != "HTTP/1.1 " && version != "HTTP/1.0 ") {
    return bad_response("a version other than HTTP/1.0 and HTTP/1.1");
  }
  const std::string_view status = line.substr(9, 3);
  const std::string_view rest = line.substr(kShortest);
  if (!is_status(status) || (!rest.empty() && rest.front() != ' ')) {
    return bad_response("the status is not a number of three digits");
  }
  head.minor_version = version[7] == '1' ? 1 : 0;
  head.status = static_cast<std::uint16_t>(*parse_number(status));
  head.reason = rest.empty() ? rest : rest.substr(1);
  return kNoFault;
}

struct ResponseRules {
  static constexpr Direction kDirection = Direction::response;
  static constexpr bool kEmptyLineMayComeFirst = false;

  [[nodiscard]] static HttpFault line_too_long(std::string_view /*beginning*/) noexcept {
    return bad_response("the status line is too long");
  }

  [[nodiscard]] HttpFault parse_start_line(std::string_view line) const noexcept {
    return parse_status_line(line, head);
  }

  ResponseHead& head;
};

bool is_informational(std::uint16_t status) noexcept { return status < 200; }

}  // namespace

void ResponseParser::expect_answer_to(std::string_view method) noexcept {
  answers_head_ = method == "HEAD";
  reset();
}

HeadParse ResponseParser::parse(std::string_view bytes) noexcept {
  if (!progress_.continues(bytes)) {
    progress_.restart(bytes);
    head_.body = {};
  }
  HeadParse& answer = progress_.answer;
  if (answer.state == State::need_more) answer = parse_further(bytes);
  if (answer.state == State::fault) answer.fault.status = 502;
  return answer;
}

HeadParse ResponseParser::parse_further(std::string_view bytes) noexcept {
  const HeadParse lines = read_head(progress_, bytes, limits_, headers_, ResponseRules{head_});
  if (lines.state != State::complete) return lines;
  const HttpFault fault = conclude();
  return fault ? faulty(fault) : lines;
}

HttpFault ResponseParser::conclude() noexcept {
  head_.headers = headers_.first(progress_.cursor.count);
  head_.declared_length = std::nullopt;
  if (progress_.facts.has_content_length) head_.declared_length = progress_.facts.content_length;
  if (const HttpFault fault = decide_body()) return fault;
  state_common(progress_.facts, head_);
  if (head_.body.kind == BodyFraming::Kind::until_close) head_.keep_alive = false;
  return kNoFault;
}

HttpFault ResponseParser::decide_body() noexcept {
  if (const HttpFault fault = announced_body(progress_.facts, head_.minor_version, head_.body))
    return fault;
  const bool has_coding = head_.body.kind == BodyFraming::Kind::chunked;
  if (is_informational(head_.status) && (has_coding || progress_.facts.has_content_length)) {
    return bad_response("a status that has no body announces one");
  }
  // A length of 0 is needless here, but many servers send it, and it is not ambiguous.
  if (head_.status == 204 && (has_coding || progress_.facts.content_length > 0)) {
    return bad_response("a status that has no body announces one");
  }
  const bool never_has_body =
      is_informational(head_.status) || head_.status == 204 || head_.status == 304;
  if (answers_head_ || never_has_body) {
    head_.body = {};
  } else if (head_.body.kind == BodyFraming::Kind::none) {
    head_.body = {.kind = BodyFraming::Kind::until_close};
  }
  return kNoFault;
}

}  // namespace sluice::net
