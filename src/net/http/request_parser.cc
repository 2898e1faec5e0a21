#include "net/http/request_parser.h"

#include "net/http/request_line.h"

namespace sluice::net {
namespace {

using State = HeadParse::State;

struct RequestRules {
  static constexpr Direction kDirection = Direction::request;
  // What a client of old sends behind a body is no part of the next request.
  static constexpr bool kEmptyLineMayComeFirst = true;

  [[nodiscard]] static HttpFault line_too_long(std::string_view beginning) noexcept {
    return long_request_line(beginning);
  }
  [[nodiscard]] HttpFault parse_start_line(std::string_view line) const noexcept {
    return parse_request_line(line, head);
  }

  RequestHead& head;
};

}  // namespace

HeadParse RequestParser::parse(std::string_view bytes) noexcept {
  if (!progress_.continues(bytes)) {
    progress_.restart(bytes);
    head_.host = {};
    head_.body = {};
  }
  if (progress_.answer.state == State::need_more) progress_.answer = parse_further(bytes);
  return progress_.answer;
}

HeadParse RequestParser::parse_further(std::string_view bytes) noexcept {
  const HeadParse lines = read_head(progress_, bytes, limits_, headers_, RequestRules{head_});
  if (lines.state != State::complete) return lines;
  const HttpFault fault = conclude();
  return fault ? faulty(fault) : lines;
}

// The lines are all there: what do they say together?
HttpFault RequestParser::conclude() noexcept {
  const MessageFacts& facts = progress_.facts;
  const bool is_newer = head_.minor_version == 1;
  head_.headers = headers_.first(progress_.cursor.count);
  if (is_newer && !facts.has_host) return bad_request("no Host");
  if (const HttpFault fault = announced_body(facts, head_.minor_version, head_.body)) return fault;
  if (facts.expects_other) return {417, "an expectation other than 100-continue"};
  state_common(facts, head_);
  if (head_.host.empty()) head_.host = facts.host;  // else that of the target wins
  const bool has_body = head_.body.kind == BodyFraming::Kind::chunked || head_.body.length > 0;
  head_.expects_continue = facts.expects_continue && has_body && is_newer;
  head_.accepts_trailers = facts.accepts_trailers;
  return {};
}

}  // namespace sluice::net
