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
    result.storage_.v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    std::memcpy(&result.storage_.v4.sin_addr, address.bytes.data(),
                sizeof result.storage_.v4.sin_addr);
    result.size_ = sizeof result.storage_.v4;
  } else {
    result.storage_.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    std::memcpy(&result.storage_.v6.sin6_addr, address.bytes.data(),
                sizeof result.storage_.v6.sin6_addr);
    result.size_ = sizeof result.storage_.v6;
  }
  return result;
}

std::optional<SocketAddress> SocketAddress::of_path(std::string_view path) noexcept {
  SocketAddress result;
  result.storage_.local = {.sun_family = AF_UNIX};
  const bool fits =
      path.size() < sizeof result.storage_.local.sun_path;  // with the zero at its end
  if (path.empty() || !fits || path.find('\0') != std::string_view::npos) return std::nullopt;
  std::copy(path.begin(), path.end(), result.storage_.local.sun_path);
  result.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return result;
}

IpAddress SocketAddress::ip() const noexcept {
  if (family() == AF_INET) return IpAddress::v4(ntohl(storage_.v4.sin_addr.s_addr));
  if (family() != AF_INET6) return {};
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &storage_.v6.sin6_addr, bytes.size());
  return IpAddress::v6(bytes);
}

std::uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(storage_.v4.sin_port);
  return family() == AF_INET6 ? ntohs(storage_.v6.sin6_port) : std::uint16_t{0};
}

std::string_view SocketAddress::path() const noexcept {
  constexpr std::size_t kBefore = offsetof(sockaddr_un, sun_path);
  if (family() != AF_UNIX || size_ <= kBefore) return {};
  return {storage_.local.sun_path, ::strnlen(storage_.local.sun_path, size_ - kBefore)};
}

}  // namespace sluice::net
