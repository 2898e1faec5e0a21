#include "net/socket_address.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

namespace sluice::net {

SocketAddress SocketAddress::of(const IpAddress& address, std::uint16_t port) noexcept {
  SocketAddress result;
  if (address.is_v4) {
    result.v4_ = {.sin_family = AF_INET, .sin_port = htons(port)};
    std::memcpy(&result.v4_.sin_addr, address.bytes.data(), sizeof result.v4_.sin_addr);
    result.size_ = sizeof result.v4_;
  } else {
    result.v6_ = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    std::memcpy(&result.v6_.sin6_addr, address.bytes.data(), sizeof result.v6_.sin6_addr);
    result.size_ = sizeof result.v6_;
  }
  return result;
}

std::optional<SocketAddress> SocketAddress::of_path(std::string_view path) noexcept {
  SocketAddress result;
  result.local_ = {.sun_family = AF_UNIX};
  const bool fits = path.size() < sizeof result.local_.sun_path;  // with the zero at its end
  if (path.empty() || !fits || path.find('\0') != std::string_view::npos) return std::nullopt;
  std::copy(path.begin(), path.end(), result.local_.sun_path);
  result.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return result;
}

IpAddress SocketAddress::ip() const noexcept {
  if (family() == AF_INET) return IpAddress::v4(ntohl(v4_.sin_addr.s_addr));
  if (family() != AF_INET6) return {};
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &v6_.sin6_addr, bytes.size());
  return IpAddress::v6(bytes);
}

std::uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(v4_.sin_port);
  return family() == AF_INET6 ? ntohs(v6_.sin6_port) : std::uint16_t{0};
}

std::string_view SocketAddress::path() const noexcept {
  constexpr std::size_t kBefore = offsetof(sockaddr_un, sun_path);
  if (family() != AF_UNIX || size_ <= kBefore) return {};
  return {local_.sun_path, ::strnlen(local_.sun_path, size_ - kBefore)};
}

}  // namespace sluice::net
