// A request as a handler of the server sees it. Plain data.
#pragma once

#include <sluice/address.h>
#include <sluice/request.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::net {

struct PathParameter {
  std::string_view name;  // as the pattern has it
  std::string value;      // decoded
};

// Views into the connection's buffer, valid until the response is sent.
struct HttpRequest {
  std::string_view method;
  std::string_view path;   // not decoded, without the query
  std::string_view query;  // behind the ?, not decoded
  std::string_view host;
  std::span<const HeaderView> headers;
  std::string_view body;
  bool is_local = false;  // came through a Unix socket

  std::string_view target;                    // path and query
  std::string_view route;                     // pattern of the route; empty: no matching route
  std::span<const PathParameter> parameters;  // of that pattern
  IpAddress address{};                        // of the client; 0.0.0.0 behind a Unix socket
  bool is_tls = false;
  std::string_view tls_subject;  // of the client's certificate, if one was verified

  // The first header of that name, in any case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Of a name in the pattern; empty for any other.
  [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
  // Whether a word stands in the query, with or without a value.
  [[nodiscard]] bool asks_for(std::string_view word) const noexcept;
  // The first value of that name in the query, decoded: %xx, and + for a space. Nothing if the name
  // is not there (asks_for tells), or its value cannot be decoded.
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;
};

// What an escaped text stands for. Nothing if a % is followed by no two hexadecimal digits, or if
// the result is no UTF-8 or has control characters.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace sluice::net
