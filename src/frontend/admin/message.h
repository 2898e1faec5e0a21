// A question of an operator, and the answer. Plain data.
#pragma once

#include <sluice/request.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::admin {

// Views into the buffer of the connection, good until it is answered.
struct Request {
  std::string_view method;
  std::string_view path;   // without the query
  std::string_view query;  // behind the question mark
  std::string_view host;
  std::span<const HeaderView> headers;
  std::string_view body;
  bool is_local = false;  // came through a Unix socket

  // The first line of that name, which is given in lower case; nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  // Whether a word stands in the query, with or without a value.
  [[nodiscard]] bool asks_for(std::string_view word) const noexcept;
};

struct Reply {
  std::uint16_t status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string allow;  // of 405: the methods that are
};

[[nodiscard]] Reply plain(std::string body);
[[nodiscard]] Reply json(std::string body);
// A problem document (RFC 9457).
[[nodiscard]] Reply problem(std::uint16_t status, std::string_view detail);

}  // namespace sluice::admin
