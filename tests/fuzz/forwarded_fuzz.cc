// Whatever a client writes into X-Forwarded-For or Forwarded: what a trusted proxy appends behind
// it decides.

#include "identity/forwarded.h"

#include "fuzz.h"
#include "identity/client_address.h"

#include <array>
#include <string>
#include <string_view>

namespace {

using sluice::IpAddress;
using sluice::fuzz::expect;
using sluice::identity::AddressSource;
using sluice::identity::ClientAddressFinder;

const IpAddress kProxy = IpAddress::v4(0x0a000001);
const IpAddress kClient = IpAddress::v4(0xc0000201);

ClientAddressFinder finder(AddressSource source) {
  return ClientAddressFinder::create({.source = source,
                                      .trusted_proxies = {sluice::IpRange{
                                          .first = IpAddress::v4(0x0a000000), .prefix_bits = 8}},
                                      .trusted_hops = 2})
      .value();
}

IpAddress find(const ClientAddressFinder& finder, std::string_view name, std::string_view value) {
  const std::array headers{sluice::HeaderView{name, value}};
  sluice::RequestView request;
  request.headers = headers;
  request.peer = kProxy;
  return finder.find(request).address;
}

void check(const ClientAddressFinder& finder, std::string_view name, const std::string& value,
           const std::string& appended) {
  (void)find(finder, name, value);
  expect(find(finder, name, value + appended) == kClient, "what the proxy appends counts");
  expect(find(finder, name, value + appended + appended + appended) == kClient,
         "and what it appends first does not matter");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ClientAddressFinder kForwardedFor = finder(AddressSource::x_forwarded_for);
  static const ClientAddressFinder kForwarded = finder(AddressSource::forwarded);
  static const ClientAddressFinder kHops = finder(AddressSource::trusted_hops);
  const std::string value{data, data + size};
  check(kForwardedFor, "x-forwarded-for", value, ", 192.0.2.1");
  check(kForwarded, "forwarded", value, ",for=192.0.2.1");
  expect(find(kHops, "x-forwarded-for", value + ", 192.0.2.1, 10.0.0.2") == kClient,
         "the second from the right counts");
  const auto address = sluice::identity::parse_forwarded_for_element(value);
  if (address) {
    const auto again = sluice::identity::parse_forwarded_for_element(address->text());
    expect(again == address, "an address survives being written and read");
  }
  return 0;
}
