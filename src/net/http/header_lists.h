// Headers whose values are lists, and what Connection makes of the other headers.
//
// Views into the caller's headers; no allocation.
#pragma once

#include <sluice/request.h>

#include <optional>
#include <span>
#include <string_view>

namespace sluice::net {

// Takes elements off the front of "a, b,, c", one by one: trimmed, empty ones left out. Knows no
// quotes: for lists of tokens.
class ListWalk {
 public:
  explicit ListWalk(std::string_view value) noexcept : rest_(value) {}
  // Nothing: there are no more.
  [[nodiscard]] std::optional<std::string_view> next() noexcept;

 private:
  std::string_view rest_;
};

// Whether every element is a token. A list of nothing is one.
[[nodiscard]] bool is_token_list(std::string_view value) noexcept;

// Whether an element equals the token, which is given in lower case.
[[nodiscard]] bool list_contains(std::string_view value, std::string_view lower_token) noexcept;

// Headers that servers take for the word of a proxy: for whom a request is (X-Forwarded-*,
// Forwarded and their like), which one it is, or which other path it is about.
[[nodiscard]] bool is_word_of_proxies(std::string_view name) noexcept;

// All options of all Connection lines.
class ConnectionOptions {
 public:
  explicit ConnectionOptions(std::span<const HeaderView> headers) noexcept : headers_(headers) {}
  // Nothing: there are no more.
  [[nodiscard]] std::optional<std::string_view> next() noexcept;

 private:
  std::span<const HeaderView> headers_;  // not yet looked at
  ListWalk options_{{}};
};

// Whether an option is about the connection itself and names no header: close, keep-alive, and the
// options of hop-by-hop headers: upgrade, te, http2-settings, ...
[[nodiscard]] bool is_plain_option(std::string_view option) noexcept;

// Headers that stay although a Connection line names them: a client could otherwise have a proxy
// take away what the server behind it relies on.
[[nodiscard]] bool is_kept_from_connection(std::string_view name) noexcept;

// Whether a header is hop-by-hop: always, or because a Connection line among `all` names it.
[[nodiscard]] bool is_hop_by_hop(std::string_view name, std::span<const HeaderView> all) noexcept;

// Whether a trailer is forbidden: it frames, routes or authorises the message, which has to be
// known before its body.
[[nodiscard]] bool is_forbidden_trailer(std::string_view name) noexcept;

}  // namespace sluice::net
