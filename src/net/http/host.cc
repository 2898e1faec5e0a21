#include "net/http/host.h"

#include "net/http/characters.h"
#include <sluice/address.h>

namespace sluice::net {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool is_port(std::string_view digits) noexcept {
  unsigned port = 0;
  for (const char c : digits.substr(0, 5)) {
    if (!is_digit(c)) return false;
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  return !digits.empty() && digits.size() <= 5 && port <= 65535;
}

// How long the host without its port is; 0 if there is none at the front of the text.
std::size_t host_size(std::string_view text) noexcept {
  if (!text.starts_with('[')) return find_not_a(host_character, text);
  const std::size_t end = text.find(']');
  if (end == kNone) return 0;
  const std::string_view inside = text.substr(1, end - 1);
  const bool is_v6 = inside.find(':') != kNone && IpAddress::parse(inside).has_value();
  return is_v6 ? end + 1 : 0;
}

}  // namespace

bool is_host(std::string_view text) noexcept {
  const std::size_t size = host_size(text);
  if (size == 0 || size == text.size()) return size != 0;
  return text[size] == ':' && is_port(text.substr(size + 1));
}

bool is_host_with_port(std::string_view text) noexcept {
  return is_host(text) && host_size(text) < text.size();
}

}  // namespace sluice::net
