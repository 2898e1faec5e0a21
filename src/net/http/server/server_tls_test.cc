// The server under TLS.

#include "net/http/server/server_fixture.h"
#include "net/http/server/server_sent_events.h"
#include "net/tls_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::get;
using testing::Pair;
using testing::post;
using testing::Talker;

class UnderTls : public testing::TlsFixture {
 protected:
  UnderTls() {
    routes_.add("GET", "/who", [](const HttpRequest& request) {
      return text_response(200, std::string{request.is_tls ? "tls " : "plain "} +
                                    std::string{request.tls_subject} + "\n");
    });
    routes_.add("GET", "/long",
                [](const HttpRequest&) { return text_response(200, std::string(kLong, 'x')); });
    routes_.add("POST", "/echo", [](const HttpRequest& request) {
      return text_response(200, std::string{request.body} + "|");
    });
    routes_.add("GET", "/events", [this](const HttpRequest&, Responder responder) {
      streams_.push_back(begin_events(std::move(responder)));
    });
    server_ = std::make_unique<HttpServer>(*loop_, routes_);
  }
  // Plain where there is no client context.
  std::unique_ptr<Talker> connect(const testing::ClientPtr& as, int buffer = 0) {
    Pair pair = testing::connected_pair(buffer, buffer);
    auto client = std::make_unique<Talker>(*loop_);
    client->open(std::move(pair.client));
    if (as != nullptr && !client->stream.start_tls(*as, "example.com")) std::abort();
    server_->accept_tls({.descriptor = std::move(pair.server), .peer = {}});
    return client;
  }
  std::string said(Talker& client, std::string_view text, std::string_view end) {
    client.received.clear();
    client.say(text);
    EXPECT_TRUE(loop_.until([&] { return client.received.ends_with(end) || client.is_over(); }));
    return client.received;
  }

  static constexpr std::size_t kLong = std::size_t{4} << 20U;

