// The headers that mean something to the codec, told apart by length and letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::net {

enum class KnownHeader : std::uint8_t {
  other,
  connection,
  content_length,
  expect,
  host,
  http2_settings,
  keep_alive,
  proxy_authenticate,
  proxy_authorization,
  proxy_connection,
  te,
  trailer,
  transfer_encoding,
  upgrade,
};

// Whether the name is the given one, which is in lower case and made of letters, digits and dashes.
// The bit that tells cases apart is set in each of those, and no other token character meets one of
// them by having it set. Both have the same length, and the name is a token.
template <std::size_t Size>
[[nodiscard]] constexpr bool is_same_name(const char* name, const char (&lower)[Size]) noexcept {
  unsigned difference = 0;
  for (std::size_t i = 0; i + 1 < Size; ++i) {
    difference |=
        (static_cast<unsigned char>(name[i]) | 0x20U) ^ static_cast<unsigned char>(lower[i]);
  }
  return difference == 0;
}

// The same of a token of any length.
template <std::size_t Size>
[[nodiscard]] constexpr bool is_named(std::string_view name, const char (&lower)[Size]) noexcept {
  return name.size() == Size - 1 && is_same_name(name.data(), lower);
}

// The name must be a token.
[[nodiscard]] constexpr KnownHeader known_header(std::string_view name) noexcept {
  using enum KnownHeader;
  const char* const text = name.data();
  switch (name.size()) {
    case 2: return is_same_name(text, "te") ? te : other;
    case 4: return is_same_name(text, "host") ? host : other;
    case 6: return is_same_name(text, "expect") ? expect : other;
    case 7:
      if (is_same_name(text, "upgrade")) return upgrade;
      return is_same_name(text, "trailer") ? trailer : other;
    case 10:
      if (is_same_name(text, "connection")) return connection;
      return is_same_name(text, "keep-alive") ? keep_alive : other;
    case 14:
      if (is_same_name(text, "content-length")) return content_length;
      return is_same_name(text, "http2-settings") ? http2_settings : other;
    case 16: return is_same_name(text, "proxy-connection") ? proxy_connection : other;
    case 17: return is_same_name(text, "transfer-encoding") ? transfer_encoding : other;
    case 18: return is_same_name(text, "proxy-authenticate") ? proxy_authenticate : other;
    case 19: return is_same_name(text, "proxy-authorization") ? proxy_authorization : other;
    default: return other;
  }
}

// Whether it would be one of these with - for _: programs behind CGI and its like cannot tell the
// two apart, and would take a length for the body that nothing else does. The name must be a token.
[[nodiscard]] constexpr bool imitates_known(std::string_view name) noexcept {
  const auto is = [&name](std::string_view known) {
    const char* at = name.data();
    for (const char wanted : known) {
      const char c = *at++;
      if ((c == '_' ? '-' : c | 0x20) != wanted) return false;
    }
    return true;
  };
  switch (name.size()) {  // most names differ at the place of the underscore
    case 10: return name[4] == '_' && is("keep-alive");
    case 14:
      return (name[7] == '_' && is("content-length")) || (name[5] == '_' && is("http2-settings"));
    case 16: return name[5] == '_' && is("proxy-connection");
    case 17: return name[8] == '_' && is("transfer-encoding");
    case 18: return name[5] == '_' && is("proxy-authenticate");
    case 19: return name[5] == '_' && is("proxy-authorization");
    default: return false;
  }
}

// Whether it concerns one connection, so that no proxy passes it on, whatever Connection says.
[[nodiscard]] constexpr bool is_hop_by_hop(KnownHeader header) noexcept {
  using enum KnownHeader;
  return header != other && header != content_length && header != expect && header != host;
}

}  // namespace sluice::net
