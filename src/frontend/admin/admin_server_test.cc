// The admin listener by the bytes: real sockets, one loop, a clock that tests move.

#include "frontend/admin/admin_server.h"

#include "frontend/admin/routes.h"
#include "net/net_fixture.h"
#include <sluice/clock.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::admin {
namespace {

using namespace std::chrono_literals;
using net::testing::Talker;

class AdminServerTest : public ::testing::Test {
 protected:
  AdminServerTest() {
    routes_.add("GET", "/short", Access::open, "", [](const Request&) { return plain("short\n"); });
    routes_.add("GET", "/long", Access::open, "",
                [](const Request&) { return plain(std::string(kLong, 'x')); });
    routes_.add("POST", "/echo", Access::open, "", [](const Request& request) {
      return plain(std::string{request.body} + "|" + std::string{request.query});
    });
    make({});
  }
  void make(const AdminOptions& options) {
    server_ = nullptr;
    server_ = std::make_unique<AdminServer>(*loop_, routes_, options);
  }

  std::unique_ptr<Talker> connect() {
    net::testing::Pair pair = net::testing::connected_pair();
    auto client = std::make_unique<Talker>(*loop_);
    client->open(std::move(pair.client));
    server_->accept({.descriptor = std::move(pair.server), .peer = {}});
    return client;
  }
  template <class Condition>
  [[nodiscard]] bool until(Condition&& condition) {
    return net::testing::turn_until(*loop_, std::forward<Condition>(condition));
  }
  // Until nothing happens any more.
  void settle() {
    for (int i = 0; i < 20; ++i) loop_->turn(0ns);
  }
  std::string said(Talker& client, std::string_view text, std::string_view end) {
    client.received.clear();
    client.say(text);
    EXPECT_TRUE(until([&] { return client.received.ends_with(end) || client.is_over(); }));
    return client.received;
  }
  void pass(Nanos time) {
    clock_.advance(time);
    settle();
  }

  static constexpr std::size_t kLong = std::size_t{8} << 20U;