  testing::Loop loop_;
  HttpRoutes routes_;
  std::deque<ResponseStream> streams_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(UnderTls, RequestsAreServedAsElsewhere) {
  server_->use_tls(server());
  const auto one = connect(client());
  EXPECT_TRUE(said(*one, get("/who"), "tls \n").starts_with("HTTP/1.1 200 OK"));
  EXPECT_TRUE(
      said(*one, post("/echo", std::string(500'000, 'b')), "b|").starts_with("HTTP/1.1 200"));
  one->say(get("/long") + get("/who"));
  EXPECT_TRUE(loop_.until([&] { return one->received.ends_with("tls \n"); }));
  EXPECT_GT(one->received.size(), kLong);
}

TEST_F(UnderTls, AHandlerLearnsWhoseCertificateWasVerified) {
  const auto person = authority_.issue("person", {.common_name = "ops", .names = {}});
  TlsServerOptions options = server_options();
  options.client_auth = ClientAuth::required;
  options.client_ca_file = authority_.file();
  server_->use_tls(server(options));
  TlsClientOptions as = client_options();
  as.certificate = testing::files(person);
  const auto known = connect(client(as));
  EXPECT_TRUE(said(*known, get("/who"), "\n").ends_with("tls CN=ops\n"));
  const auto unknown = connect(client());
  EXPECT_EQ(said(*unknown, get("/who"), "\n"), "") << "without one nothing is served";
}

TEST_F(UnderTls, PlainHttpIsToldToUseHttps) {
  server_->use_tls(server());
  const auto plain = connect(nullptr);
  const std::string response = said(*plain, get("/who"), "nothing");
  EXPECT_TRUE(response.starts_with("HTTP/1.1 400")) << response;
  EXPECT_NE(response.find("use https"), std::string::npos);
  EXPECT_TRUE(plain->is_over());
}

TEST_F(UnderTls, PiecesComeOneByOneAndASlowReaderBlocksTheStream) {
  server_->use_tls(server());
  const auto slow = connect(client(), 4096);
  slow->say(get("/events"));
  ASSERT_TRUE(
      loop_.until([&] { return !streams_.empty() && slow->received.ends_with("\r\n\r\n"); }));
  EXPECT_TRUE(streams_.front().write("first"));
  EXPECT_TRUE(loop_.until([&] { return slow->received.ends_with("first\r\n"); }));
  slow->listens = false;
  std::size_t written = 0;
  while (streams_.front().write(std::string(1000, 'p'))) {
    ++written;
    for (int i = 0; i < 3; ++i) loop_->turn(Nanos{0});
  }
  slow->received.clear();
  slow->listens = true;
  slow->talk();
  EXPECT_TRUE(loop_.until([&] { return streams_.front().buffered() == 0; }));
  streams_.front().finish();
  EXPECT_TRUE(loop_.until([&] { return slow->received.ends_with("0\r\n\r\n"); }));
  EXPECT_EQ(testing::count_of(slow->received, std::string(1000, 'p')), written);
}

TEST_F(UnderTls, AClientThatLeavesIsNoticed) {
  server_->use_tls(server());
  const auto one = connect(client());
  one->say(get("/events"));
  ASSERT_TRUE(
      loop_.until([&] { return !streams_.empty() && one->received.ends_with("\r\n\r\n"); }));
  one->stream.close();
  EXPECT_TRUE(loop_.until([&] { return !streams_.front().is_open(); }));
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(UnderTls, AHandshakeHasItsTime) {
  HttpServerOptions options;
  options.header_timeout = 30ms;
  server_ = std::make_unique<HttpServer>(*loop_, routes_, std::move(options));
  server_->use_tls(server());
  const auto silent = connect(nullptr);
  EXPECT_TRUE(loop_.until([&] { return silent->is_over(); }));
  EXPECT_EQ(silent->received, "");
  EXPECT_EQ(server_->connections(), 0U);
}

// It has no way to encrypt, and serves nothing in clear.
TEST_F(UnderTls, WithoutAContextNothingIsServed) {
  for (const bool had_one : {false, true}) {
    if (had_one) {
      server_->use_tls(server());
      server_->use_tls(nullptr);
    }
    const auto plain = connect(nullptr);
    EXPECT_EQ(said(*plain, get("/who"), "\n"), "");
    EXPECT_TRUE(plain->is_over());
    EXPECT_EQ(server_->connections(), 0U);
  }
}

// ---- trust in clients -------------------------------------------------------------------------

class Trust : public UnderTls {
 protected:
  // Requires certificates of one of the two CAs.
  [[nodiscard]] testing::ServerPtr trusting(const sluice::testing::Authority& authority) const {
    TlsServerOptions options = server_options();
    options.client_auth = ClientAuth::required;
    options.client_ca_file = authority.file();
    return server(options);
  }
  std::unique_ptr<Talker> connect_as_person() {
    TlsClientOptions as = client_options();
    as.certificate = testing::files(person_);
    return connect(client(as));
  }

  sluice::testing::Authority other_{folder_, "other"};
  sluice::testing::IssuedCertificate person_ =
      authority_.issue("person", {.common_name = "ops", .names = {}});
};

TEST_F(Trust, ConnectionsEndWithTheCasThatTheyBeganUnder) {
  for (const bool is_removed_between : {false, true}) {
    streams_.clear();
    server_->use_tls(trusting(authority_));
    const auto idle = connect_as_person();
    EXPECT_TRUE(said(*idle, get("/who"), "\n").ends_with("CN=ops\n"));
    const auto halfway = connect_as_person();
    EXPECT_TRUE(said(*halfway, get("/who"), "\n").ends_with("CN=ops\n"));
    halfway->say("GET /who HTTP/1.1\r\n");
    const auto events = connect_as_person();
    events->say(get("/events"));
    ASSERT_TRUE(loop_.until([&] { return events->received.ends_with("\r\n\r\n"); }));
    for (int i = 0; i < 5; ++i) loop_->turn(Nanos{0});  // reads what came halfway
    server_->use_tls(trusting(authority_));
    for (int i = 0; i < 5; ++i) loop_->turn(Nanos{0});
    EXPECT_FALSE(idle->is_over() || events->is_over()) << "the same CAs";
    if (is_removed_between) server_->use_tls(nullptr);
    server_->use_tls(trusting(other_));
    EXPECT_TRUE(loop_.until([&] { return idle->is_over() && events->is_over(); }));
    EXPECT_TRUE(events->received.ends_with("0\r\n\r\n")) << "complete at its present end";
    EXPECT_FALSE(streams_.front().is_open());
    const std::string rejected = said(*halfway, "Host: localhost\r\n\r\n", "nothing");
    EXPECT_TRUE(rejected.starts_with("HTTP/1.1 403")) << rejected;
    EXPECT_TRUE(halfway->is_over());
  }
}

// What is in flight gets its response, and its connection no other request.
TEST_F(Trust, AResponseThatHadBegunIsTheLastOfItsConnection) {
  server_->use_tls(trusting(authority_));
  TlsClientOptions as = client_options();
  as.certificate = testing::files(person_);
  const auto slow = connect(client(as), 4096);
  ASSERT_TRUE(said(*slow, get("/who"), "\n").ends_with("CN=ops\n"));
  slow->listens = false;
  slow->say(get("/long") + get("/who"));
  for (int i = 0; i < 20; ++i) loop_->turn(Nanos{0});
  server_->use_tls(trusting(other_));
  slow->listens = true;
  slow->talk();
  EXPECT_TRUE(loop_.until([&] { return slow->is_over(); }));
  EXPECT_GT(slow->received.size(), kLong);
  EXPECT_FALSE(slow->received.ends_with("CN=ops\n"));
}

TEST_F(Trust, AHandshakeUnderFormerCasComesToNothing) {
  server_->use_tls(trusting(authority_));
  const auto early = connect_as_person();
  server_->use_tls(trusting(other_));
  EXPECT_EQ(said(*early, get("/who"), "\n"), "");
}

TEST_F(Trust, ACertificateThatExpiresEndsItsConnection) {
  class LaterClock final : public Clock {
   public:
    [[nodiscard]] Now now() const noexcept override {
      Now now = system_.now();
      now.wall_offset += later;
      return now;
    }
    Nanos later{0};

   private:
    SystemClock system_;
  };
  LaterClock clock;
  server_ = nullptr;
  loop_.loop = EventLoop::create(clock).value();
  server_ = std::make_unique<HttpServer>(*loop_, routes_);
  server_->use_tls(trusting(authority_));
  {
    const auto one = connect_as_person();
    clock.later = 23h;
    EXPECT_TRUE(said(*one, get("/who"), "\n").ends_with("CN=ops\n"));
    clock.later = 25h;  // longer than certificates of the test are valid
    EXPECT_TRUE(said(*one, get("/who"), "nothing").starts_with("HTTP/1.1 403"));
    EXPECT_TRUE(one->is_over());
  }
  server_ = nullptr;
  loop_.loop = nullptr;
}

}  // namespace
}  // namespace sluice::net
