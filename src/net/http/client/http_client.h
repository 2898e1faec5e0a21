// Requests over HTTP/1.1, asynchronous, on an event loop: for JWKS, the rules service, health
// checks, telemetry and commands.
//
// Connections stay open and are used again, a few to each origin; further requests wait in line. An
// idle connection may have been closed by the server just now, so a request that may be repeated
// (GET, HEAD) is sent once more on a new one. Addresses of a name are tried in turn. Redirects are
// not followed. Everything is bounded: the time to connect, the time of a whole request, sizes of
// headers and bodies, connections, requests in line.
//
// One thread; loop and resolver outlive it. Requests that are in flight when it ends are cancelled.
#pragma once

#include "net/event_loop.h"
#include "net/http/client/client_pool.h"
#include "net/http/client/http_call.h"
#include "net/http/client/http_origin.h"
#include "net/http/fault.h"
#include "net/resolver.h"
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace sluice::net {

struct HttpClientOptions {
  Nanos connect_timeout{std::chrono::seconds{2}};  // for each address, TLS included
  Nanos request_timeout{std::chrono::seconds{5}};  // from `send` to the last byte
  Nanos keepalive_timeout{std::chrono::seconds{30}};
  HeadLimits head;
  std::size_t body_bytes_max = std::size_t{64} << 20U;
  std::size_t connections_max = 4;  // to each origin
  std::size_t waiting_max = 64;     // requests in line for one of these; beyond: failed at once
};

class HttpClient {
 public:
  HttpClient(EventLoop& loop, Resolver& resolver, const HttpClientOptions& options = {});
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  // What the call was at before is cancelled. Its callbacks come later, never from inside.
  void send(const HttpOrigin& origin, const ClientRequest& request, HttpCall& call);

  [[nodiscard]] std::uint64_t connections() const noexcept {
    return connections_;
  }  // opened so far

 private:
  friend class ClientPool;

  [[nodiscard]] ClientPool& pool_of(const HttpOrigin& origin);
  void fail_later(HttpCall& call, HttpFailure failure);

  EventLoop& loop_;
  Resolver& resolver_;
  const HttpClientOptions options_;
  std::uint64_t connections_ = 0;
  std::map<std::string, std::unique_ptr<ClientPool>> pools_;  // that have connections or requests
  List<HttpCall> failed_;                                     // and are about to hear of it
};

}  // namespace sluice::net
