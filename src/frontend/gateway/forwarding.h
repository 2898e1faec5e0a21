// What the gateway tells servers about the client, and which headers clients may not send.
//
// X-Forwarded-*, Forwarded (RFC 7239) and the like are a proxy's statements about its client. From
// untrusted clients the gateway drops them. From trusted proxies it forwards them, and continues
// the headers that it writes itself. Pure; no allocation.
#pragma once

#include "base/text_writer.h"

#include <cstdint>
#include <string_view>

namespace sluice::gateway {

// The headers written for servers.
enum class ForwardedHeaders : std::uint8_t { x_forwarded, forwarded, both, none };

[[nodiscard]] constexpr bool writes_x_forwarded(ForwardedHeaders which) noexcept {
  return which == ForwardedHeaders::x_forwarded || which == ForwardedHeaders::both;
}
[[nodiscard]] constexpr bool writes_forwarded(ForwardedHeaders which) noexcept {
  return which == ForwardedHeaders::forwarded || which == ForwardedHeaders::both;
}

inline constexpr std::string_view kForwardedFor = "x-forwarded-for";
inline constexpr std::string_view kForwardedProto = "x-forwarded-proto";
inline constexpr std::string_view kForwardedHost = "x-forwarded-host";
inline constexpr std::string_view kForwardedPort = "x-forwarded-port";
inline constexpr std::string_view kForwarded = "forwarded";
inline constexpr std::string_view kRequestId = "x-request-id";

// A header that servers take for a proxy's statement.
enum class ProxyWord : std::uint8_t {
  none,
  forwarded_for,
  proto,
  host,
  port,
  forwarded,
  request_id,
  other,  // x-real-ip, true-client-ip, any other x-forwarded-*
};

// Which of them a request has.
class ProxyWords {
 public:
  constexpr void add(ProxyWord word) noexcept { bits_ |= bit(word); }
  [[nodiscard]] constexpr bool has(ProxyWord word) const noexcept {
    return (bits_ & bit(word)) != 0;
  }

 private:
  [[nodiscard]] static constexpr unsigned bit(ProxyWord word) noexcept {
    return 1U << static_cast<unsigned>(word);
  }
  unsigned bits_ = 0;
};

// Many servers give headers to programs with _ for -, which makes the two indistinguishable: both
// spellings are the same ProxyWord.
[[nodiscard]] ProxyWord proxy_word(std::string_view name) noexcept;

// One hop, as an element of Forwarded.
struct ForwardedHop {
  std::string_view address;  // of the client; empty: unknown
  std::string_view host;     // as requested; may be empty
  std::string_view proto;
};
void write_hop(TextWriter& writer, const ForwardedHop& hop) noexcept;

}  // namespace sluice::gateway
