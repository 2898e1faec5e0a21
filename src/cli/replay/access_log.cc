#include "cli/replay/access_log.h"

#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/client_ip.h"
#include "identity/flat_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace sluice::cli {
namespace {

tl::unexpected<Diagnostic> no_combined(std::string_view what) {
  return mistake(fmt::format("{} cannot be read", what),
                 "a line looks like: 192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" "
                 "200 512 \"-\" \"agent\"");
}

// The field up to a character, which is skipped, too.
std::optional<std::string_view> cut(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return field;
}

// Quoted, with \" and \x22 inside; the closing quote is skipped. What is escaped stays as it is,
// but for the quote itself: paths are normalised later.
std::optional<std::string> cut_quoted(std::string_view& rest) {
  if (!rest.starts_with('"')) return std::nullopt;
  std::string text;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return text;
    }
    if (rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\')) ++i;
    text += rest[i];
  }
  return std::nullopt;
}

// 10/Oct/2000:13:55:36 -0700, as RFC 3339 writes it.
Parsed<WallTime> parse_log_time(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  constexpr std::size_t kSize = 26;
  const bool shaped = text.size() == kSize && text[2] == '/' && text[6] == '/' && text[11] == ':' &&
                      text[20] == ' ' && (text[21] == '+' || text[21] == '-');
  const auto month = shaped ? std::ranges::find(kMonths, text.substr(3, 3)) : kMonths.end();
  if (month == kMonths.end()) return no_combined(fmt::format("the time {}", quoted(text)));
  return parse_rfc3339(fmt::format("{}-{:02}-{}T{}{}:{}", text.substr(7, 4),
                                   month - kMonths.begin() + 1, text.substr(0, 2),
                                   text.substr(12, 8), text.substr(21, 3), text.substr(24, 2)));
}

std::string text_of(std::string_view logged) {
  return logged == "-" ? std::string{} : std::string{logged};
}

// Names with values: {"headers":{"x-plan":"free"}} and the like.
void take_maps(const identity::FlatJson& json, LoggedRequest& request) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const std::array<std::pair<std::string_view, Pairs*>, 5> maps{
      {{"headers.", &request.headers},
       {"cookies.", &request.cookies},
       {"claims.", &request.claims},
       {"descriptor.", &request.descriptor},
       {"response_headers.", &request.response_headers}}};
  for (std::size_t i = 0; i < json.size(); ++i) {
    const identity::FlatJson::Member member = json.at(i);
    for (const auto& [prefix, to] : maps) {
      if (!member.name.starts_with(prefix)) continue;
      to->emplace_back(member.name.substr(prefix.size()), member.value);
    }
  }
}

// 12.345ms, which is exact to the microsecond.
std::optional<Nanos> parse_milliseconds(std::string_view text) {
  if (!text.ends_with("ms")) return std::nullopt;
  text.remove_suffix(2);
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos || text.size() != point + 4) return std::nullopt;
  const auto millis = parse_number(text.substr(0, point));
  const auto micros = parse_number(text.substr(point + 1));
  constexpr std::uint64_t kMost = 86'400'000;  // a day
  if (!millis || !micros || *millis > kMost) return std::nullopt;
  return std::chrono::milliseconds{*millis} + std::chrono::microseconds{*micros};
}

// What our own gateway writes behind the agent: how long it took, first of all, and the host.
void take_our_own(std::string_view rest, LoggedRequest& request) {
  constexpr std::string_view kHost = "host=";
  const std::optional<Nanos> duration = parse_milliseconds(rest.substr(0, rest.find(' ')));
  if (!duration) return;
  request.duration = *duration;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.starts_with("fault=")) return;  // words of its own follow
    if (word.starts_with(kHost)) request.host = word.substr(kHost.size());
  }
}

}  // namespace

LogFormat guess_format(std::string_view line) noexcept {
  const std::size_t first = line.find_first_not_of(" \t");
  const bool is_json = first != std::string_view::npos && line[first] == '{';
  return is_json ? LogFormat::json : LogFormat::combined;
}

