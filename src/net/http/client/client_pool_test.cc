// Connections that are used again, requests in line, deadlines and cancellation.

#include "net/http/client/client_pool.h"

#include "net/http/client/client_fixture.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using Kind = HttpFailure::Kind;
using testing::Asked;

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class Pool : public testing::HttpClientTest {
 protected:
  std::unique_ptr<Asked> begin(const ClientRequest& request = {}) {
    auto asked = std::make_unique<Asked>();
    client_->send(origin_, request, asked->call);
    return asked;
  }
  void settle() {
    for (int i = 0; i < 20; ++i) loop_->turn(Nanos{0});
  }
  [[nodiscard]] bool is_done(const Asked& asked) {
    return loop_.until([&] { return asked.result.has_value(); });
  }
};

// The server may have closed an idle connection while the request was on its way.
TEST_F(Pool, SendsOnceMoreWhereAnIdleConnectionWasClosed) {
  make(server_.url());
  server_.responses = {kOk, "", kOk};
  EXPECT_TRUE(ask());
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_EQ(server_.connections, 2U);
  EXPECT_EQ(client_->connections(), 2U);
  // But not what may do harm twice, and not a second time.
  server_.responses = {""};
  EXPECT_EQ(failure({.method = "POST"}).kind, Kind::closed);
  server_.responses = {"", kOk};
  EXPECT_NE(failure().message.find("without a whole response"), std::string::npos);
}

TEST_F(Pool, UsesNoConnectionThatWasClosedMeanwhile) {
  make(server_.url());
  server_.responses = {kOk, kOk};
  EXPECT_TRUE(ask());
  server_.hang_up();  // which the loop has not told of yet
  EXPECT_TRUE(ask({.method = "POST", .body = "once"}));
  EXPECT_EQ(server_.connections, 2U);
}

TEST_F(Pool, UsesNoConnectionOnWhichSomethingCameUnasked) {
  make(server_.url());
  server_.responses = {std::string{kOk} + "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked",
                       kOk, kOk};
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_EQ(ask()->body, "ok") << "it is no response to this";
  EXPECT_EQ(server_.connections, 2U);
  server_.say("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
  settle();
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_EQ(server_.connections, 3U);
}

TEST_F(Pool, ClosesWhereTheServerWishesIt) {
  make(server_.url());
  server_.responses = {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
                       "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", kOk};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask());
  EXPECT_EQ(server_.connections, 3U);
}

TEST_F(Pool, KeepsIdleConnectionsForAWhile) {
  make(server_.url(), {.keepalive_timeout = 20ms});
  server_.responses = {kOk, kOk};
  EXPECT_TRUE(ask());
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(loop_.until([&] { return std::chrono::steady_clock::now() - before > 60ms; }));
  EXPECT_TRUE(ask());
  EXPECT_EQ(server_.connections, 2U);
}

TEST_F(Pool, OpensAFewConnectionsAndLetsTheRestWait) {
  make(server_.url(), {.connections_max = 2});
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 6; ++i) all.push_back(begin());
  EXPECT_TRUE(loop_.until([&] { return server_.connections == 2; }));
  settle();
  EXPECT_EQ(server_.connections, 2U);
  for (int i = 0; i < 3; ++i) {
    server_.say(kOk);
    for (int done = 0; done < 2; ++done)
      EXPECT_TRUE(is_done(*all[static_cast<std::size_t>(i * 2 + done)]));
    settle();
  }
  for (const auto& one : all) EXPECT_EQ(one->text(), "200 ok");
  EXPECT_EQ(client_->connections(), 2U);
}

TEST_F(Pool, FailsAtOnceWhereTheLineIsFull) {
  make(server_.url(), {.connections_max = 1, .waiting_max = 2});
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 4; ++i) all.push_back(begin());
  EXPECT_TRUE(is_done(*all[3]));
  EXPECT_EQ(all[3]->result->error().kind, Kind::overloaded);
  EXPECT_FALSE(all[2]->result);
}

