#include "net/tls_server.h"

#include "base/characters.h"
#include "base/read_file.h"
#include "net/tls_options.h"

#include <openssl/err.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

namespace sluice::net {
namespace {

const TlsServer& server_of(void* argument) noexcept {
  return *static_cast<const TlsServer*>(argument);
}

// The session keeps the server alive for as long as OpenSSL may call these.
int choose_certificate(SSL* ssl, int* /*alert*/, void* argument) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_SSL_CTX(ssl, server_of(argument).context_for(name));
  return SSL_TLSEXT_ERR_OK;
}

// A client that speaks none of our protocols is told so (RFC 7301), before it misunderstands us.
int choose_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void* argument) {
  const std::vector<unsigned char>& ours = server_of(argument).protocols();
  unsigned char* choice = nullptr;
  const int found = SSL_select_next_proto(
      &choice, size, ours.data(), static_cast<unsigned>(ours.size()), offered, offered_size);
  *chosen = choice;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// The CAs of client certificates, and the digest by which sessions and connections know whether
// they are still trusted.
struct ClientCas {
  std::vector<crypto::OwnedCertificate> certificates;
  TlsServer::ClientTrust trust{};
};

// One read of the file for all: CAs of one reading under the digest of another would be trusted for
// as long as the file stays as it is, by connections and sessions that should have ended.
Parsed<ClientCas> read_client_cas(const TlsServerOptions& options) {
  ClientCas cas;
  if (options.client_auth == ClientAuth::off) return cas;
  if (options.client_ca_file.empty()) {
    return mistake("client certificates are requested, but no CA is trusted for them",
                   "name a file with the certificates of their CAs");
  }
  const Parsed<std::string> text = read_file(options.client_ca_file, std::size_t{4} << 20U);
  if (!text) return tl::unexpected(text.error());
  auto certificates = parse_certificates(*text, options.client_ca_file);
  if (!certificates) return tl::unexpected(certificates.error());
  cas.certificates = std::move(*certificates);
  const std::string rules = std::to_string(static_cast<int>(options.client_auth)) + *text;
  SHA256(reinterpret_cast<const unsigned char*>(rules.data()), rules.size(), cas.trust.data());
  return cas;
}

// Clients with several certificates choose by these names, of which each is sent once.
void name_client_cas(SSL_CTX& context, const std::vector<crypto::OwnedCertificate>& cas) {
  for (auto one = cas.begin(); one != cas.end(); ++one) {
    const bool is_named = std::any_of(cas.begin(), one, [one](const auto& before) {
      return X509_subject_name_cmp(before.get(), one->get()) == 0;
    });
    if (!is_named) SSL_CTX_add_client_CA(&context, one->get());
  }
}

Parsed<void> demand_client_certificates(SSL_CTX& context, const TlsServerOptions& options,
                                        const std::vector<crypto::OwnedCertificate>& cas) {
  if (options.client_auth == ClientAuth::off) return {};
  Parsed<void> trusted = trust_authorities(context, cas, options.client_ca_file);
  if (!trusted) return trusted;
  name_client_cas(context, cas);
  const bool required = options.client_auth == ClientAuth::required;
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return {};
}

// All contexts of a server have it, also those chosen by SNI.
const TlsServer& server_of(const SSL* ssl) noexcept {
  return server_of(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

int protect_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                   EVP_MAC_CTX* mac, int encrypts) {
  const TicketKeys& keys = server_of(ssl).tickets();
  return encrypts == 1 ? keys.encrypt(name, iv, cipher, mac) : keys.decrypt(name, iv, cipher, mac);
}

// OpenSSL does not look at the certificate of a session that it resumes. Without the session the
// handshake is a full one, which does.
SSL_TICKET_RETURN accept_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char* /*name*/,
                                std::size_t /*name_size*/, SSL_TICKET_STATUS status, void*) {
  switch (status) {
    case SSL_TICKET_SUCCESS:
    case SSL_TICKET_SUCCESS_RENEW: break;
    default: return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  const X509* const client = SSL_SESSION_get0_peer(session);
  if (client != nullptr && !server_of(ssl).is_valid_now(*client)) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

void use_tickets(SSL_CTX& context) noexcept {
  constexpr std::chrono::seconds kLife = TicketKeys::kPeriod;
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(&context, 1);  // the next connection gets a new one in any case
  SSL_CTX_set_timeout(&context, kLife.count());
  SSL_CTX_set_tlsext_ticket_key_evp_cb(&context, protect_ticket);
  SSL_CTX_set_session_ticket_cb(&context, nullptr, accept_ticket, nullptr);
}

}  // namespace

Parsed<std::shared_ptr<const TlsServer>> TlsServer::load(const TlsServerOptions& options) {
  if (options.certificates.empty()) {
    return mistake("TLS without a certificate", "name the files of a certificate and its key");
  }
  std::shared_ptr<TlsServer> server{new TlsServer};
  Parsed<std::vector<unsigned char>> protocols = alpn_list(options.protocols);
  if (!protocols) return tl::unexpected(protocols.error());
  server->protocols_ = std::move(*protocols);
  static const SystemClock kSystemClock;
  server->clock_ = options.clock != nullptr ? options.clock : &kSystemClock;
  server->tickets_ = options.tickets;
  if (server->tickets_ == nullptr) server->tickets_ = std::make_shared<const TicketKeys>();
  const Parsed<ClientCas> client_cas = read_client_cas(options);
  if (!client_cas) return tl::unexpected(client_cas.error());
  server->client_trust_ = client_cas->trust;
  for (const CertificateFiles& files : options.certificates) {
    const Parsed<void> added = server->add(files, options, client_cas->certificates);
    if (!added) return tl::unexpected(added.error());
  }
  return server;
}

Parsed<void> TlsServer::add(const CertificateFiles& files, const TlsServerOptions& options,
                            const std::vector<crypto::OwnedCertificate>& client_cas) {
  crypto::OwnedContext context = new_context(TLS_server_method(), options.minimum);
  if (context == nullptr) return mistake("OpenSSL gives no context for TLS");
  Parsed<void> result = use_certificate(*context, files);
  if (result) result = demand_client_certificates(*context, options, client_cas);
  if (!result) return result;
  // A session is resumed only under the same client CAs: a session that began under a removed CA
  // must not be resumed by its ticket.
  SSL_CTX_set_session_id_context(context.get(), client_trust_.data(),
                                 static_cast<unsigned>(client_trust_.size()));
  SSL_CTX_set_app_data(context.get(), this);
  use_tickets(*context);
  SSL_CTX_set_tlsext_servername_callback(context.get(), choose_certificate);
  SSL_CTX_set_tlsext_servername_arg(context.get(), this);
  if (!protocols_.empty()) SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, this);
  remember_names(*context);
  contexts_.push_back(std::move(context));
  return {};
}

// `*.example.com` is remembered as `.example.com`, which no name can be. Of two certificates for
// one name the first is used.
void TlsServer::remember_names(SSL_CTX& context) {
  for (std::string& name : names_of(*SSL_CTX_get0_certificate(&context))) {
    if (name.starts_with("*.")) name.erase(0, 1);
    by_name_.emplace(std::move(name), &context);
  }
}

bool TlsServer::is_valid_now(const X509& certificate) const noexcept {
  const auto since_1970 = clock_->now().wall().time_since_epoch();
  std::time_t now = std::chrono::floor<std::chrono::seconds>(since_1970).count();
  // 0, which is neither, tells of a date that cannot be read.
  return X509_cmp_time(X509_get0_notBefore(&certificate), &now) < 0 &&
         X509_cmp_time(X509_get0_notAfter(&certificate), &now) > 0;
}

SSL_CTX* TlsServer::context_for(std::string_view name) const noexcept {
  std::array<char, 256> buffer{};
  SSL_CTX* const first = contexts_.front().get();
  if (name.size() > buffer.size()) return first;
  std::transform(name.begin(), name.end(), buffer.begin(), lower);
  const std::string_view wanted{buffer.data(), name.size()};
  if (wanted.starts_with('.')) return first;
  auto found = by_name_.find(wanted);
  const std::size_t dot = wanted.find('.');
  if (found == by_name_.end() && dot != std::string_view::npos) {
    found = by_name_.find(wanted.substr(dot));
  }
  return found != by_name_.end() ? found->second : first;
}

}  // namespace sluice::net
