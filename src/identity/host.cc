#include "identity/host.h"

#include "base/characters.h"
#include "base/text.h"
#include <sluice/address.h>

#include <algorithm>
#include <array>

namespace sluice::identity {
namespace {

constexpr bool is_host_character(char c) noexcept {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
}

// ":" and up to five digits, or only the colon, or nothing.
bool is_port_part(std::string_view text) noexcept {
  if (text.empty()) return true;
  if (text.front() != ':' || text.size() > 6) return false;
  return std::all_of(text.begin() + 1, text.end(), is_digit);
}

bool is_v6(std::string_view text) noexcept {
  return text.find(':') != std::string_view::npos && IpAddress::parse(text).has_value();
}

// Most hosts are written as they should be: lower case, no port, no empty label. Those are used
// where they stand.
bool is_normal(std::string_view host) noexcept {
  constexpr std::array<bool, 256> kNormal = [] {
    std::array<bool, 256> normal{};
    for (unsigned i = 0; i < normal.size(); ++i) {
      const char c = static_cast<char>(i);
      normal[i] = (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
    }
    return normal;
  }();
  char previous = '.';
  for (const char c : host) {
    if (!kNormal[static_cast<unsigned char>(c)] && (c != '.' || previous == '.')) return false;
    previous = c;
  }
  return previous != '.' || host.empty();
}

}  // namespace

std::optional<std::string_view> normalise_host(std::string_view host,
                                               std::span<char> scratch) noexcept {
  if (host.size() <= scratch.size() && is_normal(host)) return host;
  const std::size_t user = host.rfind('@');
  if (user != std::string_view::npos) host.remove_prefix(user + 1);
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos || !is_port_part(host.substr(end + 1))) return std::nullopt;
    if (!is_v6(host.substr(1, end - 1))) return std::nullopt;
    host = host.substr(0, end + 1);
  } else {
    const std::size_t colon = host.find(':');
    if (colon != std::string_view::npos && !is_port_part(host.substr(colon))) return std::nullopt;
    host = host.substr(0, colon);
    if (host.ends_with('.')) host.remove_suffix(1);
    if (!std::all_of(host.begin(), host.end(), is_host_character)) return std::nullopt;
    if (host.starts_with('.') || host.ends_with('.') || host.find("..") != std::string_view::npos) {
      return std::nullopt;  // an empty label
    }
  }
  if (host.size() > scratch.size()) return std::nullopt;
  std::transform(host.begin(), host.end(), scratch.begin(), lower);
  return std::string_view{scratch.data(), host.size()};
}

}  // namespace sluice::identity
