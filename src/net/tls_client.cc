#include "net/tls_client.h"

#include "net/tls_options.h"
#include <sluice/address.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <utility>

namespace sluice::net {
namespace {

Parsed<void> trust(SSL_CTX& context, const TlsClientOptions& options) {
  if (!options.verify) return {};
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  if (!options.ca_file.empty()) return trust_authorities(context, options.ca_file);
  if (SSL_CTX_set_default_verify_paths(&context) != 1) {
    ERR_clear_error();
    return mistake("the CAs of the system cannot be read", "install the package ca-certificates");
  }
  return {};
}

// The name goes to the server, which may have certificates for several, and into the check of what
// it answers. Addresses are only checked: the protocol knows no names that are addresses.
bool expect_host(SSL& ssl, const std::string& host) noexcept {
  X509_VERIFY_PARAM* const rules = SSL_get0_param(&ssl);
  if (IpAddress::parse(host)) return X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(&ssl, host.c_str()) == 1 &&
         X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) == 1;
}

}  // namespace

Parsed<std::shared_ptr<const TlsClient>> TlsClient::load(const TlsClientOptions& options) {
  crypto::OwnedContext context = new_context(TLS_client_method(), options.minimum);
  if (context == nullptr) return mistake("OpenSSL gives no context for TLS");
  Parsed<void> result = trust(*context, options);
  if (result && options.certificate) result = use_certificate(*context, *options.certificate);
  if (!result) return tl::unexpected(result.error());
  const Parsed<std::vector<unsigned char>> protocols = alpn_list(options.protocols);
  if (!protocols) return tl::unexpected(protocols.error());
  if (SSL_CTX_set_alpn_protos(context.get(), protocols->data(),
                              static_cast<unsigned>(protocols->size())) != 0) {
    return mistake("OpenSSL does not take the list of protocols");
  }
  return std::shared_ptr<const TlsClient>{new TlsClient{std::move(context), options.verify}};
}

crypto::OwnedSsl TlsClient::new_ssl(const std::string& host) const noexcept {
  crypto::OwnedSsl ssl{SSL_new(context_.get())};
  if (ssl == nullptr || host.empty() || !expect_host(*ssl, host)) {
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

}  // namespace sluice::net
