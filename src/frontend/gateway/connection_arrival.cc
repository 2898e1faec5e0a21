// Before the first request: the PROXY protocol header and the TLS handshake.
#include "base/text_writer.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"
#include "identity/proxy_protocol.h"

#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace sluice::gateway {

void Connection::set_peer(net::Peer peer) noexcept {
  peer_ = peer;
  TextWriter text{peer_bytes_};
  text.address(peer.address);
  peer_text_ = text.text();
}

void Connection::set_port(std::uint16_t port) noexcept {
  char* const begin = port_bytes_.data();
  port_text_ = {};
  if (port == 0) return;
  port_text_ = {begin, std::to_chars(begin, begin + port_bytes_.size(), port).ptr};
}

bool Connection::open(FileDescriptor descriptor) {
  if (stream_.open(gateway_.loop_, std::move(descriptor)).is_failed()) return false;
  arm(options().header_timeout);
  if (phase_ == Phase::announced) return true;
  counted_ = gateway_.count(peer_.address);
  return counted_ && start_tls();
}

bool Connection::start_tls() {
  trust_ = gateway_.trust_;
  return gateway_.tls_ == nullptr || stream_.start_tls(gateway_.tls_);
}

// Reads the PROXY protocol header, which is mandatory where it is expected. Peeks, then consumes
// exactly the header: the next bytes are the handshake or the first request.
Connection::Step Connection::hear_announcement() {
  std::array<char, identity::kProxyHeaderBytesMax> bytes;  // not cleared: only filled bytes count
  const net::IoResult seen = stream_.peek(bytes);
  if (seen.is_blocked()) return Step::wait;
  if (!seen.is_done()) return Step::gone;
  const identity::ProxyParse parsed = identity::parse_proxy_header({bytes.data(), seen.bytes});
  using State = identity::ProxyParse::State;
  if (parsed.state == State::need_more && !stream_.peer_hung_up()) {
    stream_.wait_for_more();
    return Step::wait;
  }
  if (parsed.state != State::done) {
    ++gateway_.counts_.faults;
    return cut();
  }
  (void)stream_.read(std::span{bytes}.first(parsed.consumed));
  if (parsed.header.has_addresses) {
    set_peer({.address = parsed.header.source, .port = parsed.header.source_port});
    set_port(parsed.header.destination_port);
  }
  counted_ = gateway_.count(peer_.address);
  if (!counted_ || !start_tls()) return cut();
  phase_ = Phase::handshake;
  arm(options().header_timeout);
  return Step::again;
}

Connection::Step Connection::shake_hands() {
  const net::IoResult result = stream_.establish();
  if (result.is_blocked()) return Step::wait;
  if (!result.is_done()) return is_plain_http(result) ? explain_tls() : Step::gone;
  if (stream_.tls() != nullptr) {
    tls_subject_ = stream_.tls()->verified_subject();
    if (!tls_subject_.empty()) certificate_until_ = stream_.tls()->peer_valid_until();
  }
  phase_ = Phase::idle;
  arm(is_leaving() ? kFarewell : options().header_timeout);
  return Step::again;
}

bool Connection::is_plain_http(const net::IoResult& handshake) const noexcept {
  return handshake.is_failed() && handshake.why.kind == net::IoFailure::Kind::tls &&
         stream_.tls() != nullptr && stream_.tls()->began_as_http();
}

// Explains to a client of plain HTTP that this port expects TLS. None of its request is read.
Connection::Step Connection::explain_tls() {
  stream_.drop_tls();
  ++gateway_.counts_.faults;
  begin_exchange();
  keep_alive_ = false;
  return answer(400, "this port speaks TLS: use https");
}

}  // namespace sluice::gateway
