#include "net/io_result.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <cstring>

namespace sluice::net {
namespace {

std::string_view or_unknown(const char* text) noexcept {
  return text != nullptr ? text : "unknown error";
}

}  // namespace

std::string_view IoFailure::reason() const noexcept {
  switch (kind) {
    case Kind::none: return "no failure";
    case Kind::system: return or_unknown(::strerrordesc_np(static_cast<int>(code)));
    case Kind::tls: return or_unknown(ERR_reason_error_string(code));
    case Kind::certificate: return X509_verify_cert_error_string(static_cast<long>(code));
    case Kind::truncated: return "the peer closed the connection in the middle of TLS";
  }
  return "unknown failure";
}

std::string IoFailure::text() const {
  std::string why{reason()};
  switch (kind) {
    case Kind::tls: return "TLS: " + why;
    case Kind::certificate: return "the peer's certificate is rejected: " + why;
    default: return why;
  }
}

}  // namespace sluice::net
