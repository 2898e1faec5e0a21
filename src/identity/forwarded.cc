#include "identity/forwarded.h"

#include "base/characters.h"
#include "base/text.h"
#include <sluice/request.h>

#include <algorithm>

namespace sluice::identity {
namespace {

constexpr bool is_token_character(char c) noexcept {
  return is_letter(c) || is_digit(c) ||
         std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
}

bool is_port(std::string_view digits) noexcept {
  const std::optional<std::uint64_t> port = parse_number(digits);
  return port && digits.size() <= 5 && *port <= 65535;
}

// RFC 7239 lets a port be hidden behind a name, too.
bool is_hidden_port(std::string_view text) noexcept {
  return text.size() > 1 && text.front() == '_' &&
         std::all_of(text.begin() + 1, text.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

// "[2001:db8::1]" with or without a port; the brackets are known to open.
std::optional<IpAddress> parse_bracketed(std::string_view text, bool hidden_ports) noexcept {
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(1, end - 1);
  const std::string_view behind = text.substr(end + 1);
  if (inside.find(':') == std::string_view::npos) return std::nullopt;
  if (!behind.empty()) {
    const std::string_view port = behind.substr(1);
    if (behind.front() != ':') return std::nullopt;
    if (!is_port(port) && !(hidden_ports && is_hidden_port(port))) return std::nullopt;
  }
  return IpAddress::parse(inside);
}

std::optional<IpAddress> parse_v4_and_port(std::string_view text, bool hidden_ports) noexcept {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (!is_port(port) && !(hidden_ports && is_hidden_port(port))) return std::nullopt;
  }
  return IpAddress::parse(text.substr(0, colon));
}

// The cursor of a small parser: each function takes what it knows off the front, or fails.
std::string_view take_token(std::string_view& rest) noexcept {
  std::size_t length = 0;
  while (length < rest.size() && is_token_character(rest[length])) ++length;
  const std::string_view token = rest.substr(0, length);
  rest.remove_prefix(length);
  return token;
}

// The inside of a quoted string, escapes as they stand; nothing if it does not end.
std::optional<std::string_view> take_quoted(std::string_view& rest) noexcept {
  for (std::size_t i = 1; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == '\\') {
      ++i;
    } else if (c == '"') {
      const std::string_view inside = rest.substr(1, i - 1);
      rest.remove_prefix(i + 1);
      return inside;
    }
  }
  return std::nullopt;
}

struct Pair {
  std::string_view name;
  std::string_view value;
};

std::optional<Pair> take_pair(std::string_view& rest) noexcept {
  const std::string_view name = take_token(rest);
  if (name.empty() || rest.empty() || rest.front() != '=') return std::nullopt;
  rest.remove_prefix(1);
  if (!rest.empty() && rest.front() == '"') {
    const std::optional<std::string_view> value = take_quoted(rest);
    if (!value) return std::nullopt;
    return Pair{name, *value};
  }
  const std::string_view value = take_token(rest);
  if (value.empty()) return std::nullopt;
  return Pair{name, value};
}

struct Element {
  bool valid = false;
  unsigned fors = 0;
  std::string_view node;  // value of the last `for`
};

Element parse_element(std::string_view text) noexcept {
  Element element;
  std::string_view rest = trimmed(text);
  if (rest.empty()) return {};
  while (true) {
    const std::optional<Pair> pair = take_pair(rest);
    if (!pair) return {};
    if (equals_ignoring_case(pair->name, "for")) {
      ++element.fors;
      element.node = pair->value;
    }
    rest = trimmed(rest);
    if (rest.empty()) break;
    if (rest.front() != ';') return {};
    rest = trimmed(rest.substr(1));
    if (rest.empty()) break;  // a semicolon at the end is allowed
  }
  element.valid = true;
  return element;
}

// Takes the text behind the comma off; without a comma, all of it.
std::string_view cut_at(std::optional<std::string_view>& rest, std::size_t comma) noexcept {
  const std::string_view all = *rest;
  if (comma == std::string_view::npos) {
    rest = std::nullopt;
    return all;
  }
  rest = all.substr(0, comma);
  return all.substr(comma + 1);
}

}  // namespace

std::optional<IpAddress> parse_forwarded_for_element(std::string_view text) noexcept {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  if (text.front() == '[') return parse_bracketed(text, false);
  if (std::count(text.begin(), text.end(), ':') > 1) return IpAddress::parse(text);
  return parse_v4_and_port(text, false);
}

bool is_forwarded_element(std::string_view text) noexcept { return parse_element(text).valid; }

std::optional<IpAddress> parse_forwarded_element(std::string_view text) noexcept {
  const Element element = parse_element(text);
  if (!element.valid || element.fors != 1 || element.node.empty()) return std::nullopt;
  if (element.node.front() == '[') return parse_bracketed(element.node, true);
  return parse_v4_and_port(element.node, true);
}

std::optional<std::string_view> ForwardedForWalk::next() noexcept {
  if (!rest_) return std::nullopt;
  return cut_at(rest_, rest_->rfind(','));
}

std::optional<std::string_view> ForwardedWalk::next() noexcept {
  // Every failed try reads the text behind the comma once more. No proxy needs many.
  constexpr int kTriesMax = 8;
  if (!rest_) return std::nullopt;
  std::size_t comma = rest_->rfind(',');
  for (int i = 0; i < kTriesMax; ++i) {
    if (comma == std::string_view::npos || is_forwarded_element(rest_->substr(comma + 1))) {
      return cut_at(rest_, comma);
    }
    comma = comma == 0 ? std::string_view::npos : rest_->rfind(',', comma - 1);
  }
  return cut_at(rest_, std::string_view::npos);
}

}  // namespace sluice::identity
