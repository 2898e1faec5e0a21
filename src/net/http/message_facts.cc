#include "net/http/message_facts.h"

#include "net/http/characters.h"
#include "net/http/header_lists.h"
#include "net/http/host.h"

#include <limits>
#include <optional>

namespace sluice::net {
namespace {

// Each forwarded header is compared with each option: more of both would cost a client little and
// us much.
constexpr std::uint8_t kOptionsMax = 32;

// Digits only, and no needless zero, which some readers take for octal.
std::optional<std::uint64_t> parse_length(std::string_view digits) noexcept {
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const std::optional<std::uint64_t> length = parse_number(digits);
  // Half of the range: readers with signed numbers must not see a negative length.
  if (!length || *length > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return length;
}

HttpFault note_content_length(MessageFacts& facts, std::string_view value) noexcept {
  if (facts.has_content_length) return bad_request("more than one Content-Length");
  const std::optional<std::uint64_t> length = parse_length(value);
  if (!length) return bad_request("Content-Length is not a plain number");
  facts.has_content_length = true;
  facts.content_length = *length;
  return kNoFault;
}

// Whether the value is a list of other codings, with chunked at its end and nowhere else.
bool is_other_coding(std::string_view value) noexcept {
  if (!is_token_list(value)) return false;
  ListWalk walk{value};
  std::size_t codings = 0;
  bool ends_in_chunked = false;
  while (const std::optional<std::string_view> coding = walk.next()) {
    if (ends_in_chunked) return false;
    ends_in_chunked = *coding == "chunked";
    ++codings;
  }
  return ends_in_chunked && codings > 1;
}

// Requests have to spell it as everybody does: a tab, a capital or a trailing space is there only
// to be read differently by two servers. Responses come from servers that were chosen.
bool is_exactly_chunked(Direction direction, const NotedLine& line) noexcept {
  if (direction == Direction::response) return equals_ignoring_case(line.header.value, "chunked");
  std::string_view value = line.raw_value;
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value == "chunked";
}

HttpFault note_transfer_encoding(MessageFacts& facts, Direction direction,
                                 const NotedLine& line) noexcept {
  if (facts.is_chunked || facts.has_other_coding) {
    return bad_request("more than one Transfer-Encoding");
  }
  if (is_exactly_chunked(direction, line)) {
    facts.is_chunked = true;
    return kNoFault;
  }
  if (!is_other_coding(line.header.value)) return bad_request("Transfer-Encoding is not chunked");
  facts.has_other_coding = true;
  return kNoFault;
}

HttpFault note_host(MessageFacts& facts, std::string_view value) noexcept {
  if (facts.has_host) return bad_request("more than one Host");
  if (!is_host(value)) return bad_request("Host is malformed");
  facts.has_host = true;
  facts.host = value;
  return kNoFault;
}

void note_option(MessageFacts& facts, std::string_view option) noexcept {
  if (is_named(option, "close")) {
    facts.closes = true;
  } else if (is_named(option, "keep-alive")) {
    facts.keeps_alive = true;
  } else if (is_named(option, "upgrade")) {
    facts.upgrades = true;
  } else if (!is_plain_option(option)) {
    facts.names_headers = true;
  }
}

HttpFault note_connection(MessageFacts& facts, std::string_view value) noexcept {
  ListWalk walk{value};
  while (const std::optional<std::string_view> option = walk.next()) {
    if (!is_token(*option)) return bad_request("Connection is malformed");
    if (++facts.options > kOptionsMax) return {431, "too many options in Connection"};
    note_option(facts, *option);
  }
  return kNoFault;
}

// It has no effect; malformed, it is as suspect as Connection.
HttpFault note_proxy_connection(std::string_view value) noexcept {
  return is_token_list(value) ? kNoFault : bad_request("Proxy-Connection is malformed");
}

void note_expect(MessageFacts& facts, std::string_view value) noexcept {
  (equals_ignoring_case(value, "100-continue") ? facts.expects_continue : facts.expects_other) =
      true;
}

HttpFault note_upgrade(MessageFacts& facts, std::string_view value) noexcept {
  if (!facts.upgrade.empty()) return bad_request("more than one Upgrade");
  facts.upgrade = value;
  return kNoFault;
}

}  // namespace

HttpFault note_known(MessageFacts& facts, Direction direction, KnownHeader known,
                     const NotedLine& line) noexcept {
  using enum KnownHeader;
  const std::string_view value = line.header.value;
  const bool is_of_requests = known == host || known == expect;
  if (is_of_requests && direction == Direction::response) return kNoFault;
  facts.restated.add(line.place);
  switch (known) {
    case connection: return note_connection(facts, value);
    case content_length: return note_content_length(facts, value);
    case expect: note_expect(facts, value); return kNoFault;
    case host: return note_host(facts, value);
    case proxy_connection: return note_proxy_connection(value);
    case te: facts.accepts_trailers |= list_contains(value, "trailers"); return kNoFault;
    case transfer_encoding: return note_transfer_encoding(facts, direction, line);
    case upgrade: return note_upgrade(facts, value);
    case http2_settings:
    case keep_alive:
    case proxy_authenticate:
    case proxy_authorization:
    case trailer:
    case other: return kNoFault;
  }
  return kNoFault;
}

HttpFault announced_body(const MessageFacts& facts, int minor_version, BodyFraming& body) noexcept {
  const bool has_coding = facts.is_chunked || facts.has_other_coding;
  if (has_coding && facts.has_content_length) {
    return bad_request("both Transfer-Encoding and Content-Length");
  }
  if (has_coding && minor_version == 0) return bad_request("Transfer-Encoding in HTTP/1.0");
  if (facts.has_other_coding) return {501, "a transfer coding other than chunked"};
  if (facts.is_chunked) body = {.kind = BodyFraming::Kind::chunked};
  if (facts.has_content_length) {
    body = {.kind = BodyFraming::Kind::length, .length = facts.content_length};
  }
  return kNoFault;
}

void state_common(const MessageFacts& facts, MessageHead& head) noexcept {
  const bool is_newer = head.minor_version == 1;
  head.restated = facts.restated;
  head.connection_names_headers = facts.names_headers;
  head.keep_alive = !facts.closes && (is_newer || facts.keeps_alive);
  // Without the option, or from HTTP/1.0, an Upgrade line has come through a proxy by mistake.
  head.upgrade = facts.upgrades && is_newer ? facts.upgrade : std::string_view{};
}

}  // namespace sluice::net
