// Where to listen or to connect, as people write it.
//
//   127.0.0.1:8080   [::1]:80   :8080 (every address of the machine)   localhost:3000   unix:/run/s
//
// Strict: no missing or signed port, no address that only looks like one, no IPv6 without brackets.
// A value; immutable in use.
#pragma once

#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::net {

struct Endpoint {
  enum class Kind : std::uint8_t { any, address, name, unix_path };

  Kind kind = Kind::any;
  IpAddress address{};     // of kind address
  std::string name;        // the host's name in lower case, or the path
  std::uint16_t port = 0;  // 0: whichever is free; unused for paths

  [[nodiscard]] static Parsed<Endpoint> parse(std::string_view text);
  [[nodiscard]] static Endpoint of(const IpAddress& address, std::uint16_t port);
  [[nodiscard]] static Endpoint of_path(std::string path);

  // Parses to an equal endpoint.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace sluice::net
