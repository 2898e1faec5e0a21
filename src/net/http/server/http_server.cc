#include "net/http/server/http_server.h"

#include "net/http/server/http_connection.h"

#include <array>

namespace sluice::net {

HttpServer::HttpServer(EventLoop& loop, const HttpRoutes& routes, HttpServerOptions options)
    : loop_(loop), routes_(routes), options_(std::move(options)), lingering_(loop) {}

// A handler that hears of its client's end may respond to others, which moves them to a list that
// was emptied before.
HttpServer::~HttpServer() {
  while (count_ > 0) {
    for (List<HttpConnection>* const list : {&waiting_, &handled_, &responding_, &long_lived_}) {
      while (HttpConnection* const connection = list->front()) destroy(*connection);
    }
  }
}

// Clients that do not read must not keep probes out. They are closed before waiting clients, among
// which is the probe that arrived a moment ago; but not at once, since a long response takes a few
// turns even to a client that reads.
void HttpServer::make_room() noexcept {
  if (count_ < options_.connections_max) return;
  ++counts_.evicted;
  HttpConnection* const slowest = responding_.front();
  const bool is_stuck =
      slowest != nullptr && loop_.now().mono - slowest->last_progress() >= options_.stuck_after;
  if (is_stuck) return destroy(*slowest);
  for (List<HttpConnection>* const list : {&waiting_, &responding_, &handled_, &long_lived_}) {
    if (HttpConnection* const oldest = list->front()) return destroy(*oldest);
  }
}

void HttpServer::accept(Accepted accepted) { add(std::move(accepted), nullptr); }

// Without a context there is nothing to encrypt with, and nothing is served in clear instead.
void HttpServer::accept_tls(Accepted accepted) {
  if (tls_ != nullptr) add(std::move(accepted), tls_);
}

void HttpServer::use_tls(std::shared_ptr<const TlsServer> tls) {
  tls_ = std::move(tls);
  const TlsServer::ClientTrust before = std::exchange(
      client_trust_, tls_ != nullptr ? tls_->client_trust() : TlsServer::ClientTrust{});
  if (client_trust_ != before) close_leaving();
}

void HttpServer::add(Accepted accepted, std::shared_ptr<const TlsServer> tls) {
  make_room();
  auto made = std::make_unique<HttpConnection>(*this, accepted.peer);
  HttpConnection& connection = *made.release();
  ++count_;
  ++counts_.connections;
  waiting_.push_back(connection);
  if (!connection.open(std::move(accepted.descriptor), std::move(tls))) destroy(connection);
}

void HttpServer::destroy(HttpConnection& connection) noexcept {
  --count_;
  delete &connection;
}

void HttpServer::drain() {
  is_draining_ = true;
  close_leaving();
}

// A handler that hears of the end of its request may respond to others, which then leave whatever
// list they are in: each is looked up again, and returns to its list before it is told.
void HttpServer::close_leaving() {
  for (List<HttpConnection>* const list : {&waiting_, &long_lived_}) {
    List<HttpConnection> left;
    left.take(*list);
    while (HttpConnection* const connection = left.front()) {
      list->push_back(*connection);
      if (connection->is_leaving()) connection->drain();
    }
  }
}

HttpResponse HttpServer::error(std::uint16_t status, std::string_view why) const {
  if (options_.error_response) return options_.error_response(status, why);
  return text_response(status, std::string{why} + "\n");
}

}  // namespace sluice::net