TEST_F(Pool, SharesNothingBetweenOrigins) {
  make(server_.url());
  server_.responses = {kOk, kOk, kOk};
  EXPECT_TRUE(ask());
  testing::ScriptedServer other{*loop_};
  other.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"};
  origin_ = HttpOrigin::load(HttpUrl::parse(other.url()).value()).value();
  EXPECT_EQ(ask()->body, "other");
}

// ---- deadlines --------------------------------------------------------------------------------

TEST_F(Pool, BoundsTheTimeOfARequest) {
  make(server_.url(), {.request_timeout = 20ms});
  const HttpFailure late = failure();
  EXPECT_EQ(late.kind, Kind::timeout);
  EXPECT_NE(late.message.find("no whole response within 20 ms"), std::string::npos) << late.message;
  // A few bytes now and then buy no time.
  server_.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nh"};
  const auto asked = begin({.timeout = 60ms});
  EXPECT_TRUE(loop_.until([&] { return server_.responses.empty(); }));
  EXPECT_TRUE(loop_.until([&] {
    server_.say("h");
    loop_->turn(1ms);
    return asked->result.has_value();
  }));
  EXPECT_EQ(asked->result->error().kind, Kind::timeout);
  // Nor does waiting in line.
  make(server_.url(), {.connections_max = 1});
  const auto first = begin();
  const auto second = begin({.timeout = 20ms});
  EXPECT_TRUE(is_done(*second));
  EXPECT_NE(second->text().find("no connection was free within 20 ms"), std::string::npos);
  EXPECT_FALSE(first->result);
}

// A server that takes part of an upload, and no more.
TEST_F(Pool, BoundsTheTimeOfAnUpload) {
  make(server_.url(), {.request_timeout = 50ms});
  server_.reads = false;
  EXPECT_EQ(failure({.method = "POST", .body = std::string(20'000'000, 'b')}).kind, Kind::timeout);
}

// Nothing accepts there and the system's queue is full: connecting takes for ever.
class Hanging {
 public:
  Hanging() : listener_(listen_on(testing::free_port(), {.backlog = 0}).value()) {
    for (FileDescriptor& one : fillers_) {
      one = FileDescriptor{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      const SocketAddress address = testing::address_of(listener_);
      (void)::connect(one.get(), address.get(), address.size());
    }
  }
  [[nodiscard]] std::string url() const { return "http://" + listener_.endpoint().text(); }

 private:
  Listener listener_;
  std::array<FileDescriptor, 4> fillers_;
};

TEST_F(Pool, BoundsTheTimeToConnect) {
  const Hanging hanging;
  make(hanging.url(), {.connect_timeout = 20ms});
  const HttpFailure late = failure();
  EXPECT_EQ(late.kind, Kind::connect);
  EXPECT_NE(late.message.find("no connection within 20 ms"), std::string::npos) << late.message;
}

// ---- cancellation -----------------------------------------------------------------------------

TEST_F(Pool, CancelsInEveryState) {
  const Hanging hanging;
  const auto expect_cancelled = [&](const char* state) {
    const auto asked = begin();
    settle();
    EXPECT_TRUE(asked->call.is_waiting()) << state;
    asked->call.cancel();
    EXPECT_FALSE(asked->call.is_waiting()) << state;
    settle();
    EXPECT_FALSE(asked->result) << state;
    // It may be used for another.
    const auto again = begin();
    again->call.cancel();
    const auto ended = begin();  // which ends with its owner
  };
  make(hanging.url());
  expect_cancelled("connecting");
  make(server_.url());
  expect_cancelled("no response");
  server_.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"};
  expect_cancelled("half a response");
  ResolverOptions never;
  never.look_up = [](const std::string&) -> Parsed<Addresses> {
    std::this_thread::sleep_for(50ms);
    return mistake("no");
  };
  Resolver slow{never};
  origin_ = HttpOrigin::load(HttpUrl::parse("http://slow.example").value()).value();
  client_ = std::make_unique<HttpClient>(*loop_, slow);
  expect_cancelled("looking up");
  make(server_.url(), {.connections_max = 1});
  const auto first = begin();
  expect_cancelled("in line");
  server_.responses = {};
  settle();
  server_.say(kOk);
  EXPECT_TRUE(is_done(*first)) << "others are not concerned";
}

TEST_F(Pool, ARequestThatIsCancelledMakesRoomForTheNext) {
  make(server_.url(), {.connections_max = 1});
  auto first = begin();
  const auto second = begin();
  settle();
  EXPECT_EQ(server_.connections, 1U);
  server_.responses = {kOk};
  first = nullptr;
  EXPECT_TRUE(is_done(*second));
  EXPECT_EQ(second->text(), "200 ok");
  EXPECT_EQ(server_.connections, 2U) << "a connection with an incomplete message is never reused";
}

TEST_F(Pool, RequestsEndWithTheClient) {
  make(server_.url(), {.connections_max = 1});
  const auto first = begin();
  const auto second = begin();
  const auto wrong = begin({.path = "/a b"});
  settle();
  const auto failing = begin({.path = "/a b"});
  client_ = nullptr;
  for (const Asked* one : {first.get(), second.get(), failing.get()}) {
    EXPECT_FALSE(one->call.is_waiting());
  }
  settle();
  EXPECT_FALSE(first->result || second->result || failing->result);
  EXPECT_TRUE(wrong->result);
}

// ---- from inside ------------------------------------------------------------------------------

class Chain {
 public:
  Chain(HttpClient& client, const HttpOrigin& origin) : client_(client), origin_(origin) {}
  void go() { client_.send(origin_, {}, call_); }
  int left = 3;

