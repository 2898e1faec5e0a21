// The address of the client, behind proxies that are trusted.
//
// A header says whatever its sender likes, so it counts only as far as trusted proxies wrote it.
// One source is chosen and the others are ignored: a client must not pick the header that suits it.
// Immutable, so threads may share it; no allocation.
#pragma once

#include "identity/ip_range_set.h"
#include <sluice/address.h>
#include <sluice/diagnostic.h>
#include <sluice/request.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::identity {

enum class AddressSource : std::uint8_t {
  peer,             // the other end of the socket, whatever the headers say
  x_forwarded_for,  // walked from the right over trusted proxies
  forwarded,        // RFC 7239, walked likewise
  header,           // one header that a trusted proxy sets: x-real-ip, cf-connecting-ip
  trusted_hops,     // a fixed element of X-Forwarded-For, counted from the right
};

struct ClientAddressConfig {
  AddressSource source = AddressSource::peer;
  std::vector<IpRange> trusted_proxies;
  std::string header;  // for `header`; lower case

  // For `trusted_hops`: the last element is 1. Envoy's xff_num_trusted_hops N at the edge
  // (use_remote_address) is N here, and N + 1 without it. With it the list of proxies may be empty,
  // which trusts every peer; otherwise the peer must be on it.
  unsigned trusted_hops = 0;
};

struct ClientAddress {
  IpAddress address;
  bool through_trusted = false;  // the peer is a proxy that is trusted
};

class ClientAddressFinder {
 public:
  ClientAddressFinder() = default;  // the peer
  [[nodiscard]] static Parsed<ClientAddressFinder> create(const ClientAddressConfig& config);

  // Walking stops at the first element that is not a trusted proxy: that one is the client. Where
  // an element does not parse, the client is the last proxy that did. If all elements are trusted,
  // it is the leftmost. A header that does not help leaves the peer.
  [[nodiscard]] ClientAddress find(const RequestView& request) const noexcept;

  // An untrusted peer sent a forwarding header: perhaps a client cheats, more likely a proxy is
  // missing from the list and all its clients count as one. Worth one warning; after that the
  // caller need not test it any more.
  [[nodiscard]] bool ignores_forwarding(const RequestView& request) const noexcept;

  [[nodiscard]] bool trusts(const IpAddress& peer) const noexcept {
    return trusted_.empty() ? source_ == AddressSource::trusted_hops : trusted_.contains(peer);
  }

 private:
  template <class Walk, class Parse>
  [[nodiscard]] IpAddress walked(const RequestView& request, std::string_view name,
                                 Parse parse) const noexcept;
  [[nodiscard]] IpAddress counted(const RequestView& request) const noexcept;
  [[nodiscard]] IpAddress named(const RequestView& request) const noexcept;

  AddressSource source_ = AddressSource::peer;
  IpRangeSet trusted_;
  std::string header_;
  unsigned trusted_hops_ = 0;
};

}  // namespace sluice::identity
