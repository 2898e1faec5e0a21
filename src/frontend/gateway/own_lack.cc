#include "frontend/gateway/own_lack.h"

#include <cerrno>
#include <sys/socket.h>

namespace sluice::gateway {

OwnLack own_lack(const net::IoFailure& why, const net::SocketAddress& to) noexcept {
  if (why.kind != net::IoFailure::Kind::system) return OwnLack::nothing;
  switch (why.code) {
    case EMFILE:
    case ENFILE: return OwnLack::descriptors;
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
      return OwnLack::memory;  // the last: for watching one more descriptor
    // To IPv6 it may also mean that this machine has no address of that kind. That will not pass by
    // itself, so such an address is better left alone.
    case EADDRNOTAVAIL: return to.family() == AF_INET ? OwnLack::ports : OwnLack::nothing;
    default: return OwnLack::nothing;
  }
}

const char* text_of(OwnLack lack) noexcept {
  switch (lack) {
    case OwnLack::nothing: break;
    case OwnLack::descriptors: return "the gateway lacks file descriptors";
    case OwnLack::memory: return "the gateway lacks memory";
    case OwnLack::ports: return "the gateway lacks ports to reach the server from";
  }
  return "";
}

}  // namespace sluice::gateway
