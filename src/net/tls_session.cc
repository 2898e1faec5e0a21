#include "net/tls_session.h"

#include "base/characters.h"
#include "base/text.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

namespace sluice::net {

// What OpenSSL calls to move bytes.
struct SocketBio {
  static TlsSession& session_of(BIO* bio) noexcept {
    return *static_cast<TlsSession*>(BIO_get_data(bio));
  }

  // As OpenSSL wants it: a count, 0 for the end, or -1 with or without the advice to try again.
  static int answer(BIO* bio, const IoResult& result, int retry) noexcept {
    BIO_clear_retry_flags(bio);
    switch (result.state) {
      case IoResult::State::done: return static_cast<int>(result.bytes);
      case IoResult::State::would_block: BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY); break;
      case IoResult::State::closed: session_of(bio).socket_ended_ = true; return 0;
      case IoResult::State::failed: session_of(bio).socket_failure_ = result.why; break;
    }
    return -1;
  }

  static int read(BIO* bio, char* into, int size) {
    TlsSession& session = session_of(bio);
    const IoResult got = session.socket_.receive({into, static_cast<std::size_t>(size)});
    if (session.first_byte_ == '\0' && got.is_done() && got.bytes > 0) session.first_byte_ = *into;
    return answer(bio, got, BIO_FLAGS_READ);
  }

  static int write(BIO* bio, const char* from, int size) {
    const iovec part = part_of({from, static_cast<std::size_t>(size)});
    return answer(bio, session_of(bio).socket_.send({&part, 1}), BIO_FLAGS_WRITE);
  }

  static long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    if (command == BIO_CTRL_FLUSH) return 1;  // nothing is buffered
    if (command == BIO_CTRL_EOF) return session_of(bio).socket_ended_ ? 1 : 0;
    return 0;
  }

  // Made once and never freed: sessions may end as late as the process does.
  static const BIO_METHOD* method() noexcept {
    static const BIO_METHOD* const kMethod = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
      if (fresh == nullptr) return fresh;
      BIO_meth_set_read(fresh, read);
      BIO_meth_set_write(fresh, write);
      BIO_meth_set_ctrl(fresh, control);
      return fresh;
    }();
    return kMethod;
  }
};

namespace {

// The most that one record holds.
constexpr std::size_t kRecordMax = 16384;

// Nothing of an earlier call may explain the failure of the next.
void forget_errors() noexcept { ERR_clear_error(); }

std::size_t gather(std::span<const iovec> parts, std::span<char> into) noexcept {
  std::size_t filled = 0;
  for (const iovec& part : parts) {
    const auto* const from = static_cast<const char*>(part.iov_base);
    const std::size_t count = std::min(part.iov_len, into.size() - filled);
    std::copy_n(from, count, into.data() + filled);
    filled += count;
  }
  return filled;
}

std::string subject_of(const X509& certificate) {
  const crypto::OwnedBio text{BIO_new(BIO_s_mem())};
  if (text == nullptr) return {};
  X509_NAME_print_ex(text.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<std::size_t>(std::max(size, 0L))};
}

// A CA must not be able to sign a name that reads as another kind: subjects are written with an
// equals sign in their first word, and neither of these has one there.
bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_' || c == '*';
  });
}

bool is_plain_uri(std::string_view uri) noexcept {
  const std::size_t scheme = uri.find("://");
  return scheme != std::string_view::npos && scheme > 0 && is_plain_name(uri.substr(0, scheme)) &&
         std::ranges::all_of(uri, [](char c) { return c > 0x20 && c < 0x7f; });
}

// As services among themselves are named: spiffe://example.com/billing.
std::string first_alternative_name(const X509& certificate) {
  const crypto::Owned<GENERAL_NAMES, GENERAL_NAMES_free> names{static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI && name->type != GEN_DNS) continue;
    const ASN1_STRING* const text = name->d.ia5;  // which both are
    std::string found{reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<std::size_t>(ASN1_STRING_length(text))};
    if (name->type == GEN_URI ? is_plain_uri(found) : is_plain_name(found)) return found;
  }
  return {};
}

}  // namespace

TlsSession::TlsSession(crypto::OwnedSsl ssl, std::shared_ptr<const TlsServer> server,
                       Socket& socket) noexcept
    : server_(std::move(server)), ssl_(std::move(ssl)), socket_(socket) {}

