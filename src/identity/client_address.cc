#include "identity/client_address.h"

#include "base/text.h"
#include "identity/forwarded.h"
#include "identity/headers.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace sluice::identity {
namespace {

constexpr std::string_view kForwardedFor = "x-forwarded-for";
constexpr std::string_view kForwarded = "forwarded";

// A chain of proxies is short. The bound keeps a header full of addresses from costing much.
constexpr unsigned kElementsMax = 64;

bool is_lower_case_name(std::string_view name) noexcept {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
  });
}

}  // namespace

Parsed<ClientAddressFinder> ClientAddressFinder::create(const ClientAddressConfig& config) {
  const bool reads_header =
      config.source != AddressSource::peer && config.source != AddressSource::trusted_hops;
  if (reads_header && config.trusted_proxies.empty()) {
    return mistake("addresses are to come from a header, but no proxy is trusted to send it",
                   "list your proxies under trusted_proxies, as in 10.0.0.0/8");
  }
  if (config.source == AddressSource::header && !is_lower_case_name(config.header)) {
    return mistake("no header is called " + quoted(config.header),
                   "write its name in lower case, as in x-real-ip");
  }
  if (config.source == AddressSource::trusted_hops &&
      (config.trusted_hops == 0 || config.trusted_hops > kElementsMax)) {
    return mistake("trusted_hops is " + std::to_string(config.trusted_hops),
                   "count the trusted proxies in front, from 1 to " + std::to_string(kElementsMax));
  }
  ClientAddressFinder finder;
  finder.source_ = config.source;
  finder.trusted_ = IpRangeSet{config.trusted_proxies};
  finder.header_ = config.header;
  finder.trusted_hops_ = config.trusted_hops;
  return finder;
}

template <class Walk, class Parse>
IpAddress ClientAddressFinder::walked(const RequestView& request, std::string_view name,
                                      Parse parse) const noexcept {
  IpAddress nearest = request.peer;
  unsigned elements = 0;
  for (auto line = request.headers.rbegin(); line != request.headers.rend(); ++line) {
    if (!is_named(*line, name)) continue;
    Walk walk{line->value};
    while (const std::optional<std::string_view> element = walk.next()) {
      if (++elements > kElementsMax) return nearest;
      const std::optional<IpAddress> address = parse(*element);
      if (!address) return nearest;
      nearest = *address;
      if (!trusted_.contains(nearest)) return nearest;
    }
  }
  return nearest;
}

IpAddress ClientAddressFinder::counted(const RequestView& request) const noexcept {
  unsigned elements = 0;
  for (auto line = request.headers.rbegin(); line != request.headers.rend(); ++line) {
    if (!is_named(*line, kForwardedFor)) continue;
    ForwardedForWalk walk{line->value};
    while (const std::optional<std::string_view> element = walk.next()) {
      if (++elements == trusted_hops_)
        return parse_forwarded_for_element(*element).value_or(request.peer);
    }
  }
  return request.peer;
}

// A trusted proxy sets this header once. Where it stands twice, one of them is the client's.
IpAddress ClientAddressFinder::named(const RequestView& request) const noexcept {
  const HeaderView* only = nullptr;
  for (const HeaderView& line : request.headers) {
    if (!is_named(line, header_)) continue;
    if (only != nullptr) return request.peer;
    only = &line;
  }
  if (only == nullptr) return request.peer;
  return parse_forwarded_for_element(only->value).value_or(request.peer);
}

bool ClientAddressFinder::ignores_forwarding(const RequestView& request) const noexcept {
  if (trusts(request.peer)) return false;
  return std::any_of(request.headers.begin(), request.headers.end(), [&](const HeaderView& line) {
    return is_named(line, kForwardedFor) || is_named(line, kForwarded) ||
           (!header_.empty() && is_named(line, header_));
  });
}

ClientAddress ClientAddressFinder::find(const RequestView& request) const noexcept {
  ClientAddress found{.address = request.peer};
  if (!trusts(request.peer)) return found;
  found.through_trusted = true;
  switch (source_) {
    case AddressSource::peer: break;
    case AddressSource::x_forwarded_for:
      found.address = walked<ForwardedForWalk>(request, kForwardedFor, parse_forwarded_for_element);
      break;
    case AddressSource::forwarded:
      found.address = walked<ForwardedWalk>(request, kForwarded, parse_forwarded_element);
      break;
    case AddressSource::header: found.address = named(request); break;
    case AddressSource::trusted_hops: found.address = counted(request); break;
  }
  return found;
}

}  // namespace sluice::identity
