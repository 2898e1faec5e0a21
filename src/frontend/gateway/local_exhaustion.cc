#include "frontend/gateway/local_exhaustion.h"

#include <cerrno>
#include <sys/socket.h>

namespace sluice::gateway {

LocalExhaustion local_exhaustion(const net::IoFailure& why, const net::SocketAddress& to) noexcept {
  if (why.kind != net::IoFailure::Kind::system) return LocalExhaustion::nothing;
  switch (why.code) {
    case EMFILE:
    case ENFILE: return LocalExhaustion::descriptors;
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
      return LocalExhaustion::memory;  // the last: for watching one more descriptor
    // For IPv6 it may also mean that this machine has no IPv6 address. That is not temporary, so
    // the address should be ejected.
    case EADDRNOTAVAIL:
      return to.family() == AF_INET ? LocalExhaustion::ports : LocalExhaustion::nothing;
    default: return LocalExhaustion::nothing;
  }
}

const char* text_of(LocalExhaustion lack) noexcept {
  switch (lack) {
    case LocalExhaustion::nothing: break;
    case LocalExhaustion::descriptors: return "the gateway lacks file descriptors";
    case LocalExhaustion::memory: return "the gateway lacks memory";
    case LocalExhaustion::ports: return "the gateway lacks ports to reach the server from";
  }
  return "";
}

}  // namespace sluice::gateway
