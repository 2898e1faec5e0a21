// The elements of X-Forwarded-For and Forwarded (RFC 7239), from the right to the left.
//
// Each proxy appends what it saw, so the right end comes from the nearest proxy and the left end
// possibly from the client. Reading from the right means that nothing a client wrote can
// hide what a proxy appended: an unbalanced quote on the left breaks only the elements on the left.
// Pure functions on views; no allocation.
#pragma once

#include <sluice/address.h>

#include <optional>
#include <string_view>

namespace sluice::identity {

// "1.2.3.4", "1.2.3.4:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"; spaces around it do
// not matter. The port is checked and dropped.
[[nodiscard]] std::optional<IpAddress> parse_forwarded_for_element(std::string_view text) noexcept;

// The address in `for` of one element: for=1.2.3.4;proto=http, for="[2001:db8::1]:80". Nothing for
// `unknown`, for _obfuscated names, for an element without `for` or with two of them, and for what
// does not follow the grammar.
[[nodiscard]] std::optional<IpAddress> parse_forwarded_element(std::string_view text) noexcept;

// Whether the text is one element: pairs of name and value, joined by semicolons, quotes balanced.
[[nodiscard]] bool is_forwarded_element(std::string_view text) noexcept;

// Takes elements off the right end of a header's value, one by one.
class ForwardedForWalk {
 public:
  explicit ForwardedForWalk(std::string_view value) noexcept : rest_(value) {}
  // Nothing: there are no more.
  [[nodiscard]] std::optional<std::string_view> next() noexcept;

 private:
  std::optional<std::string_view> rest_;
};

// A comma inside quotes separates nothing. The shortest text at the right end that is a whole
// element is one; where none is, all that is left is returned, which then does not parse.
class ForwardedWalk {
 public:
  explicit ForwardedWalk(std::string_view value) noexcept : rest_(value) {}
  [[nodiscard]] std::optional<std::string_view> next() noexcept;

 private:
  std::optional<std::string_view> rest_;
};

}  // namespace sluice::identity
