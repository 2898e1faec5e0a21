#include "identity/fields.h"

#include "base/characters.h"
#include "identity/headers.h"

namespace sluice::identity {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Takes all up to the separator off the front, and the separator.
std::string_view take_until(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == kNone ? rest.size() : end + 1);
  return taken;
}

bool decodes_to(std::string_view encoded, std::string_view plain) noexcept {
  for (const char c : plain) {
    if (encoded.empty() || take_decoded(encoded) != c) return false;
  }
  return encoded.empty();
}

std::optional<std::string_view> decoded(std::string_view text, std::span<char> scratch) noexcept {
  if (text.find_first_of("%+") == kNone) return text;
  std::size_t size = 0;
  while (!text.empty()) {
    if (size == scratch.size()) return std::nullopt;
    scratch[size++] = take_decoded(text);
  }
  return std::string_view{scratch.data(), size};
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

std::optional<std::string_view> find_cookie(std::span<const HeaderView> headers,
                                            std::string_view name) noexcept {
  for (const HeaderView& line : headers) {
    if (!is_named(line, "cookie")) continue;
    std::string_view rest = line.value;
    while (!rest.empty()) {
      std::string_view pair = take_until(rest, ';');
      const std::size_t equals = pair.find('=');
      if (equals == kNone || trimmed(pair.substr(0, equals)) != name) continue;
      return trimmed(pair.substr(equals + 1));
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> find_query_field(std::string_view query, std::string_view name,
                                                 std::span<char> scratch) noexcept {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    if (value.empty()) continue;
    const std::string_view field = take_until(value, '=');
    if (decodes_to(field, name)) return decoded(value, scratch);
  }
  return std::nullopt;
}

}  // namespace sluice::identity
