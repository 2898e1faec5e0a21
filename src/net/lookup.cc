#include "net/lookup.h"

#include "base/text.h"
#include "net/socket_address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>

namespace sluice::net {
namespace {

struct FreeList {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

std::optional<IpAddress> address_of(const addrinfo& entry) noexcept {
  SocketAddress address;
  if (entry.ai_addr == nullptr || entry.ai_addrlen > *address.size()) return std::nullopt;
  std::memcpy(address.get(), entry.ai_addr, entry.ai_addrlen);
  return address.is_ip() ? std::optional{address.ip()} : std::nullopt;
}

Addresses collect(const addrinfo* list) {
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const std::optional<IpAddress> address = address_of(*entry);
    if (!address) continue;
    if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) {
      addresses.push_back(*address);
    }
  }
  return addresses;
}

}  // namespace

Parsed<Addresses> look_up(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &wanted, &found);
  const std::unique_ptr<addrinfo, FreeList> list{found};
  if (error != 0) {
    return mistake("cannot find the host " + quoted(name) + ": " +
                   (error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error)));
  }
  Addresses addresses = collect(list.get());
  if (addresses.empty()) return mistake("the host " + quoted(name) + " has no address");
  return addresses;
}

}  // namespace sluice::net
