// One request, as a front end saw it.
//
// Everything here is a view into the front end's buffer, as the client sent it: the engine
// normalises the path and identifies the client. The front end reads the clock once and passes it
// beside the request.
#pragma once

#include <sluice/address.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sluice {

struct HeaderView {
  std::string_view name;  // in any case
  std::string_view value;
};

// An entry of an Envoy descriptor: ("remote_address", "1.2.3.4").
struct DescriptorEntry {
  std::string_view key;
  std::string_view value;
};

struct RequestView {
  std::string_view method;  // GET
  std::string_view host;    // Host or :authority, with the port if one was sent
  std::string_view target;  // path and query, not decoded: /v1/users?limit=3
  std::span<const HeaderView> headers;
  IpAddress peer;                // at the other end of the socket
  std::string_view tls_subject;  // of the client's certificate, if one was verified
  std::string_view domain;       // empty: the default one
  std::span<const DescriptorEntry> descriptor;

  // The first header of that name, which is given in lower case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view lower_name) const noexcept;
};

namespace detail {
[[nodiscard]] bool same_letters(const char* a, const char* b, std::size_t size) noexcept;
}

// Whether two texts are equal but for the case of ASCII letters. Most are not: they differ in
// length, or begin differently.
[[nodiscard]] inline bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  if (a.empty()) return true;
  return ((a.front() ^ b.front()) & ~0x20) == 0 &&
         detail::same_letters(a.data(), b.data(), a.size());
}

}  // namespace sluice
