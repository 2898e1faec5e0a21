// Access control of the admin listener.
//
// With a token: every client that presents it. Without one the listener is on the loopback or a
// Unix socket, which the configuration ensures, and the danger is a browser on this machine: a
// foreign page whose name suddenly resolves to 127.0.0.1 (DNS rebinding), or a page that simply
// sends requests there. Both are recognised by their Host or Origin. Immutable.
#pragma once

#include "crypto/sha256.h"
#include "frontend/admin/message.h"

#include <optional>
#include <string_view>

namespace sluice::admin {

class Guard {
 public:
  Guard() = default;  // no token is needed
  explicit Guard(std::string_view token) noexcept : token_(crypto::sha256(token)) {}

  // Nothing: the request is allowed.
  [[nodiscard]] std::optional<Reply> refuse(const Request& request) const;

 private:
  [[nodiscard]] bool has_token(const Request& request) const noexcept;

  // Compares hashes, so that timing reveals neither content nor length of the token.
  std::optional<crypto::Sha256Bytes> token_;
};

// Whether a host, as in Host, can only be this machine by its own name: an address, or localhost,
// with or without a port.
[[nodiscard]] bool names_no_domain(std::string_view host) noexcept;

}  // namespace sluice::admin
