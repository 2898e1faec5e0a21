// What the gateway tells servers about the client, and what clients may not tell by themselves.
//
// X-Forwarded-*, Forwarded (RFC 7239) and their likes are a proxy's word on whom it speaks for.
// From strangers none of it passes; from proxies that are trusted it does, and what this gateway
// writes itself is continued. Pure; no allocation.
#pragma once

#include "base/text_writer.h"

#include <cstdint>
#include <string_view>

namespace sluice::gateway {

// What is written for servers.
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

// A header that servers take for the word of a proxy.
enum class ProxyWord : std::uint8_t {
  none,
  forwarded_for,
  proto,
  host,
  port,
  forwarded,
  request_id,
  other,  // x-real-ip, true-client-ip, all else that begins with x-forwarded-
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

// Many servers hand headers to programs with _ for -, so that the two cannot be told apart there:
// such names are the same word.
[[nodiscard]] ProxyWord proxy_word(std::string_view name) noexcept;

// One hop, as an element of Forwarded.
struct ForwardedHop {
  std::string_view address;  // of the client; empty: unknown
  std::string_view host;     // as asked for; may be empty
  std::string_view proto;
};
void write_hop(TextWriter& writer, const ForwardedHop& hop) noexcept;

}  // namespace sluice::gateway
