// HTTP/1.1 for everything that is not the proxy path: whole requests in, responses out, at once,
// later or in pieces.
//
// Strict (the codec of net/http rejects whatever two readers could understand differently) and
// bounded: sizes and counts of headers, bodies, buffered pieces, connections, requests on one, and
// every wait have a maximum. A newcomer is always let in: where there are too many connections, one
// gives way, first one that does not take its response, then the one that has sent nothing for
// longest. Long polls and streams have a cap of their own, so that they cannot use up what probes
// need. Requests that a client sends ahead are answered in order, one per turn of the loop, so that
// others have their turn.
//
// One thread, that of the loop; loop and routes outlive the server. It does not listen itself: its
// owner hands it connections.
#pragma once

#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/fault.h"
#include "net/http/http_response.h"
#include "net/http/server/http_routes.h"
#include "net/intrusive_list.h"
#include "net/lingering.h"
#include "net/tls_server.h"
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice::net {

class HttpConnection;

struct HttpServerOptions {
  HeadLimits head{.start_line_bytes = 8192, .header_bytes = 16384, .headers = 64};
  std::size_t body_bytes_max = std::size_t{1} << 20U;  // of a request; beyond: 413
  std::size_t stream_bytes_max = std::size_t{256}
                                 << 10U;  // of a stream that the client left unread

  // From the connection, or the first byte of a later request, on.
  Nanos header_timeout{std::chrono::seconds{10}};   // until the headers are complete
  Nanos request_timeout{std::chrono::seconds{10}};  // until the body is; not the shorter of the two
  Nanos response_timeout{std::chrono::seconds{30}};   // a handler has to respond
  Nanos keepalive_timeout{std::chrono::seconds{75}};  // longer than most scrapers pause
  Nanos send_timeout{std::chrono::seconds{10}};       // a client has to take some bytes
  Nanos stuck_after{std::chrono::seconds{1}};         // without taking any: the first to give way

  std::size_t connections_max = 64;
  std::size_t long_lived_max = 16;    // below connections_max; beyond: 503
  std::uint32_t requests_max = 1000;  // on one connection, which is then closed

  // Whether a connection is closed behind a response of 4xx: guessing takes a connection each.
  bool close_after_client_error = false;
  // Written into every response that does not set them itself.
  HttpHeaders headers;
  // Called when the headers of a request are complete. A response rejects the request, whose body
  // is then not waited for.
  std::function<std::optional<HttpResponse>(const HttpRequest&, const RouteMatch&)> filter;
  // Makes the body of the server's own responses; without one they are plain text.
  std::function<HttpResponse(std::uint16_t status, std::string_view why)> error_response;
};

struct HttpServerCounts {
  std::uint64_t connections = 0;
  std::uint64_t requests = 0;   // whose headers were understood
  std::uint64_t malformed = 0;  // requests that were not
  std::uint64_t timed_out = 0;  // of requests, responses and clients that take none
  std::uint64_t evicted = 0;    // connections that gave way
  std::uint64_t long_lived_rejected = 0;
  std::uint64_t pieces_rejected = 0;    // of streams whose clients read too slowly
  std::uint64_t invalid_responses = 0;  // of handlers, that cannot be written: 500 instead
};

class HttpServer {
 public:
  HttpServer(EventLoop& loop, const HttpRoutes& routes, HttpServerOptions options = {});
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  void accept(Accepted accepted);
  // With what use_tls was given last; closed at once where that was nothing.
  void accept_tls(Accepted accepted);
  // Where other clients are trusted than before, connections under TLS close as by drain().
  void use_tls(std::shared_ptr<const TlsServer> tls);

  // Closes every connection as soon as its request has its response: idle ones at once, long polls
  // with the response of their deadline, streams at their present end. Connections that come later
  // get one response.
  void drain();

  // Those that only wait for the client to have read the last response included.
  [[nodiscard]] std::size_t connections() const noexcept { return count_ + lingering_.size(); }
  [[nodiscard]] std::size_t long_lived() const noexcept { return long_lived_count_; }
  [[nodiscard]] const HttpServerCounts& counts() const noexcept { return counts_; }

 private:
  friend class HttpConnection;
  void add(Accepted accepted, std::shared_ptr<const TlsServer> tls);
  void make_room() noexcept;
  void close_leaving();
  void destroy(HttpConnection& connection) noexcept;
  [[nodiscard]] HttpResponse error(std::uint16_t status, std::string_view why) const;

  EventLoop& loop_;
  const HttpRoutes& routes_;
  const HttpServerOptions options_;
  std::shared_ptr<const TlsServer> tls_;
  TlsServer::ClientTrust client_trust_{};
  LingeringCloser lingering_;
  bool is_draining_ = false;
  std::size_t count_ = 0;
  std::size_t long_lived_count_ = 0;
  HttpServerCounts counts_;

  // Every connection is in one of these, and owned by it. The oldest are first.
  List<HttpConnection> waiting_;     // for all of a request
  List<HttpConnection> handled_;     // by a handler that has not responded
  List<HttpConnection> responding_;  // without progress for longest first
  List<HttpConnection> long_lived_;
};

}  // namespace sluice::net
