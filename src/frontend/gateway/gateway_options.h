// Options of a gateway: where it forwards requests, not where it listens.
//
// Plain data, checked by the reader of the configuration. Immutable once the gateway has it.
#pragma once

#include "frontend/access_log/log_secrets.h"
#include "frontend/gateway/forwarding.h"
#include "frontend/metrics/request_meters.h"
#include "frontend/responses/answers.h"
#include "identity/ip_range_set.h"
#include "net/endpoint.h"
#include "net/http/fault.h"
#include "net/tls_client.h"
#include "rules/path_template.h"
#include <sluice/time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::gateway {

enum class Balance : std::uint8_t { round_robin, least_connections, client_hash };

struct ServerOptions {
  net::Endpoint endpoint;
  std::uint32_t weight = 1;

  friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

struct UpstreamOptions {
  std::string name;
  std::vector<ServerOptions> servers;
  Balance balance = Balance::round_robin;
  // The most idle connections to each server, per worker. Nothing: the recent peak of connections
  // in use at once.
  std::optional<std::size_t> keepalive_connections;
  Nanos keepalive_timeout{std::chrono::seconds{50}};  // less than a server's, as a rule 60 s
  Nanos connect_timeout{std::chrono::seconds{3}};
  Nanos send_timeout{std::chrono::seconds{30}};      // between two bytes of the request being taken
  Nanos response_timeout{std::chrono::seconds{30}};  // from the last byte of the request on
  Nanos read_timeout{std::chrono::seconds{30}};      // between two bytes of the response
  Nanos request_timeout{0};  // from forwarding a request to the end of its response; 0: none
  std::uint32_t max_consecutive_failures = 3;  // of one address, which is then ejected
  Nanos ejection_time{std::chrono::seconds{10}};
  std::uint32_t retries = 1;                  // only if nothing can happen twice
  std::shared_ptr<const net::TlsClient> tls;  // null: plain
  std::string tls_server_name;  // for SNI and verification; empty: host_header, or the server's
  std::string host_header;      // for Host; empty: the client's
  std::shared_ptr<const frontend::UpstreamMeters> meters;  // null: not counted

  friend bool operator==(const UpstreamOptions&, const UpstreamOptions&) = default;
};

// Whether an upstream survives a reload, with its connections and the state of its servers. Under
// TLS never: the trusted CAs may have changed.
[[nodiscard]] inline bool is_same_upstream(const UpstreamOptions& before, UpstreamOptions now) {
  now.meters = before.meters;  // of the same name, so they count the same
  return now.tls == nullptr && now == before;
}

// Names of the upstreams that do not survive a reload.
[[nodiscard]] inline std::vector<std::string> replaced_upstreams(
    std::span<const UpstreamOptions> before, std::span<const UpstreamOptions> now) {
  std::vector<std::string> replaced;
  for (const UpstreamOptions& one : before) {
    const auto next = std::ranges::find(now, one.name, &UpstreamOptions::name);
    if (next == now.end() || !is_same_upstream(one, *next)) replaced.push_back(one.name);
  }
  return replaced;
}

struct RouteOptions {
  std::vector<std::string> hosts;           // lower case, *.example.com for all below; empty: any
  std::optional<rules::PathTemplate> path;  // absent: any
  std::size_t upstream = 0;                 // its index
};

// One listening socket of a gateway, as connections come through it.
struct Entrance {
  std::uint16_t port = 0;       // 0: none, a Unix socket
  bool proxy_protocol = false;  // trusted load balancers name the client first
};

struct GatewayOptions {
  std::vector<UpstreamOptions> upstreams;
  std::vector<RouteOptions> routes;

  net::HeadLimits head{.start_line_bytes = 8192, .header_bytes = 16384, .headers = 100};
  std::uint64_t max_body_size = 0;  // 0: any
  Nanos header_timeout{
      std::chrono::seconds{10}};  // from the first byte of the headers, or the connection
  Nanos keepalive_timeout{std::chrono::seconds{60}};     // between two requests
  Nanos upload_rate_interval{std::chrono::seconds{10}};  // an upload is measured in each of these
  std::uint64_t min_upload_rate = 200;
  Nanos download_rate_interval{
      std::chrono::seconds{30}};  // a client takes at least one byte in each
  std::uint64_t min_download_rate = 200;
  std::uint32_t keepalive_requests = 10'000;
  std::uint32_t max_connections_per_worker = 50'000;  // of each worker
  std::uint32_t max_connections_per_ip = 0;           // of the process; 0: any number
  std::shared_ptr<const frontend::Answers> answers;   // the gateway's own responses
  bool trusts_request_ids = false;                    // ids from clients are forwarded
  bool adds_via = true;                               // to requests and responses
  ForwardedHeaders forwarded_headers = ForwardedHeaders::x_forwarded;
  bool generate_traces = false;  // for requests without a trace context, or with a malformed one
  bool samples_traces = true;    // the generated ones
  identity::IpRangeSet trusted_proxies;  // that may use the PROXY protocol
  // Headers that identify clients, in lower case. With _ for - they are dropped.
  std::vector<std::string> identifying_headers;
  // The header with the client's address from trusted proxies, in lower case; empty: none.
  std::string client_ip_header;
  frontend::LogSecrets log_secrets;  // what the log hides of requests
};

}  // namespace sluice::gateway
