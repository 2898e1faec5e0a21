// The client of a request: its address, and its authenticated user.
//
// Views into the request's buffer, into the immutable data of an Identifier, and into the verdict
// cache of the worker that asked. All are good until that worker identifies the next request.
#pragma once

#include <sluice/address.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::identity {

// Named values that a client cannot choose: the claims of a verified token, the attributes of an
// API key. Nested names are joined by dots.
class Attributes {
 public:
  Attributes() = default;
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  virtual ~Attributes() = default;

  // Empty: there is none of that name. Numbers and truth values as their text.
  [[nodiscard]] virtual std::string_view find(std::string_view name) const noexcept = 0;

  // Values that can be listed: the attributes of an API key, but no claims, of which a token may
  // have any number.
  using Named = std::pair<std::string, std::string>;
  [[nodiscard]] virtual std::span<const Named> all() const noexcept { return {}; }
};

// The result of authentication.
enum class Proof : std::uint8_t {
  none,       // nothing was presented
  good,       // a known key, a valid token, a certificate
  unknown,    // an unknown key
  invalid,    // a token that is malformed, forged, expired or for another service; an expired key
  limited,    // too many failures from this address: the token was not even looked at
  ambiguous,  // credentials of one kind that differ, or a repeated header: none was looked at
};

struct Identity {
  IpAddress address;         // of the client, behind proxies that are trusted
  std::string_view user;     // empty: unknown; of a token, a key, or a certificate
  std::string_view api_key;  // the key's public name, never the key
  std::string_view tenant;
  std::string_view tier;
  std::string_view country;      // two letters; empty: unknown
  std::uint32_t asn = 0;         // autonomous system; 0: unknown
  bool through_trusted = false;  // a proxy that is trusted passed the request on
  Proof proof = Proof::none;
  std::string_view
      why;  // why a credential is invalid, for messages; static text, also if another is valid
  const Attributes* claims = nullptr;      // of a verified token
  const Attributes* attributes = nullptr;  // of an API key

  [[nodiscard]] bool authenticated() const noexcept { return proof == Proof::good; }
};

}  // namespace sluice::identity
