#include "net/tls_options.h"

#include "base/text.h"

#include <openssl/err.h>

namespace sluice::net {
namespace {

// For TLS 1.2; those of TLS 1.3 are all good.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

constexpr std::uint64_t kOptions = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA;

// Partial writes and moving buffers: a stream offers what it has each time, and takes what went.
// Released buffers: an idle connection keeps none, which is most of its memory.
constexpr std::uint32_t kModes =
    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS;

int number_of(TlsVersion version) noexcept {
  return version == TlsVersion::tls1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
}

}  // namespace

crypto::OwnedContext new_context(const SSL_METHOD* method, TlsVersion minimum) noexcept {
  crypto::OwnedContext context{SSL_CTX_new(method)};
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), number_of(minimum)) != 1 ||
      SSL_CTX_set_cipher_list(context.get(), kCiphers) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  SSL_CTX_set_options(context.get(), kOptions);
  SSL_CTX_set_mode(context.get(), kModes);
  // One system call for the header and the body of a record, instead of one for each.
  SSL_CTX_set_read_ahead(context.get(), 1);
  return context;
}

Parsed<std::vector<unsigned char>> alpn_list(const std::vector<std::string>& names) {
  std::vector<unsigned char> list;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 255) {
      return mistake("not the name of a protocol: " + quoted(name), "it has 1 to 255 bytes");
    }
    list.push_back(static_cast<unsigned char>(name.size()));
    list.insert(list.end(), name.begin(), name.end());
  }
  return list;
}

}  // namespace sluice::net