Parsed<LoggedRequest> parse_combined(std::string_view line) {
  LoggedRequest request;
  std::string_view rest = line;
  const auto ip = cut(rest, ' ');
  const auto identity = cut(rest, ' ');
  const auto user = cut(rest, ' ');
  if (!ip || !identity || !user || !rest.starts_with('[')) return no_combined("the line");
  const auto address = parse_client_ip(*ip);
  if (!address) return no_combined(fmt::format("the address {}", quoted(*ip)));
  request.ip = *address;
  request.user = text_of(*user);
  rest.remove_prefix(1);
  const auto time = cut(rest, ']');
  if (!time || !rest.starts_with(' ')) return no_combined("the time");
  const Parsed<WallTime> at = parse_log_time(*time);
  if (!at) return tl::unexpected(at.error());
  request.at = *at;
  rest.remove_prefix(1);

  const auto asked = cut_quoted(rest);
  if (!asked || !rest.starts_with(' ')) return no_combined("the request");
  rest.remove_prefix(1);
  std::string_view words = *asked;
  const auto method = cut(words, ' ');
  if (method) {
    request.method = *method;
    request.target = words.substr(0, words.rfind(" HTTP/"));
  } else {
    request.is_request = false;
  }
  const auto status = parse_number(rest.substr(0, rest.find(' ')));
  if (!status || *status > 999) return no_combined("the status");
  request.status = static_cast<std::uint16_t>(*status);
  // Bytes, referer and agent follow, or not: rules can ask for the last two.
  (void)cut(rest, ' ');
  (void)cut(rest, ' ');
  for (const char* name : {"referer", "user-agent"}) {
    const auto value = cut_quoted(rest);
    if (!value) break;
    if (*value != "-") request.headers.emplace_back(name, *value);
    if (rest.starts_with(' ')) rest.remove_prefix(1);
  }
  take_our_own(rest, request);
  return request;
}

Parsed<LoggedRequest> parse_json_line(std::string_view line) {
  identity::FlatJson json;
  const identity::JsonFault fault = json.parse(line, {.bytes_max = 64U << 10U});
  if (!fault.ok()) {
    return mistake(fmt::format("column {}: {}", fault.at + 1, fault.what),
                   "write one JSON object a line");
  }
  LoggedRequest request;
  const std::string_view time = json.find("time");
  if (time.empty()) return mistake("there is no 'time'", "write it as in RFC 3339");
  const Parsed<WallTime> at = parse_rfc3339(time);
  if (!at) return tl::unexpected(at.error());
  request.at = *at;
  if (const std::string_view ip = json.find("ip"); !ip.empty()) {
    const auto address = parse_client_ip(ip);
    if (!address) return mistake(fmt::format("'ip' is {}, which is no address", quoted(ip)));
    request.ip = *address;
  }
  const auto take = [&json](std::string_view name, std::string& to) {
    if (const std::string_view value = json.find(name); !value.empty()) to = value;
  };
  request.is_request = json.find("malformed") != "true";
  request.through_trusted = json.find("through_trusted") == "true";
  take("domain", request.domain);
  take("method", request.method);
  take("host", request.host);
  take("target", request.target);
  take("user", request.user);
  take("api_key", request.api_key);
  take("tenant", request.tenant);
  take("tier", request.tier);
  take("country", request.country);
  const auto number = [&json](std::string_view name, std::uint64_t max) -> Parsed<std::uint64_t> {
    const std::string_view value = json.find(name);
    if (value.empty()) return 0;
    const auto parsed = parse_number(value);
    if (parsed && *parsed <= max) return *parsed;
    return mistake(
        fmt::format("'{}' is {}, which is no number up to {}", name, quoted(value), max));
  };
  const auto status = number("status", 999);
  const auto duration = number("duration_ns", 86'400'000'000'000);
  const auto asn = number("asn", 0xffff'ffff);
  for (const auto* one : {&status, &duration, &asn}) {
    if (!*one) return tl::unexpected(one->error());
  }
  request.status = static_cast<std::uint16_t>(*status);
  request.duration = Nanos{static_cast<std::int64_t>(*duration)};
  request.asn = static_cast<std::uint32_t>(*asn);
  if (!json.find("grpc_status").empty()) {
    const auto grpc_status = number("grpc_status", 16);
    if (!grpc_status) return tl::unexpected(grpc_status.error());
    request.grpc_status = static_cast<std::uint8_t>(*grpc_status);
  }
  take_maps(json, request);
  return request;
}

}  // namespace sluice::cli
