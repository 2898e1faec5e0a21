#include "net/io_result.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <cstring>

namespace sluice::net {
namespace {

std::string tls_text(unsigned long code) {
  const char* const reason = ERR_reason_error_string(code);
  return std::string{"TLS: "} + (reason != nullptr ? reason : "unknown error");
}

}  // namespace

std::string IoFailure::text() const {
  switch (kind) {
    case Kind::none: return "no failure";
    case Kind::system: return std::strerror(static_cast<int>(code));
    case Kind::tls: return tls_text(code);
    case Kind::certificate:
      return std::string{"the peer's certificate is refused: "} +
             X509_verify_cert_error_string(static_cast<long>(code));
    case Kind::truncated: return "the peer closed the connection in the middle of TLS";
  }
  return "unknown failure";
}

}  // namespace sluice::net
