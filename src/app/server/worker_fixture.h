// One worker of the server in the thread of a test, between an upstream and a client of its own.
// None of the three allocates on the way of a request.
#pragma once

#include "app/config/configuration.h"
#include "app/config/frontends.h"
#include "app/server/listeners.h"
#include "app/server/logged_fields.h"
#include "app/server/server_worker.h"
#include "app/server/snapshot.h"
#include "app/server/worker_report.h"
#include "base/published.h"
#include "embed/engine_state.h"
#include "frontend/frontend.h"
#include "frontend/metrics/request_meters.h"
#include "frontend/metrics/server_metrics.h"
#include "net/net_fixture.h"
#include <sluice/address.h>
#include <sluice/clock.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace sluice::app::fixture {

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
  // The listener is there before, since the configuration names it.
  Upstream(net::EventLoop& loop, net::Listener listener)
      : loop_(loop), listener_(std::move(listener)) {
    if (!acceptor_.start(loop, listener_.descriptor())) std::abort();
  }

  std::string_view end_of_request = "\r\n\r\n";
  int requests = 0;

  [[nodiscard]] std::string_view heard() const noexcept { return heard_.text(); }
  void answer() {
    (void)stream_.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Made-By: app\r\n\r\nhello");
  }

 private:
  void on_accepted(net::Accepted accepted) {
    if (!stream_.open(loop_, std::move(accepted.descriptor)).is_done()) std::abort();
  }
  void on_ready() {
    heard_.read(stream_);
    if (!heard_.text().ends_with(end_of_request)) return;
    heard_.clear();
    ++requests;
    answer();
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

  void send(std::string_view request) {
    answer_.clear();
    (void)stream_.write(request);
  }
  [[nodiscard]] std::string_view heard() const noexcept { return answer_.text(); }
  // The whole answer, which ends so; empty if none comes.
  [[nodiscard]] std::string_view ask(std::string_view request, std::string_view end) {
    send(request);
    return hear(end);
  }
  [[nodiscard]] std::string_view hear(std::string_view end) {
    if (!net::testing::turn_until(loop_, [&] { return answer_.text().ends_with(end); })) return {};
    return answer_.text();
  }

 private:
  void on_ready() { answer_.read(stream_); }

  net::EventLoop& loop_;
  net::Stream stream_{net::Callback<>::to<&Client::on_ready>(*this)};
  Reader answer_;
};

// From an address of this machine.
inline std::unique_ptr<net::testing::Talker> connect_to(net::EventLoop& loop,
                                                        const net::Endpoint& server,
                                                        std::string_view from = "127.0.0.1") {
  FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto own = net::SocketAddress::of(IpAddress::parse(from).value(), 0);
  if (::bind(socket.get(), own.get(), own.size()) != 0) std::abort();
  const auto address = net::SocketAddress::of(server.address, server.port);
  if (::connect(socket.get(), address.get(), address.size()) != 0) std::abort();
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  auto client = std::make_unique<net::testing::Talker>(loop);
  client->open(std::move(socket));
  return client;
}

// Of a configuration that listens for the gateway once, on a free port.
class OneWorker {
 public:
  OneWorker(const std::string& file, const Clock& clock, net::ResolverOptions resolver = {})
      : resolver_(std::make_unique<net::Resolver>(std::move(resolver))) {
    frontend::declare_server_metrics(registry_);
    for (const frontend::FrontendKind* kind : frontends()) frontends_.push_back(kind->open());
    const Configuration configuration = publish(file, clock);
    const frontend::FrontendKind& kind = *frontends().front();
    served_.push_back(
        {.kind = kind,
         .frontend = *frontends_.front(),
         .number = 0,
         .meters = std::make_unique<const frontend::RequestMeters>(registry_, kind.name())});
    auto made = net::EventLoop::create(clock).value();
    loop = made.get();
    const auto warn = [this](std::string line) { said.push_back(std::move(line)); };
    const auto say = [warn](LogLevel, std::string line) { warn(std::move(line)); };
    const auto ejected = [warn](const Ejection& one) { warn(one.server + ": " + one.text); };
    const auto recovered = [warn](const std::string& server) { warn(server + ": recovered"); };
    worker_ = std::make_unique<ServerWorker>(ServerWorker::Parts{
        .loop = std::move(made),
        .resolver = *resolver_,
        .state = *state_,
        .published = published_,
        .frontends = served_,
        .who = {.say = say, .warn = warn, .ejected = ejected, .recovered = recovered},
        .workers = 1,
        .shard = 0});
    OpenListeners open =
        open_listeners(kind.name(), configuration.serve.frontends.front()->listen, {}, 1).value();
    endpoint = open.of_thread[0][0].listener.endpoint();
    if (!worker_->listen(0, std::move(open.of_thread[0][0]))) std::abort();
  }

  OneWorker(const OneWorker&) = delete;
  OneWorker& operator=(const OneWorker&) = delete;
  // It answers on the loop of the worker, so it goes first.
  ~OneWorker() { resolver_.reset(); }

  // What the control thread does when a configuration was read.
  Configuration publish(const std::string& file, const Clock& clock) {
    config::Diagnostics diagnostics;
    Configuration configuration = read_configuration(file, "sluice.yaml", diagnostics);
    if (diagnostics.ok() && state_ == nullptr) {
      state_ = embed::EngineState::open(configuration, clock, diagnostics);
    } else if (diagnostics.ok()) {
      (void)state_->replace(configuration, diagnostics);
    }
    const ServeConfig& serve = configuration.serve;
    frontend::FrontendConfigs loaded;
    for (std::size_t i = 0; i < serve.frontends.size(); ++i) {
      auto opened = frontends_[i]->load(serve.frontends[i], nullptr,
                                        {.files = serve.files, .tickets = nullptr}, diagnostics);
      loaded.push_back(frontends_[i]->accepted(std::move(opened), registry_));
    }
    if (!diagnostics.ok()) throw std::runtime_error{diagnostics.text()};
    published_.publish(std::make_shared<const ServerSnapshot>(ServerSnapshot{
        .engine = state_->content(),
        .counters = std::make_shared<const frontend::DecisionCounters>(
            registry_, state_->content().snapshot->shared_rules()),
        .logged =
            std::make_shared<const frontend::AccessFormat::Options>(logged_fields(configuration)),
        .access_log = open_access_log(configuration.serve.access_log).value(),
        .frontends = std::move(loaded),
        .drain = {}}));
    return configuration;
  }

  // Of the gateway.
  [[nodiscard]] frontend::FrontendReport report() {
    const auto poll = std::make_shared<WorkerPoll>(1);
    worker_->report(poll, 0);
    std::optional<WorkerReport> report;
    (void)net::testing::turn_until(*loop, [&] {
      report = poll->wait(Nanos{0})[0];
      return report.has_value();
    });
    return report.value().frontends.at(0).report;
  }

  [[nodiscard]] bool has_turned() { return worker_->has_turned(); }
  void drain() { worker_->drain(); }

  std::vector<std::string> said;   // to the operator
  net::EventLoop* loop = nullptr;  // of the worker, turned by the test
  net::Endpoint endpoint;          // of the gateway

 private:
  std::unique_ptr<net::Resolver> resolver_;
  metrics::Registry registry_{2};
  std::vector<std::unique_ptr<frontend::Frontend>> frontends_;
  std::vector<ServedFrontend> served_;
  std::unique_ptr<embed::EngineState> state_;
  Published<ServerSnapshot> published_;
  std::unique_ptr<ServerWorker> worker_;
};

}  // namespace sluice::app::fixture
