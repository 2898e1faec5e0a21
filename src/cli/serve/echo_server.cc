#include "cli/serve/echo_server.h"

#include "base/text.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/server/http_server.h"
#include "net/listen.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <limits>
#include <string>
#include <thread>
#include <utility>

namespace sluice::cli {
namespace {

// The status to respond with: /status/418 is answered with 418.
std::uint16_t wanted_status(std::string_view path) noexcept {
  constexpr std::string_view kPrefix = "/status/";
  if (!path.starts_with(kPrefix)) return 200;
  path.remove_prefix(kPrefix.size());
  std::uint16_t status = 0;
  const auto end = std::from_chars(path.data(), path.data() + path.size(), status);
  return end.ec == std::errc{} && status >= 200 && status < 600 ? status : 200;
}

net::HttpResponse echoed(const net::HttpRequest& request) {
  std::string text =
      fmt::format(R"({{"method":{},"path":{},"body_bytes":{},"headers":{{)",
                  json_string(request.method), json_string(request.target), request.body.size());
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    text += fmt::format("{}{}:{}", i == 0 ? "" : ",", json_string(request.headers[i].name),
                        json_string(request.headers[i].value));
  }
  return {.status = wanted_status(request.target),
          .headers = {{"content-type", "application/json"}},
          .body = text + "}}\n"};
}

// Its only client is the gateway, whose own limits are to show, not these.
net::HttpServerOptions echo_options() {
  constexpr Nanos kLong{std::chrono::hours{1}};
  net::HttpServerOptions options;
  options.head = {};
  options.body_bytes_max = std::size_t{64} << 20U;
  options.header_timeout = options.request_timeout = kLong;
  options.keepalive_timeout = options.send_timeout = kLong;
  options.connections_max = 4096;
  options.requests_max = std::numeric_limits<std::uint32_t>::max();
  return options;
}

}  // namespace

class EchoServer::Inside {
 public:
  Inside(std::unique_ptr<net::EventLoop> loop, net::Listener listener)
      : loop_(std::move(loop)),
        listener_(std::move(listener)),
        server_(*loop_, routes_, echo_options()),
        acceptor_(net::Callback<net::Accepted>::to<&net::HttpServer::accept>(server_)) {
    routes_.set_fallback(echoed);
    (void)acceptor_.start(*loop_, listener_.descriptor());
    // Signals are for others: a thread begins with what the one that makes it has blocked.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::jthread{[this] { loop_->run(); }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    loop_->stop();
    thread_.join();
  }
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return listener_.endpoint(); }

 private:
  std::unique_ptr<net::EventLoop> loop_;
  net::Listener listener_;
  net::HttpRoutes routes_;
  net::HttpServer server_;
  net::Acceptor acceptor_;
  std::jthread thread_;
};

EchoServer::EchoServer(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
EchoServer::~EchoServer() = default;

const net::Endpoint& EchoServer::endpoint() const noexcept { return inside_->endpoint(); }

Parsed<std::unique_ptr<EchoServer>> EchoServer::start(const Clock& clock) {
  auto loop = net::EventLoop::create(clock);
  if (!loop) return tl::unexpected(std::move(loop.error()));
  auto listener = net::listen_on(net::Endpoint::of(IpAddress::v4(0x7f000001U), 0));
  if (!listener) return tl::unexpected(std::move(listener.error()));
  return std::unique_ptr<EchoServer>{
      new EchoServer{std::make_unique<Inside>(*std::move(loop), *std::move(listener))}};
}

}  // namespace sluice::cli
