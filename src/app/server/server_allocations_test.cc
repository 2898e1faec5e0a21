// A request over a connection that stays costs no allocation, from its first byte to its line of
// the access log. A program of its own, since it counts them.

#include "app/server/worker_fixture.h"
#include "support/counted_new.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::app {
namespace {

using sluice::testing::allocations;

class ServerAllocations : public ::testing::Test {
 protected:
  // Of many requests, once there were some.
  [[nodiscard]] std::uint64_t allocations_of(std::string_view request, std::string_view status,
                                             std::string_view end) {
    constexpr int kWarm = 100;
    constexpr int kCounted = 500;
    std::uint64_t before = 0;
    for (int i = 0; i < kWarm + kCounted; ++i) {
      if (i == kWarm) before = allocations();
      if (!client_.ask(request, end).starts_with(status)) throw std::runtime_error{"not answered"};
    }
    return allocations() - before;
  }

  static constexpr std::string_view kFile = R"(
listen: {{gateway: '127.0.0.1:0'}}
state: {{memory: 4MiB}}
upstreams: {{app: {{servers: ['127.0.0.1:{}'], balance: least_connections}}}}
routes: [{{path: '/**', upstream: app}}]
access_log: {{file: /dev/null, format: json}}
gateway: {{tracing: {{generate: true}}}}
rules:
  - {{name: each, per: ip, limit: {{rate: 1000000/1s, burst: 1000000}}}}
  - {{name: dear, match: {{path: '/v1/{{kind}}/**'}}, per: [ip, path.kind],
     limit: 1000000/1h, cost: 3}}
  - {{name: at-once, per: ip, limit: {{max_concurrent: 10}}}}
  - {{name: failures, per: ip, limit: 1000/1m, count: {{status: [500]}}}}
  - {{name: named, match: {{cookie: {{plan: free}}}}, per: header.user-agent, limit: 1000000/1h}}
  - {{name: closed, match: {{path: /closed}}, per: ip, limit: 1/1h}}
)";

  const SystemClock clock_;
  net::Listener of_app_ = net::listen_on(net::testing::free_port()).value();
  fixture::OneWorker worker_{fmt::format(kFile, of_app_.endpoint().port), clock_};
  fixture::Upstream app_{*worker_.loop, std::move(of_app_)};
  fixture::Client client_{*worker_.loop, worker_.endpoint};
};

constexpr std::string_view kHeaders =
    "Host: api.example.com\r\nUser-Agent: curl/7.88.1\r\nAccept: application/json\r\n"
    "X-Api-Key: 0123456789abcdef0123456789abcdef\r\nCookie: theme=dark; plan=free\r\n";

TEST_F(ServerAllocations, ARequestThatIsPassedOnNeedsNone) {
  const std::string request =
      fmt::format("GET /v1/things/17?page=2&sort=name HTTP/1.1\r\n{}\r\n", kHeaders);
  EXPECT_EQ(allocations_of(request, "HTTP/1.1 200", "\r\n\r\nhello"), 0U);
}

TEST_F(ServerAllocations, ABodyNeedsNone) {
  app_.end_of_request = "the end";
  const std::string request = fmt::format(
      "POST /v1/things HTTP/1.1\r\n{}Content-Length: 3007\r\n\r\n{:x<3000}the end", kHeaders, "");
  EXPECT_EQ(allocations_of(request, "HTTP/1.1 200", "\r\n\r\nhello"), 0U);
}

TEST_F(ServerAllocations, ARefusalNeedsNone) {
  const std::string request = fmt::format("GET /closed HTTP/1.1\r\n{}\r\n", kHeaders);
  EXPECT_NE(client_.ask(request, "\r\n\r\nhello"), "");
  EXPECT_EQ(allocations_of(request, "HTTP/1.1 429", "}"), 0U);
}

}  // namespace
}  // namespace sluice::app
