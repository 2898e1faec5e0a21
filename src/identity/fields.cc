#include "identity/fields.h"

#include "base/characters.h"
#include "identity/headers.h"

namespace sluice::identity {
namespace {

// Takes all up to the separator off the front, and the separator.
std::string_view take_until(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return taken;
}

}  // namespace

char take_decoded(std::string_view& text) noexcept {
  if (const std::optional<char> decoded = decode_percent(text)) {
    text.remove_prefix(3);
    return *decoded;
  }
  const char c = text.front();
  text.remove_prefix(1);
  return c == '+' ? ' ' : c;
}

std::optional<Field> take_query_field(std::string_view& query) noexcept {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    if (value.empty()) continue;
    const std::string_view name = take_until(value, '=');
    return Field{.name = name, .value = value};
  }
  return std::nullopt;
}

std::optional<Field> take_cookie(std::string_view& line) noexcept {
  while (!line.empty()) {
    const std::string_view pair = take_until(line, ';');
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    return Field{.name = trimmed(pair.substr(0, equals)),
                 .value = trimmed(pair.substr(equals + 1))};
  }
  return std::nullopt;
}

Decoded decode_field(std::string_view sent, std::span<char> scratch) noexcept {
  if (sent.find_first_of("%+") == std::string_view::npos) return {.text = sent};
  std::size_t size = 0;
  while (!sent.empty() && size < scratch.size()) scratch[size++] = take_decoded(sent);
  return {.text = {scratch.data(), size}, .whole = sent.empty()};
}

bool decodes_to(std::string_view sent, std::string_view plain) noexcept {
  for (const char c : plain) {
    if (sent.empty() || take_decoded(sent) != c) return false;
  }
  return sent.empty();
}

std::optional<std::string_view> find_cookie(std::span<const HeaderView> headers,
                                            std::string_view name) noexcept {
  for (const HeaderView& header : headers) {
    if (!is_named(header, "cookie")) continue;
    std::string_view line = header.value;
    while (const std::optional<Field> cookie = take_cookie(line)) {
      if (cookie->name == name) return cookie->value;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> find_query_field(std::string_view query, std::string_view name,
                                                 std::span<char> scratch) noexcept {
  while (const std::optional<Field> field = take_query_field(query)) {
    if (!decodes_to(field->name, name)) continue;
    const Decoded value = decode_field(field->value, scratch);
    return value.whole ? std::optional{value.text} : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sluice::identity
