#include "net/http/server/http_request.h"

#include "base/characters.h"
#include "base/text.h"

#include <algorithm>

namespace sluice::net {
namespace {

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Takes "name=value" off the front of a query.
std::string_view take_pair(std::string_view& query) noexcept {
  const std::string_view pair = query.substr(0, query.find('&'));
  query.remove_prefix(std::min(pair.size() + 1, query.size()));
  return pair;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(
      headers, [name](const HeaderView& one) { return equals_ignoring_case(one.name, name); });
  return found != headers.end() ? std::optional{found->value} : std::nullopt;
}

std::string_view HttpRequest::parameter(std::string_view name) const noexcept {
  const auto found = std::ranges::find(parameters, name, &PathParameter::name);
  return found != parameters.end() ? std::string_view{found->value} : std::string_view{};
}

bool HttpRequest::asks_for(std::string_view word) const noexcept {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = take_pair(rest);
    if (pair.substr(0, pair.find('=')) == word) return true;
  }
  return false;
}

std::optional<std::string> HttpRequest::query_value(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = take_pair(rest);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    std::string value{pair.substr(std::min(equals + 1, pair.size()))};
    std::ranges::replace(value, '+', ' ');
    return percent_decoded(value);
  }
  return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    char c = text.front();
    std::size_t taken = 1;
    if (c == '%') {
      const std::optional<char> meant = decode_percent(text);
      if (!meant) return std::nullopt;
      c = *meant;
      taken = 3;
    }
    decoded += c;
    text.remove_prefix(taken);
  }
  const bool is_text =
      std::ranges::none_of(decoded, is_control) && valid_utf8_prefix(decoded) == decoded.size();
  return is_text ? std::optional{std::move(decoded)} : std::nullopt;
}

}  // namespace sluice::net
