// What a gateway is told: where to listen is not its affair, where to pass requests on is.
//
// Plain data, checked by whoever reads the configuration. Immutable once the gateway has it.
#pragma once

#include "frontend/answers.h"
#include "frontend/gateway/forwarding.h"
#include "frontend/request_meters.h"
#include "identity/ip_range_set.h"
#include "net/endpoint.h"
#include "net/http/fault.h"
#include "net/tls_client.h"
#include "rules/path_template.h"
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::gateway {

enum class Balance : std::uint8_t { round_robin, least_connections, hash };

struct ServerOptions {
  net::Endpoint endpoint;
  std::uint32_t weight = 1;

  friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

struct UpstreamOptions {
  std::string name;
  std::vector<ServerOptions> servers;
  Balance balance = Balance::round_robin;
  // Idle connections to each server, of each worker: at most as many. Nothing: as many as were in
  // use at once lately.
  std::optional<std::size_t> keep_alive;
  Nanos idle_for{std::chrono::seconds{50}};  // less than servers wait, as a rule 60 s
  Nanos connect_within{std::chrono::seconds{3}};
  Nanos send_timeout{std::chrono::seconds{30}};   // between two bytes of the request being taken
  Nanos answer_within{std::chrono::seconds{30}};  // from the last byte of the request on
  Nanos silent_for{std::chrono::seconds{30}};     // between two bytes of the answer
  Nanos total{0};              // from passing a request on to the end of its answer; 0: any time
  std::uint32_t failures = 3;  // in a row, then a server is left alone for a while
  Nanos left_alone_for{std::chrono::seconds{10}};
  std::uint32_t retries = 1;                               // only where nothing can happen twice
  std::shared_ptr<const net::TlsClient> tls;               // null: plain
  std::string host;                                        // for Host; empty: the client's
  std::shared_ptr<const frontend::UpstreamMeters> meters;  // null: nobody counts

  friend bool operator==(const UpstreamOptions&, const UpstreamOptions&) = default;
};

struct RouteOptions {
  std::vector<std::string> hosts;           // lower case, *.example.com for all below; empty: any
  std::optional<rules::PathTemplate> path;  // absent: any
  std::size_t upstream = 0;                 // its number
};

// One listening socket of a gateway, as connections come through it.
struct Entrance {
  std::uint16_t port = 0;       // 0: it has none, being a Unix socket
  bool proxy_protocol = false;  // trusted load balancers say first whom they speak for
};

struct GatewayOptions {
  std::vector<UpstreamOptions> upstreams;
  std::vector<RouteOptions> routes;

  net::HeadLimits head{.start_line_bytes = 8192, .header_bytes = 16384, .headers = 100};
  std::uint64_t body_bytes_max = 0;             // 0: any
  Nanos head_within{std::chrono::seconds{10}};  // from its first byte, or from the connection, on
  Nanos idle_for{std::chrono::seconds{60}};     // between two requests
  Nanos body_every{std::chrono::seconds{10}};  // a body has to bring so many bytes in each of these
  std::uint64_t body_bytes_per_second = 200;
  Nanos written_within{std::chrono::seconds{30}};  // a client has to take so many, and at least one
  std::uint64_t written_bytes_per_second = 200;
  std::uint32_t requests_per_connection = 10'000;
  std::uint32_t connections_max = 50'000;            // of each worker
  std::uint32_t connections_per_address = 0;         // of each worker; 0: any number
  std::shared_ptr<const frontend::Answers> answers;  // what is said to clients
  bool trusts_request_ids = false;                   // those of clients are passed on
  bool adds_via = true;                              // to requests and responses
  ForwardedHeaders forwarded_headers = ForwardedHeaders::x_forwarded;
  bool starts_traces = false;  // for requests without a trace context, or with a malformed one
  bool samples_traces = true;  // those that are started
  identity::IpRangeSet trusted_proxies;  // who may speak the PROXY protocol
  // Headers that clients are told apart by, in lower case: with _ for - they do not pass.
  std::vector<std::string> identifying_headers;
};

}  // namespace sluice::gateway
