// A request over a connection that stays costs no allocation, from its first byte to its line of
// the access log. A program of its own, since it counts them. All of a worker runs in this thread.

#include "app/configuration.h"
#include "app/engine_room.h"
#include "app/listeners.h"
#include "app/server_worker.h"
#include "frontend/request_meters.h"
#include "frontend/server_metrics.h"
#include "net/net_fixture.h"
#include "support/counted_new.h"
#include "support/temp_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace sluice::app {
namespace {

using net::testing::turn_until;
using sluice::testing::allocations;

// Reads whatever comes into one buffer.
class Reader {
 public:
  [[nodiscard]] std::string_view text() const noexcept { return {bytes_.data(), size_}; }
  void clear() noexcept { size_ = 0; }
  void read(net::Stream& stream) noexcept {
    const net::IoResult result = stream.read(std::span{bytes_}.subspan(size_));
    if (result.is_done()) size_ += result.bytes;
  }

 private:
  std::array<char, 8192> bytes_{};
  std::size_t size_ = 0;
};

// Answers every request in the same way, on one connection.
class Upstream {
 public:
  Upstream(net::EventLoop& loop, const std::string& path)
      : loop_(loop), listener_(net::listen_on(*net::Endpoint::parse("unix:" + path)).value()) {
    if (!acceptor_.start(loop, listener_.descriptor())) std::abort();
  }
  std::string_view end_of_request = "\r\n\r\n";

 private:
  void on_accepted(net::Accepted accepted) {
    if (!stream_.open(loop_, std::move(accepted.descriptor)).is_done()) std::abort();
  }
  void on_ready() {
    heard_.read(stream_);
    if (!heard_.text().ends_with(end_of_request)) return;
    heard_.clear();
    (void)stream_.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Made-By: app\r\n\r\nhello");
  }

  net::EventLoop& loop_;
  net::Listener listener_;
  net::Acceptor acceptor_{net::Callback<net::Accepted>::to<&Upstream::on_accepted>(*this)};
  net::Stream stream_{net::Callback<>::to<&Upstream::on_ready>(*this)};
  Reader heard_;
};

class Client {
 public:
  Client(net::EventLoop& loop, const net::Endpoint& server) : loop_(loop) {
    FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const auto address = net::SocketAddress::of(server.address, server.port);
    if (::connect(socket.get(), address.get(), address.size()) != 0) std::abort();
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    if (!stream_.open(loop, std::move(socket)).is_done()) std::abort();
  }

  // The whole answer, which ends so.
  [[nodiscard]] std::string_view ask(std::string_view request, std::string_view end) {
    answer_.clear();
    (void)stream_.write(request);
    if (!turn_until(loop_, [&] { return answer_.text().ends_with(end); })) return {};
    return answer_.text();
  }

 private:
  void on_ready() { answer_.read(stream_); }

  net::EventLoop& loop_;
  net::Stream stream_{net::Callback<>::to<&Client::on_ready>(*this)};
  Reader answer_;
};

class ServerAllocations : public ::testing::Test {
 protected:
  ServerAllocations() {
    frontend::declare_server_metrics(registry_);
    config::Diagnostics diagnostics;
    const Configuration configuration =
        read_configuration(fmt::format(kFile, folder_.file("app")), "sluice.yaml", diagnostics);
    meters_.emplace(registry_, "gateway");
    room_ = EngineRoom::open(configuration, clock_, diagnostics, &registry_);
    if (!diagnostics.ok()) throw std::runtime_error{diagnostics.text()};
    auto loop = net::EventLoop::create(clock_).value();
    loop_ = loop.get();
    worker_ = std::make_unique<ServerWorker>(
        ServerWorker::Parts{.loop = std::move(loop),
                            .resolver = resolver_,
                            .room = *room_,
                            .meters = *meters_,
                            .who = {.say = [](const auto&) {}, .warn = [](const auto&) {}},
                            .workers = 1,
                            .shard = 0},
        configuration.serve.access_log,
        ServerWorker::Serving{
            .options = std::make_shared<const gateway::GatewayOptions>(configuration.serve.gateway),
            .tls = nullptr});
    OpenListeners open = open_listeners(configuration.serve.listen.gateway, {}, 1).value();
    const net::Endpoint endpoint = open.of_worker[0][0].listener.endpoint();
    if (!worker_->listen(std::move(open.of_worker[0][0]))) std::abort();
    app_.emplace(*loop_, folder_.file("app"));
    client_.emplace(*loop_, endpoint);
  }
  ~ServerAllocations() override {
    client_.reset();
    app_.reset();
  }