  ManualClock clock_{{.mono = MonoTime{1h}, .wall_offset = 1h}};
  std::unique_ptr<net::EventLoop> loop_ = net::EventLoop::create(clock_).value();
  Routes routes_;
  std::unique_ptr<AdminServer> server_;
};

std::string get(std::string_view path) {
  return "GET " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

TEST_F(AdminServerTest, AnswersOneRequestAfterAnotherOnAConnection) {
  const auto client = connect();
  for (int i = 0; i < 3; ++i) {
    const std::string answer = said(*client, get("/short"), "\r\n\r\nshort\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    for (const char* header : {"cache-control: no-store", "x-content-type-options: nosniff",
                               "content-length: 6", "date: "}) {
      EXPECT_NE(answer.find(header), std::string::npos) << header;
    }
    EXPECT_EQ(answer.find("Connection:"), std::string::npos);
  }
  // Two at once, in their order.
  const std::string both =
      said(*client, get("/short") + get("/nowhere").replace(0, 3, "GET"), "here is.\"}\n");
  EXPECT_LT(both.find("short"), both.find("404 Not Found"));
}

TEST_F(AdminServerTest, AnswersHeadWithoutABody) {
  const auto client = connect();
  const std::string answer =
      said(*client, "HEAD /short HTTP/1.1\r\nHost: localhost\r\n\r\n", "\r\n\r\n");
  EXPECT_NE(answer.find("content-length: 6"), std::string::npos);
  EXPECT_EQ(said(*client, get("/short"), "short\n").find("HTTP/1.1 200"), 0U);
}

// Also when something is wrong with what came behind the head.
TEST_F(AdminServerTest, AnswersABrokenHeadWithoutABody) {
  const auto client = connect();
  client->say(
      "HEAD /short HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_TRUE(client->received.starts_with("HTTP/1.1 400")) << client->received;
  EXPECT_TRUE(client->received.ends_with("\r\n\r\n")) << client->received;
}

TEST_F(AdminServerTest, ReadsBodiesOfEveryKind) {
  const auto client = connect();
  const std::string head = "POST /echo?q=1 HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_NE(said(*client, head + "Content-Length: 5\r\n\r\nhello", "hello|q=1").find("200"),
            std::string::npos);
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
  EXPECT_NE(said(*client, head + chunked, "hello|q=1").find("200"), std::string::npos);
  std::string large(600'000, 'b');
  EXPECT_NE(said(*client, head + "Content-Length: 600000\r\n\r\n" + large, "b|q=1").find("200"),
            std::string::npos);
}

TEST_F(AdminServerTest, WritesPagesThatNoBufferHolds) {
  const auto client = connect();
  client->say(get("/long"));
  ASSERT_TRUE(
      until([&] { return client->received.ends_with("x") && client->received.size() > kLong; }));
}

// What is no request is answered, once, and nothing behind it is read as one.
TEST_F(AdminServerTest, ClosesAfterWhatIsNoRequest) {
  struct Case {
    std::string bytes;
    const char* status;
  };
  const std::vector<Case> cases{
      {"nonsense\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", "505"},
      {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n", "414"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n", "431"},
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n", "413"},
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
  };
  for (const Case& wrong : cases) {
    const auto client = connect();
    client->say(wrong.bytes + get("/short"));
    ASSERT_TRUE(until([&] { return client->is_over(); })) << wrong.bytes;
    EXPECT_TRUE(client->received.starts_with("HTTP/1.1 " + std::string{wrong.status}))
        << wrong.bytes.substr(0, 60) << client->received;
    EXPECT_NE(client->received.find("Connection: close"), std::string::npos);
    EXPECT_NE(client->received.find("application/problem+json"), std::string::npos);
    EXPECT_EQ(client->received.find("short"), std::string::npos);
  }
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
}

// A chunked body says only at its end how long it is.
TEST_F(AdminServerTest, BoundsBodiesOfUnknownLength) {
  const auto client = connect();
  std::string chunks;
  for (int i = 0; i < 20; ++i) chunks += "10000\r\n" + std::string(65536, 'c') + "\r\n";
  client->say("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
              chunks);
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_TRUE(client->received.starts_with("HTTP/1.1 413")) << client->received;
}

TEST_F(AdminServerTest, WaitsForARequestOnlySoLong) {
  const auto silent = connect();
  const auto slow = connect();
  slow->say("GET /short HTTP/1.1\r\n");
  const auto slow_body = connect();
  slow_body->say("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe");
  settle();
  pass(9s);
  EXPECT_EQ(server_->connections(), 3U);
  slow->say("Host: local");  // a few bytes now and then buy no time
  slow_body->say("l");
  settle();
  pass(2s);
  ASSERT_TRUE(until([&] { return silent->is_over() && slow->is_over() && slow_body->is_over(); }));
  EXPECT_EQ(silent->received, "") << "nothing was asked";
  EXPECT_TRUE(slow->received.starts_with("HTTP/1.1 408")) << slow->received;
  EXPECT_TRUE(slow_body->received.starts_with("HTTP/1.1 408"));
}

TEST_F(AdminServerTest, KeepsIdleConnectionsForAWhile) {
  const auto client = connect();
  (void)said(*client, get("/short"), "short\n");
  pass(70s);
  (void)said(*client, get("/short"), "short\n");
  pass(76s);
  ASSERT_TRUE(until([&] { return client->is_over(); }));
}

TEST_F(AdminServerTest, GivesUpOnThoseWhoDoNotRead) {
  const auto client = connect();
  client->listens = false;
  client->say(get("/long"));
  settle();
  EXPECT_EQ(server_->connections(), 1U);
  pass(11s);
  EXPECT_EQ(server_->connections(), 0U);
}

// Those who ask nothing give way to those who come, before those who are being answered.
TEST_F(AdminServerTest, BoundsConnections) {
  make({.connections_max = 2});
  const auto reader = connect();
  reader->listens = false;
  reader->say(get("/long"));
  settle();
  const auto silent = connect();
  settle();
  const auto third = connect();
  EXPECT_NE(said(*third, get("/short"), "short\n").find("200"), std::string::npos);
  ASSERT_TRUE(until([&] { return silent->is_over(); }));
  EXPECT_EQ(server_->connections(), 2U);
  reader->listens = true;
  reader->talk();
  ASSERT_TRUE(until([&] { return reader->received.size() > kLong; })) << "it was left alone";
}

// Asking without reading needs no token: whoever does it, on every connection there may be, must
// not keep out the probes that decide whether this process is restarted.
TEST_F(AdminServerTest, LetsProbesInWhileNobodyReads) {
  for (const Nanos passed : {Nanos{0}, Nanos{2s}}) {
    make({.connections_max = 4});
    std::vector<std::unique_ptr<Talker>> deaf;
    for (int i = 0; i < 4; ++i) {
      deaf.push_back(connect());
      deaf.back()->listens = false;
      deaf.back()->say(get("/long"));
    }
    settle();
    clock_.advance(passed);
    settle();
    for (int i = 0; i < 10; ++i) {
      const auto probe = connect();
      EXPECT_NE(said(*probe, get("/short"), "short\n").find("200"), std::string::npos) << i;
    }
    EXPECT_LE(server_->connections(), 4U);
    // It is the first who gave way, and none of the others had to.
    deaf.front()->listens = true;
    deaf.front()->talk();
    EXPECT_TRUE(until([&] { return deaf.front()->is_over(); }));
    deaf.back()->listens = true;
    deaf.back()->talk();
    EXPECT_TRUE(until([&] { return deaf.back()->received.size() > kLong; }));
  }
}

// A probe that was let in stays, though the next to come needs a place as well: those who do not
// read go first.
TEST_F(AdminServerTest, LetsTheStuckGoBeforeThoseWhoJustCame) {
  make({.connections_max = 2});
  const auto deaf = connect();
  deaf->listens = false;
  deaf->say(get("/long"));
  settle();
  clock_.advance(2s);
  settle();
  const auto probe = connect();
  const auto other = connect();
  EXPECT_NE(said(*probe, get("/short"), "short\n").find("200"), std::string::npos);
  EXPECT_NE(said(*other, get("/short"), "short\n").find("200"), std::string::npos);
}

TEST_F(AdminServerTest, ClosesAfterAskingForNothing) {
  const auto client = connect();
  client->say(get("/nowhere") + get("/short"));
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_TRUE(client->received.starts_with("HTTP/1.1 404")) << client->received;
  EXPECT_NE(client->received.find("Connection: close"), std::string::npos);
  EXPECT_EQ(client->received.find("short\n"), std::string::npos);
}

TEST_F(AdminServerTest, BoundsTheRequestsOfAConnection) {
  make({.requests_max = 3});
  const auto client = connect();
  (void)said(*client, get("/short"), "short\n");
  const std::string rest = said(*client, get("/short") + get("/short") + get("/short"), "nothing");
  EXPECT_TRUE(client->is_over());
  EXPECT_EQ(rest.find("Connection: close"), rest.rfind("Connection: close"));
  EXPECT_EQ(rest.find("200 OK"), 9U);
  EXPECT_EQ(rest.rfind("200 OK"), rest.find("200 OK", 20)) << "two more, and no third";
}

// One who sends a thousand requests at once waits for his own answers; others do not.
TEST_F(AdminServerTest, AnswersOthersBetweenTwoRequestsOfOne) {
  int asked = 0;
  routes_.add("GET", "/counted", Access::open, "", [&](const Request&) {
    ++asked;
    return plain("counted\n");
  });
  const auto greedy = connect();
  std::string many;
  for (int i = 0; i < 500; ++i) many += get("/counted");
  greedy->say(many);
  const auto probe = connect();
  probe->say(get("/short"));
  ASSERT_TRUE(until([&] { return probe->received.ends_with("short\n"); }));
  EXPECT_LT(asked, 20);
  ASSERT_TRUE(until([&] { return asked == 500; })) << "all of them in the end";
}

}  // namespace
}  // namespace sluice::admin
