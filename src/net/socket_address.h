// Addresses as the operating system takes and gives them.
#pragma once

#include <sluice/address.h>

#include <cstdint>
#include <netinet/in.h>
#include <optional>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

namespace sluice::net {

class SocketAddress {
 public:
  // No address yet: room for the operating system to write one.
  SocketAddress() noexcept = default;

  [[nodiscard]] static SocketAddress of(const IpAddress& address, std::uint16_t port) noexcept;
  // Nothing if the path is empty, too long or holds a zero.
  [[nodiscard]] static std::optional<SocketAddress> of_path(std::string_view path) noexcept;

  [[nodiscard]] int family() const noexcept { return storage_.any.sa_family; }
  [[nodiscard]] bool is_ip() const noexcept { return family() == AF_INET || family() == AF_INET6; }
  // Of IP addresses; otherwise 0.0.0.0 and 0.
  [[nodiscard]] IpAddress ip() const noexcept;
  [[nodiscard]] std::uint16_t port() const noexcept;
  // Of Unix sockets; otherwise, and for unnamed ones, empty.
  [[nodiscard]] std::string_view path() const noexcept;

  [[nodiscard]] const sockaddr* get() const noexcept { return &storage_.any; }
  [[nodiscard]] sockaddr* get() noexcept { return &storage_.any; }
  [[nodiscard]] socklen_t size() const noexcept { return size_; }
  [[nodiscard]] socklen_t* size() noexcept { return &size_; }

 private:
  union Storage {
    sockaddr any;  // of which all have the family
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_un local;
  };
  Storage storage_{.any = {}};
  socklen_t size_ = sizeof(sockaddr_un);  // the largest
};

// Who is at the other end of a connection.
struct Peer {
  IpAddress address;  // of a Unix socket 0.0.0.0
  std::uint16_t port = 0;
  bool is_local = false;  // came through a Unix socket

  [[nodiscard]] static Peer of(const SocketAddress& address) noexcept {
    return {.address = address.ip(), .port = address.port(), .is_local = !address.is_ip()};
  }
};

}  // namespace sluice::net