 private:
  void on_done(const HttpResult& result) {
    EXPECT_TRUE(result);
    if (--left > 0) go();
  }
  HttpClient& client_;
  const HttpOrigin& origin_;
  HttpCall call_{Callback<const HttpResult&>::to<&Chain::on_done>(*this)};
};

TEST_F(Pool, ACallbackMaySendAgain) {
  make(server_.url());
  server_.responses = {kOk, kOk, kOk};
  Chain chain{*client_, origin_};
  chain.go();
  EXPECT_TRUE(loop_.until([&] { return chain.left == 0; }));
  EXPECT_EQ(server_.connections, 1U);
}

class Ending {
 public:
  explicit Ending(std::unique_ptr<HttpClient>& client) : client_(client) {}
  bool is_told = false;
  bool ends_client = true;
  std::unique_ptr<HttpCall> call =
      std::make_unique<HttpCall>(Callback<const HttpResult&>::to<&Ending::on_done>(*this));
  std::unique_ptr<HttpCall> streaming = std::make_unique<HttpCall>(
      Callback<const HttpResult&>::to<&Ending::on_done>(*this),
      Callback<const HttpResponse&, std::string_view>::to<&Ending::on_body>(*this));

 private:
  void end() {
    is_told = true;
    if (ends_client) client_ = nullptr;
    call = nullptr;
    streaming = nullptr;
  }
  void on_done(const HttpResult&) { end(); }
  void on_body(const HttpResponse&, std::string_view) { end(); }
  std::unique_ptr<HttpClient>& client_;
};

TEST_F(Pool, ACallbackMayEndEverything) {
  for (const bool is_streaming : {false, true}) {
    for (const bool ends_client : {false, true}) {
      make(server_.url());
      server_.responses = {kOk};
      Ending ending{client_};
      ending.ends_client = ends_client;
      client_->send(origin_, {}, is_streaming ? *ending.streaming : *ending.call);
      EXPECT_TRUE(loop_.until([&] { return ending.is_told; }));
      settle();
    }
  }
}

}  // namespace
}  // namespace sluice::net
