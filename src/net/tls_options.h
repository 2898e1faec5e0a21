// What servers and clients of TLS have in common.
#pragma once

#include "crypto/openssl_owned.h"
#include "net/tls_server.h"
#include <sluice/diagnostic.h>

#include <string>
#include <vector>

namespace sluice::net {

// Null if OpenSSL fails.
[[nodiscard]] crypto::OwnedContext new_context(const SSL_METHOD* method,
                                               TlsVersion minimum) noexcept;

// Each name behind its length, as ALPN writes lists.
[[nodiscard]] Parsed<std::vector<unsigned char>> alpn_list(const std::vector<std::string>& names);

}  // namespace sluice::net
