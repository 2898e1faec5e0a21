// Single requests: what is sent, and what is made of the response.

#include "net/http/client/http_client.h"

#include "net/http/client/blocking_client.h"
#include "net/http/client/client_fixture.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using Kind = HttpFailure::Kind;

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class Client : public testing::HttpClientTest {};

TEST_F(Client, SendsAndReceivesOnOneConnection) {
  make(server_.url());
  server_.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello",
                       "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n0\r\n\r\n"};
  const HttpResult first = ask({.path = "/a?b", .headers = {{"accept", "*/*"}}});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "hello");
  EXPECT_EQ(first->header("x-a"), "b");
  EXPECT_TRUE(server_.heard.starts_with("GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:"));
  EXPECT_NE(server_.heard.find("accept: */*\r\n"), std::string::npos);
  EXPECT_EQ(server_.heard.find("content-length"), std::string::npos);
  EXPECT_EQ(ask()->body, "abc");
  EXPECT_EQ(server_.connections, 1U);
}

TEST_F(Client, SendsABody) {
  make(server_.url());
  server_.responses = {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"};
  EXPECT_EQ(ask({.method = "POST", .body = "payload"})->status, 204);
  EXPECT_TRUE(loop_.until([&] { return server_.heard.ends_with("\r\n\r\npayload"); }));
  EXPECT_NE(server_.heard.find("content-length: 7\r\n"), std::string::npos);
  EXPECT_EQ(ask({.method = "PUT"})->status, 204);
  EXPECT_NE(server_.heard.find("content-length: 0\r\n"), std::string::npos);
}

TEST_F(Client, MayBeTheClientOfAnotherHost) {
  make(server_.url());
  server_.responses = {kOk};
  EXPECT_TRUE(ask({.headers = {{"Host", "app.example"}}}));
  EXPECT_TRUE(server_.heard.starts_with("GET / HTTP/1.1\r\nHost: app.example\r\n\r\n"))
      << server_.heard;
}

TEST_F(Client, ReadsUntilTheEndWhereNoLengthIsGiven) {
  make(server_.url());
  server_.hangs_up = true;
  server_.responses = {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall of it"};
  EXPECT_EQ(ask()->body, "all of it");
}

TEST_F(Client, ExpectsNoBodyOfAResponseToHead) {
  make(server_.url());
  server_.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", kOk};
  EXPECT_EQ(ask({.method = "HEAD"})->body, "");
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_EQ(server_.connections, 1U);
}

// In whatever pieces it comes.
TEST_F(Client, ReadsAResponseByteByByte) {
  make(server_.url());
  testing::Asked asked;
  client_->send(origin_, {}, asked.call);
  ASSERT_TRUE(loop_.until([&] { return server_.heard.ends_with("\r\n\r\n"); }));
  for (const char c : std::string_view{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n"
                                       "4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\nT: u\r\n\r\n"}) {
    EXPECT_FALSE(asked.result);
    server_.say({&c, 1});
    for (int i = 0; i < 3; ++i) loop_->turn(Nanos{0});
  }
  EXPECT_EQ(asked.text(), "200 Wikipedia");
  server_.responses = {kOk};
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_EQ(server_.connections, 1U);
}

TEST_F(Client, SaysWhatIsWrongWithAResponse) {
  make(server_.url());
  const std::vector<std::string> wrong{
      "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n\r\n",
  };
  for (const std::string& one : wrong) {
    server_.responses = {one};
    const HttpFailure why = failure();
    EXPECT_EQ(why.kind, Kind::malformed) << one.substr(0, 60) << why.message;
    EXPECT_TRUE(why.message.starts_with(server_.url() + ": ")) << why.message;
  }
}

// A response that is cut off, wherever that is, is none.
TEST_F(Client, TakesNothingThatIsCutOff) {
  make(server_.url());
  server_.hangs_up = true;
  for (const std::string_view whole :
       {std::string_view{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
        std::string_view{
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}}) {
    for (std::size_t size = 1; size < whole.size(); ++size) {
      server_.responses = {std::string{whole.substr(0, size)}};
      const HttpFailure why = failure();
      EXPECT_EQ(why.kind, Kind::closed) << size;
      EXPECT_NE(why.message.find("without a whole response"), std::string::npos) << why.message;
    }
    server_.responses = {std::string{whole}};
    EXPECT_EQ(ask()->body, "hello");
  }
}

TEST_F(Client, BoundsTheBody) {
  make(server_.url(), {.body_bytes_max = 8});
  server_.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"};
  EXPECT_EQ(failure().kind, Kind::too_large) << "without waiting for it";
  server_.responses = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n"};
  EXPECT_EQ(failure().kind, Kind::too_large);
  server_.responses = {"HTTP/1.1 200 OK\r\n\r\n123456789"};
  EXPECT_NE(failure().message.find("too large"), std::string::npos);
  server_.responses = {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678"};
  EXPECT_EQ(ask()->body, "12345678");
}

TEST_F(Client, SaysThatNothingListens) {
  const Endpoint gone = listen_on(testing::free_port()).value().endpoint();
  make("http://" + gone.text());
  EXPECT_EQ(failure().kind, Kind::connect);
  EXPECT_NE(failure().message.find("refused"), std::string::npos);
  make("http://no-such-host.invalid:80");
  const HttpFailure unknown = failure();
  EXPECT_EQ(unknown.kind, Kind::name);
  EXPECT_NE(unknown.message.find("no-such-host.invalid"), std::string::npos);
  origin_.url.endpoint = Endpoint::of_path("/" + std::string(200, 'x'));
  EXPECT_EQ(failure().kind, Kind::connect);
}

// A name may have addresses at which nothing listens: localhost is ::1 as well.
TEST_F(Client, TriesEveryAddressOfAName) {
  const std::string url = server_.url();
  make("http://localhost" + url.substr(url.rfind(':')));
  server_.responses = {kOk};
  const HttpResult result = ask();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->body, "ok");
}

TEST_F(Client, ReachesUnixSockets) {
  const sluice::testing::TempFolder folder;
  testing::ScriptedServer local{*loop_, Endpoint::of_path(folder.file("socket"))};
  local.responses = {kOk};
  make("unix:" + folder.file("socket"));
  EXPECT_EQ(ask()->body, "ok");
  EXPECT_NE(local.heard.find("host: localhost\r\n"), std::string::npos);
}

TEST_F(Client, RefusesToWriteWhatIsNoRequest) {
  make(server_.url());
  for (const ClientRequest& wrong : std::vector<ClientRequest>{
           {.path = "/a b"},
           {.path = ""},
           {.method = "GE T"},
           {.headers = {{"a", "b\r\nc: d"}}},
           {.headers = {{"content-length", "5"}}},
           {.headers = {{"Transfer-Encoding", "chunked"}}},
           {.headers = {{"connection", "close"}}},
           {.headers = {{"a", std::string(20'000, 'a')}}},
       }) {
    EXPECT_EQ(failure(wrong).kind, Kind::invalid_request);
  }
  EXPECT_EQ(server_.connections, 0U);
}

// A server may reject an upload, and read no more of it.
TEST_F(Client, HearsAResponseBeforeTheRequestIsSent) {
  make(server_.url());
  server_.hangs_up = true;
  server_.responses = {"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"};
  const HttpResult result = ask({.method = "POST", .body = std::string(20'000'000, 'b')});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, 413);
}

TEST_F(Client, HandsABodyOnAsItComes) {
  make(server_.url(), {.body_bytes_max = 4});
  testing::Asked asked;
  client_->send(origin_, {.timeout = 1h}, asked.streaming);
  ASSERT_TRUE(loop_.until([&] { return server_.heard.ends_with("\r\n\r\n"); }));
  server_.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst \r\n");
  EXPECT_TRUE(loop_.until([&] { return asked.streamed == "first "; }));
  EXPECT_FALSE(asked.result);
  server_.say("6\r\nsecond\r\n0\r\n\r\n");
  EXPECT_TRUE(loop_.until([&] { return asked.result.has_value(); }));
  EXPECT_EQ(asked.text(), "200 ");
  EXPECT_EQ(asked.streamed, "first second");
}

TEST(BlockingClient, WaitsForResponses) {
  testing::Loop loop;
  testing::ScriptedServer server{*loop};
  server.responses = {kOk, kOk};
  const std::string url = server.url();
  std::vector<std::string> bodies;
  std::jthread asking{[&] {
    const SystemClock clock;
    const auto client = BlockingHttpClient::create(clock).value();
    const HttpOrigin origin = HttpOrigin::load(HttpUrl::parse(url).value()).value();
    for (int i = 0; i < 2; ++i) {
      bodies.push_back(client->fetch(origin, {}).value().body);
      client->pause(1ms);
    }
    loop->stop();
  }};
  loop->run();
  asking.join();
  EXPECT_EQ(bodies, (std::vector<std::string>{"ok", "ok"}));
  EXPECT_EQ(server.connections, 1U);
}

}  // namespace
}  // namespace sluice::net