bool TlsSession::attach() noexcept {
  BIO* const bio = SocketBio::method() != nullptr ? BIO_new(SocketBio::method()) : nullptr;
  if (bio == nullptr) return false;
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  return true;
}

std::unique_ptr<TlsSession> TlsSession::accept(std::shared_ptr<const TlsServer> server,
                                               Socket& socket) {
  crypto::OwnedSsl ssl{SSL_new(server->context_for({}))};
  if (ssl == nullptr) return nullptr;
  SSL_set_accept_state(ssl.get());
  std::unique_ptr<TlsSession> session{new TlsSession{std::move(ssl), std::move(server), socket}};
  return session->attach() ? std::move(session) : nullptr;
}

std::unique_ptr<TlsSession> TlsSession::connect(const TlsClient& client, Socket& socket,
                                                const std::string& host) {
  crypto::OwnedSsl ssl = client.new_ssl(host);
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsSession> session{new TlsSession{std::move(ssl), nullptr, socket}};
  return session->attach() ? std::move(session) : nullptr;
}

IoResult TlsSession::handshake() noexcept {
  forget_errors();
  const int returned = SSL_do_handshake(ssl_.get());
  return returned == 1 ? IoResult::done() : explain(returned);
}

IoResult TlsSession::read(std::span<char> into) noexcept {
  if (into.empty()) return IoResult::done();  // OpenSSL takes it for an error
  forget_errors();
  std::size_t bytes = 0;
  const int returned = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
  return returned == 1 ? IoResult::done(bytes) : explain(returned);
}

IoResult TlsSession::write_one(std::span<const char> bytes) noexcept {
  if (bytes.empty()) return IoResult::done();
  forget_errors();
  std::size_t written = 0;
  const int returned = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
  return returned == 1 ? IoResult::done(written) : explain(returned);
}

// Several parts become one record: a copy costs less than another record and system call. Always
// as much as fits, so that a repeated attempt never offers less than the first.
IoResult TlsSession::write(std::span<const iovec> parts) noexcept {
  if (parts.size() == 1) {
    return write_one({static_cast<const char*>(parts[0].iov_base), parts[0].iov_len});
  }
  std::array<char, kRecordMax> record;  // not cleared: only what is filled is read
  return write_one({record.data(), gather(parts, record)});
}

IoResult TlsSession::explain(int returned) noexcept {
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return IoResult::would_block();
    case SSL_ERROR_ZERO_RETURN: return IoResult::closed();
    default: break;
  }
  broken_ = true;
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  forget_errors();
  if (socket_failure_.kind != IoFailure::Kind::none) return IoResult::failed(socket_failure_);
  if (error == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return IoResult::failed({.kind = IoFailure::Kind::truncated});
  }
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return IoResult::failed(
        {.kind = IoFailure::Kind::certificate,
         .code = static_cast<unsigned long>(SSL_get_verify_result(ssl_.get()))});
  }
  return IoResult::failed({.kind = IoFailure::Kind::tls, .code = error});
}

void TlsSession::finish_writing() noexcept {
  if (broken_ || SSL_is_init_finished(ssl_.get()) == 0) return;
  forget_errors();
  (void)SSL_shutdown(ssl_.get());
  forget_errors();
}

std::string_view TlsSession::protocol() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string_view TlsSession::version() const noexcept {
  return SSL_is_init_finished(ssl_.get()) == 1 ? SSL_get_version(ssl_.get()) : "";
}

std::string_view TlsSession::server_name() const noexcept {
  const char* const name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name != nullptr ? name : "";
}

bool TlsSession::is_resumed() const noexcept { return SSL_session_reused(ssl_.get()) == 1; }

std::string TlsSession::peer_subject() const {
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr) return {};
  std::string subject = subject_of(*certificate);
  return subject.empty() ? first_alternative_name(*certificate) : subject;
}

std::string TlsSession::verified_subject() const {
  const bool is_verified = (SSL_get_verify_mode(ssl_.get()) & SSL_VERIFY_PEER) != 0 &&
                           SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  return is_verified ? peer_subject() : std::string{};
}

WallTime TlsSession::peer_valid_until() const noexcept {
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr) return kWallTimeEnd;
  std::tm date{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &date) != 1) return WallTime{};
  const std::chrono::seconds until{::timegm(&date)};  // years up to 9999: no overflow in seconds
  const std::chrono::seconds end{
      std::chrono::floor<std::chrono::seconds>(kWallTimeEnd.time_since_epoch())};
  return WallTime{std::min(until, end)};
}

}  // namespace sluice::net