  // Of many requests, once there were some.
  [[nodiscard]] std::uint64_t allocations_of(std::string_view request, std::string_view status,
                                             std::string_view end) {
    constexpr int kWarm = 100;
    constexpr int kCounted = 500;
    std::uint64_t before = 0;
    for (int i = 0; i < kWarm + kCounted; ++i) {
      if (i == kWarm) before = allocations();
      if (!client_->ask(request, end).starts_with(status)) throw std::runtime_error{"not answered"};
    }
    return allocations() - before;
  }

  static constexpr std::string_view kFile = R"(
listen: {{gateway: '127.0.0.1:0'}}
workers: 1
state: {{memory: 4MiB}}
upstreams: {{app: {{servers: ['unix:{}'], balance: least_connections}}}}
routes: [{{path: '/**', upstream: app}}]
access_log: {{file: /dev/null, format: json}}
gateway: {{tracing: {{start: true}}}}
rules:
  - {{name: each, per: ip, limit: {{rate: 1000000/1s, burst: 1000000}}}}
  - {{name: dear, match: {{path: '/v1/{{kind}}/**'}}, per: [ip, path.kind],
     limit: 1000000/1h, cost: 3}}
  - {{name: at-once, per: ip, limit: {{concurrent: 10}}}}
  - {{name: failures, per: ip, limit: 1000/1m, count: {{status: [500]}}}}
  - {{name: closed, match: {{path: /closed}}, per: ip, limit: 1/1h}}
)";

  const sluice::testing::TempFolder folder_;
  const SystemClock clock_;
  net::Resolver resolver_;
  metrics::Registry registry_{2};
  std::optional<const frontend::RequestMeters> meters_;
  std::unique_ptr<EngineRoom> room_;
  std::unique_ptr<ServerWorker> worker_;
  net::EventLoop* loop_ = nullptr;
  std::optional<Upstream> app_;
  std::optional<Client> client_;
};

constexpr std::string_view kHeaders =
    "Host: api.example.com\r\nUser-Agent: curl/7.88.1\r\nAccept: application/json\r\n"
    "X-Api-Key: 0123456789abcdef0123456789abcdef\r\nAccept-Encoding: gzip\r\n";

TEST_F(ServerAllocations, ARequestThatIsPassedOnNeedsNone) {
  const std::string request =
      fmt::format("GET /v1/things/17?page=2&sort=name HTTP/1.1\r\n{}\r\n", kHeaders);
  EXPECT_EQ(allocations_of(request, "HTTP/1.1 200", "\r\n\r\nhello"), 0U);
}

TEST_F(ServerAllocations, ABodyNeedsNone) {
  app_->end_of_request = "the end";
  const std::string request = fmt::format(
      "POST /v1/things HTTP/1.1\r\n{}Content-Length: 3007\r\n\r\n{:x<3000}the end", kHeaders, "");
  EXPECT_EQ(allocations_of(request, "HTTP/1.1 200", "\r\n\r\nhello"), 0U);
}

TEST_F(ServerAllocations, ARefusalNeedsNone) {
  const std::string request = fmt::format("GET /closed HTTP/1.1\r\n{}\r\n", kHeaders);
  EXPECT_NE(client_->ask(request, "\r\n\r\nhello"), "");
  EXPECT_EQ(allocations_of(request, "HTTP/1.1 429", "}"), 0U);
}

}  // namespace
}  // namespace sluice::app
