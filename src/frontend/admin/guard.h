// Who may ask.
//
// With a token: whoever presents it. Without one the listener is on the loopback or a Unix socket,
// which the configuration sees to, and the danger is a browser on the same machine: a page from
// elsewhere whose name suddenly leads to 127.0.0.1 (DNS rebinding), or one that simply sends
// requests there. Both give themselves away by the name they ask for, or come from. Immutable.
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

  // Nothing: it may be answered.
  [[nodiscard]] std::optional<Reply> refuse(const Request& request) const;

 private:
  [[nodiscard]] bool has_token(const Request& request) const noexcept;

  // Hashes are compared, so that neither content nor length of the token can be told by the clock.
  std::optional<crypto::Sha256Bytes> token_;
};

// Whether a host, as Host names it, can only be this machine by its own name: an address, or
// localhost, with or without a port.
[[nodiscard]] bool names_no_domain(std::string_view host) noexcept;

}  // namespace sluice::admin
