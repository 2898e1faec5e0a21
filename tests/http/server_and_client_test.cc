// Our server and our client, over real sockets, in one process: each is the other's peer.

#include "net/http/client/client_fixture.h"
#include "net/http/client/http_client.h"
#include "net/http/server/http_server.h"
#include "net/http/server/server_sent_events.h"
#include "net/listen.h"
#include "net/tls_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;

using testing::Asked;

class Peers : public testing::TlsFixture, public ::testing::WithParamInterface<bool> {
 protected:
  Peers() {
    routes_.add("GET", "/short", [](const HttpRequest&) { return text_response(200, "short"); });
    routes_.add(
        "POST", "/echo",
        [](const HttpRequest& request) { return text_response(200, std::string{request.body}); },
        {.body_bytes_max = 5'000'000});
    routes_.add("GET", "/later", [this](const HttpRequest&, Responder responder) {
      kept_.push_back(std::move(responder));
    });
    routes_.add("GET", "/events",
                [this](const HttpRequest&, Responder responder) {
                  streams_.push_back(begin_events(std::move(responder)));
                },
                {.long_lived = true});
    make({});
    server_->use_tls(server());
  }
  void make(HttpServerOptions options) {
    server_ = std::make_unique<HttpServer>(*loop_, routes_, std::move(options));
    acceptor_ = std::make_unique<Acceptor>(
        is_tls() ? Callback<Accepted>::to<&HttpServer::accept_tls>(*server_)
                 : Callback<Accepted>::to<&HttpServer::accept>(*server_));
    if (!acceptor_->start(*loop_, listener_.descriptor())) std::abort();
    server_->use_tls(server());
  }
  [[nodiscard]] static bool is_tls() { return GetParam(); }
  [[nodiscard]] HttpOrigin origin() {
    const std::string url = (is_tls() ? "https://" : "http://") + listener_.endpoint().text();
    if (!known_) {
      known_ =
          HttpOrigin::load(HttpUrl::parse(url).value(), client_options(), "example.com").value();
    }
    return *known_;
  }
  std::unique_ptr<Asked> begin(const ClientRequest& request) {
    auto asked = std::make_unique<Asked>();
    client_.send(origin(), request, asked->call);
    return asked;
  }
  std::string ask(const ClientRequest& request) {
    const auto asked = begin(request);
    EXPECT_TRUE(loop_.until([&] { return asked->result.has_value(); }));
    return asked->text();
  }

  testing::Loop loop_;
  Resolver resolver_;
  HttpRoutes routes_;
  std::deque<Responder> kept_;
  std::deque<ResponseStream> streams_;
  Listener listener_ = listen_on(testing::free_port()).value();
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::optional<HttpOrigin> known_;
  HttpClient client_{*loop_, resolver_, {.request_timeout = 30s}};
};

INSTANTIATE_TEST_SUITE_P(PlainAndTls, Peers, ::testing::Bool(),
                         [](const auto& peer) { return peer.param ? "Tls" : "Plain"; });

TEST_P(Peers, ExchangeManyMessagesOnFewConnections) {
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 60; ++i) {
    all.push_back(begin({.method = "POST", .path = "/echo", .body = std::to_string(i)}));
  }
  for (int i = 0; i < 60; ++i) {
    const Asked& one = *all[static_cast<std::size_t>(i)];
    ASSERT_TRUE(loop_.until([&] { return one.result.has_value(); }));
    EXPECT_EQ(one.text(), "200 " + std::to_string(i));
  }
  EXPECT_EQ(server_->counts().connections, 4U);
  EXPECT_EQ(server_->counts().requests, 60U);
}

TEST_P(Peers, CarryBodiesThatNoBufferHolds) {
  const std::string large(4'000'000, 'L');
  EXPECT_EQ(ask({.method = "POST", .path = "/echo", .body = large}), "200 " + large);
  const std::string rejected =
      ask({.method = "POST", .path = "/echo", .body = std::string(20'000'000, 'X')});
  EXPECT_TRUE(rejected.starts_with("413 ")) << rejected.substr(0, 100);
  EXPECT_EQ(ask({.path = "/short"}), "200 short");
}

