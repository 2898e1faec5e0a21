// The PROXY protocol, versions 1 and 2: the client behind a load balancer that forwards TCP.
//
// Such a header stands in front of everything else on a connection. It is read only on listeners
// where it is expected and from peers that are trusted; there it is required, and nothing is
// guessed. Pure: the same bytes always give the same answer, so a caller that lacks some reads more
// and asks again. Views point into the caller's bytes. No allocation.
#pragma once

#include <sluice/address.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::identity {

enum class ProxyTransport : std::uint8_t { unspecified, stream, datagram };

struct ProxyHeader {
  // False: the socket's own addresses count, because the proxy itself speaks (LOCAL), does not know
  // (UNKNOWN, UNSPEC), or was reached by a Unix socket.
  bool has_addresses = false;
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  ProxyTransport transport = ProxyTransport::unspecified;
  bool is_local = false;  // version 2: a health check of the proxy itself

  // Version 2, empty where not sent.
  std::string_view authority;  // the name that the client asked for in its TLS handshake
  std::string_view alpn;
  std::string_view unique_id;
};

struct ProxyParse {
  enum class State : std::uint8_t { need_more, done, malformed };
  State state = State::need_more;
  std::size_t consumed = 0;  // when done: length of the header
  ProxyHeader header;        // when done
  const char* why = "";      // when malformed: static text
};

// A header of version 2 may announce 64 KiB; all that proxies send fits in far less.
inline constexpr std::size_t kProxyHeaderBytesMax = 4096;

[[nodiscard]] ProxyParse parse_proxy_header(
    std::string_view bytes, std::size_t header_bytes_max = kProxyHeaderBytesMax) noexcept;

// CRC-32C (Castagnoli), which protects headers of version 2.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes, std::uint32_t continued = 0) noexcept;

}  // namespace sluice::identity
