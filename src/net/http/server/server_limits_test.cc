// What the server does to clients that are slow, greedy or many.

#include "net/http/server/server_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using testing::count_of;
using testing::get;
using testing::post;
using testing::request_text;

class Limits : public testing::HttpServerTest {
 protected:
  // The status of the response behind which the connection is closed.
  std::string rejected(const std::string& bytes) {
    const Client client = connect();
    client->say(bytes + get("/short"));
    EXPECT_TRUE(until([&] { return client->is_over(); })) << bytes.substr(0, 60);
    EXPECT_NE(client->received.find("Connection: close"), std::string::npos);
    EXPECT_EQ(client->received.find("short"), std::string::npos);
    return client->received.substr(0, 12);
  }
  Client deaf(const std::string& request) {
    Client client = connect();
    client->listens = false;
    client->say(request);
    settle();
    return client;
  }
};

TEST_F(Limits, HoldForTheSizeOfARequest) {
  std::string many;
  for (int i = 0; i < 70; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  const std::string huge = std::string(2'000'000, 'b');
  EXPECT_EQ(rejected("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n"), "HTTP/1.1 414");
  EXPECT_EQ(rejected(request_text("GET", "/", "A: " + std::string(20'000, 'a') + "\r\n")),
            "HTTP/1.1 431");
  EXPECT_EQ(rejected(request_text("GET", "/", many)), "HTTP/1.1 431");
  EXPECT_EQ(rejected(request_text("POST", "/echo", "Content-Length: 1048577\r\n")), "HTTP/1.1 413");
  EXPECT_EQ(rejected(post("/echo", huge)), "HTTP/1.1 413");
  EXPECT_EQ(rejected(request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") +
                     "1e8480\r\n" + huge + "\r\n0\r\n\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(rejected(request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") +
                     "1\r\na\r\n0\r\nT: " + std::string(9000, 't') + "\r\n\r\n"),
            "HTTP/1.1 431");
  EXPECT_EQ(echoes_, 0);
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
}

TEST_F(Limits, AreARoutesOwnWhereItHasSome) {
  routes_.add("POST", "/small", [](const HttpRequest&) { return text_response(200, "taken"); },
              {.body_bytes_max = 4});
  routes_.add("POST", "/large", [](const HttpRequest&) { return text_response(200, "taken"); },
              {.body_bytes_max = 4'000'000});
  EXPECT_TRUE(alone(post("/small", "1234")).ends_with("taken"));
  EXPECT_EQ(rejected(post("/small", "12345")), "HTTP/1.1 413");
  EXPECT_TRUE(alone(post("/large", std::string(3'000'000, 'b'))).ends_with("taken"));
  EXPECT_EQ(rejected(post("/nowhere", std::string(3'000'000, 'b'))), "HTTP/1.1 413");
}

// As slow loris does: a few bytes now and then buy no time.
TEST_F(Limits, HoldForTheTimeOfARequest) {
  make({.header_timeout = 10s, .request_timeout = 20s});
  const Client silent = connect();
  const Client headers = connect();
  const Client body = connect();
  const std::string head = request_text("POST", "/echo", "X: y\r\nContent-Length: 100\r\n");
  headers->say("G");
  body->say(head);
  settle();
  for (int i = 0; i < 9; ++i) {
    headers->say("ET /short HTTP/1.1\r\n"sv.substr(static_cast<std::size_t>(i), 1));
    body->say("b");
    settle();
    pass(1s);
  }
  EXPECT_EQ(server_->connections(), 3U);
  pass(2s);
  ASSERT_TRUE(until([&] { return silent->is_over() && headers->is_over(); }));
  EXPECT_EQ(silent->received, "") << "nothing was asked";
  EXPECT_TRUE(headers->received.starts_with("HTTP/1.1 408")) << headers->received;
  EXPECT_FALSE(body->is_over());
  for (int i = 0; i < 8; ++i) {
    body->say("b");
    settle();
    pass(1s);
  }
  EXPECT_FALSE(body->is_over());
  pass(2s);
  ASSERT_TRUE(until([&] { return body->is_over(); }));
  EXPECT_TRUE(body->received.starts_with("HTTP/1.1 408")) << body->received;
  EXPECT_EQ(echoes_, 0);
  EXPECT_EQ(server_->counts().timed_out, 2U);
}

TEST_F(Limits, HoldForIdleConnections) {
  const Client client = connect();
  (void)said(*client, get("/short"), "short\n");
  pass(70s);
  (void)said(*client, get("/short"), "short\n");
  pass(76s);
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_EQ(server_->counts().timed_out, 0U) << "that is no failure";
}

TEST_F(Limits, HoldForTheRequestsOfAConnection) {
  make({.requests_max = 3});
  const Client client = connect();
  client->say(get("/short") + get("/short") + get("/short") + get("/short"));
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_EQ(count_of(client->received, "HTTP/1.1 200"), 3U);
  EXPECT_EQ(count_of(client->received, "Connection: close"), 1U);
}

TEST_F(Limits, HoldForClientsThatDoNotRead) {
  const Client client = deaf(get("/long"));
  EXPECT_EQ(server_->connections(), 1U);
  pass(11s);
  EXPECT_EQ(server_->connections(), 0U);
  EXPECT_EQ(server_->counts().timed_out, 1U);
}

// One that reads slowly, but reads, gets all of it.
TEST_F(Limits, LeaveSlowReadersAlone) {
  const Client client = connect(4096);
  client->read_size = 100'000;
  client->listens = false;
  client->say(get("/long"));
  settle();
  for (int i = 0; i < 10'000 && client->received.size() <= kLong; ++i) {
    client->listens = true;
    client->talk();
    client->listens = false;
    pass(1s);
  }
  EXPECT_GT(client->received.size(), kLong);
}

TEST_F(Limits, LetANewcomerInAtTheExpenseOfTheStuckAndTheSilent) {
  make({.connections_max = 3});
  const Client reading = deaf(get("/long"));
  const Client silent = connect();
  const Client other = connect();
  // Nobody is stuck yet: the one that has been silent for longest goes.
  const Client probe = connect();
  EXPECT_TRUE(said(*probe, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
  ASSERT_TRUE(until([&] { return silent->is_over(); }));
  EXPECT_FALSE(other->is_over());
  // Now there is: it goes before those that wait.
  pass(2s);
  const Client second = connect();
  EXPECT_TRUE(said(*second, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
  EXPECT_FALSE(other->is_over());
  EXPECT_TRUE(said(*probe, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
  reading->listens = true;
  reading->talk();
  ASSERT_TRUE(until([&] { return reading->is_over(); }));
  EXPECT_LT(reading->received.size(), kLong);
  EXPECT_EQ(server_->counts().evicted, 2U);
}

TEST_F(Limits, LetProbesInWhileNobodyReads) {
  make({.connections_max = 4});
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(deaf(get("/long")));
  for (int i = 0; i < 10; ++i) {
    const Client probe = connect();
    EXPECT_TRUE(said(*probe, get("/short"), "short\n").starts_with("HTTP/1.1 200")) << i;
  }
  EXPECT_LE(server_->connections(), 4U);
}

TEST_F(Limits, LetOthersHaveTheirTurn) {
  int counted = 0;
  routes_.add("GET", "/counted", [&](const HttpRequest&) {
    ++counted;
    return text_response(200, "counted\n");
  });
  const Client greedy = connect();
  std::string many;
  for (int i = 0; i < 500; ++i) many += get("/counted");
  greedy->say(many);
  const Client probe = connect();
  probe->say(get("/short"));
  ASSERT_TRUE(until([&] { return probe->received.ends_with("short\n"); }));
  EXPECT_LT(counted, 20);
  ASSERT_TRUE(until([&] { return counted == 500; })) << "all of them in the end";
}

TEST_F(Limits, AConnectionIsClosedBehindAClientErrorWhereThatIsWished) {
  make({.close_after_client_error = true});
  const Client client = connect();
  client->say(get("/nowhere") + get("/short"));
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_TRUE(client->received.starts_with("HTTP/1.1 404"));
  EXPECT_EQ(client->received.find("short\n"), std::string::npos);
}

}  // namespace
}  // namespace sluice::net