TEST_P(Peers, AgreeOnWhatHasNoBody) {
  EXPECT_EQ(ask({.method = "HEAD", .path = "/short"}), "200 ");
  EXPECT_EQ(ask({.method = "OPTIONS", .path = "/short"}), "204 ");
  EXPECT_TRUE(ask({.method = "DELETE", .path = "/short"}).starts_with("405 "));
  EXPECT_EQ(ask({.path = "/short"}), "200 short");
  EXPECT_EQ(server_->counts().connections, 1U);
}

TEST_P(Peers, WaitForWhatComesLater) {
  const auto asked = begin({.path = "/later"});
  ASSERT_TRUE(loop_.until([&] { return !kept_.empty(); }));
  EXPECT_EQ(ask({.path = "/short"}), "200 short") << "on another connection";
  kept_.front().send(text_response(200, "here"));
  EXPECT_TRUE(loop_.until([&] { return asked->result.has_value(); }));
  EXPECT_EQ(asked->text(), "200 here");
}

TEST_P(Peers, NoticeThatARequestIsCancelled) {
  auto asked = begin({.path = "/later"});
  ASSERT_TRUE(loop_.until([&] { return !kept_.empty(); }));
  asked = nullptr;
  // It might have closed its side only: what comes back upon the response tells.
  kept_.front().send(text_response(200, "to nobody"));
  EXPECT_TRUE(loop_.until([&] { return server_->connections() == 0; }));
}

TEST_P(Peers, StreamEvents) {
  Asked asked;
  client_.send(origin(), {.path = "/events", .timeout = 1h}, asked.streaming);
  ASSERT_TRUE(loop_.until([&] { return !streams_.empty(); }));
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string event = format_event({.event = "n", .data = std::to_string(i), .id = {}});
    ASSERT_TRUE(streams_.front().write(event));
    all += event;
    if (i % 7 == 0) loop_->turn(Nanos{0});
  }
  EXPECT_TRUE(loop_.until([&] { return asked.streamed == all; }));
  bool is_gone = false;
  streams_.front().on_gone([&] { is_gone = true; });
  asked.streaming.cancel();
  EXPECT_TRUE(loop_.until([&] { return is_gone; }));
}

TEST_P(Peers, SurviveADrain) {
  Asked events;
  client_.send(origin(), {.path = "/events", .timeout = 1h}, events.streaming);
  const auto later = begin({.path = "/later"});
  ASSERT_TRUE(loop_.until([&] { return !streams_.empty() && !kept_.empty(); }));
  server_->drain();
  EXPECT_TRUE(loop_.until([&] { return events.result.has_value(); }));
  EXPECT_EQ(events.text(), "200 ");
  kept_.front().send(text_response(200, "last"));
  EXPECT_TRUE(loop_.until([&] { return later->result.has_value(); }));
  EXPECT_EQ(later->text(), "200 last");
  EXPECT_TRUE(loop_.until([&] { return server_->connections() == 0; }));
  // A new server on the same port: the connections of the old one are not used.
  make({});
  EXPECT_EQ(ask({.method = "POST", .path = "/echo", .body = "again"}), "200 again");
}

// The server closes idle connections before the client does: no request is lost by that.
TEST_P(Peers, DisagreeOnIdleTimeWithoutHarm) {
  HttpServerOptions options;
  options.keepalive_timeout = 2ms;
  options.requests_max = 5;
  make(std::move(options));
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(ask({.path = "/short"}), "200 short") << i;
    if (i % 3 == 0) loop_->turn(3ms);
  }
  EXPECT_GT(server_->counts().connections, 10U);
}

}  // namespace
}  // namespace sluice::net
