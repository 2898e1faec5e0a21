// Requests as gateways log them.
//
//   json       a line of JSON each, as our own gateway writes them:
//              {"time":"2026-01-01T00:00:00Z","ip":"192.0.2.1","method":"GET","host":"h",
//               "target":"/x","status":200,"duration_ns":1200000,"user":"u","api_key":"k",
//               "tenant":"t","tier":"paid","country":"NL","asn":64496,"headers":{"x-plan":"free"},
//               "cookies":{"plan":"free"},"through_trusted":true}
//              and with fields of other writers: "domain":"d","descriptor":{"key":"value"},
//              "claims":{"plan":"free"},"grpc_status":8,"response_headers":{"x-cost":"3"}
//              Only `time` is required. The client is taken from the line: it cannot be verified
//              again. "malformed":true marks a malformed request.
//   combined   nginx and Apache: ip - user [time] "GET /x HTTP/1.1" 200 123 "referer" "agent"
//              and as our own gateway goes on: 12.345ms rejected rule=api ... host=api.example.com
#pragma once

#include <sluice/address.h>
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

struct LoggedRequest {
  bool is_request = true;  // false: a malformed request, which no rule decided
  WallTime at;
  IpAddress ip;
  std::string method = "GET";
  std::string host;
  std::string target = "/";
  std::uint16_t status = 0;  // 0: unknown
  Nanos duration{0};
  std::string user;
  std::string api_key;
  std::string tenant;
  std::string tier;
  std::string country;
  std::uint32_t asn = 0;
  bool through_trusted = false;  // a proxy that is trusted passed it on
  std::string domain;
  std::optional<std::uint8_t> grpc_status;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> cookies;
  std::vector<std::pair<std::string, std::string>> claims;
  std::vector<std::pair<std::string, std::string>> descriptor;
  std::vector<std::pair<std::string, std::string>> response_headers;
};

enum class LogFormat : std::uint8_t { json, combined };

[[nodiscard]] Parsed<LoggedRequest> parse_json_line(std::string_view line);
[[nodiscard]] Parsed<LoggedRequest> parse_combined(std::string_view line);

// What the first line of a log is.
[[nodiscard]] LogFormat guess_format(std::string_view line) noexcept;

}  // namespace sluice::cli
