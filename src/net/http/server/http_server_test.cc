// The server by the bytes: whole requests, whole responses.

#include "net/http/server/http_server.h"

#include "net/http/server/server_fixture.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::net {
namespace {

using testing::count_of;
using testing::get;
using testing::post;
using testing::request_text;

class Server : public testing::HttpServerTest {};

TEST_F(Server, RespondsToOneRequestAfterAnother) {
  const Client client = connect();
  for (int i = 0; i < 3; ++i) {
    const std::string response = said(*client, get("/short"), "\r\n\r\nshort\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\ndate: ")) << response;
    EXPECT_NE(response.find("content-type: text/plain; charset=utf-8\r\n"), std::string::npos);
    EXPECT_NE(response.find("content-length: 6\r\n"), std::string::npos);
    EXPECT_EQ(response.find("Connection:"), std::string::npos);
  }
  EXPECT_EQ(server_->counts().requests, 3U);
  EXPECT_EQ(server_->counts().connections, 1U);
}

TEST_F(Server, RespondsInOrderToWhatIsSentAhead) {
  const Client client = connect();
  std::string all;
  for (int i = 0; i < 20; ++i) all += post("/echo?" + std::to_string(i), "b") + get("/short");
  client->say(all);
  ASSERT_TRUE(until([&] { return count_of(client->received, "short\n") == 20; }));
  std::size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    at = client->received.find("b|" + std::to_string(i) + "HTTP/1.1 200", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(Server, RespondsToHeadWithoutABody) {
  const Client client = connect();
  EXPECT_NE(said(*client, request_text("HEAD", "/short"), "\r\n\r\n").find("content-length: 6"),
            std::string::npos);
  EXPECT_EQ(said(*client, get("/short"), "short\n").find("HTTP/1.1 200"), 0U);
}

TEST_F(Server, NamesTheMethodsOfAPath) {
  const Client client = connect();
  const std::string wrong = said(*client, request_text("DELETE", "/short"), "method.\n");
  EXPECT_TRUE(wrong.starts_with("HTTP/1.1 405")) << wrong;
  EXPECT_NE(wrong.find("allow: GET, HEAD\r\n"), std::string::npos);
  const std::string options = said(*client, request_text("OPTIONS", "/short"), "\r\n\r\n");
  EXPECT_TRUE(options.starts_with("HTTP/1.1 204")) << options;
  EXPECT_NE(options.find("allow: GET, HEAD, OPTIONS\r\n"), std::string::npos);
  EXPECT_TRUE(said(*client, request_text("OPTIONS", "*"), "\r\n\r\n").starts_with("HTTP/1.1 204"));
  EXPECT_TRUE(said(*client, get("/nowhere"), "route.\n").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(said(*client, get("/short"), "short\n").starts_with("HTTP/1.1 200")) << "still open";
}

TEST_F(Server, HandsParametersToHandlers) {
  routes_.add("PUT", "/rules/{name}", [](const HttpRequest& request) {
    return text_response(200, std::string{request.parameter("name")} + " of " +
                                  std::string{request.route} + " " + std::string{request.target});
  });
  EXPECT_TRUE(alone(request_text("PUT", "/rules/a%20b?x"))
                  .ends_with("\r\n\r\na b of /rules/{name} /rules/a%20b?x"));
  EXPECT_TRUE(alone(request_text("PUT", "/rules/%zz")).starts_with("HTTP/1.1 400"));
}

TEST_F(Server, ReadsBodiesOfEveryKind) {
  const Client client = connect();
  EXPECT_NE(said(*client, post("/echo?q=1", "hello"), "hello|q=1").find("200"), std::string::npos);
  EXPECT_NE(said(*client, post("/echo", ""), "|").find("200"), std::string::npos);
  const std::string chunks = "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer-Of: it\r\n\r\n";
  const std::string chunked =
      request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") + chunks;
  EXPECT_NE(said(*client, chunked, "hello|").find("200"), std::string::npos);
  EXPECT_NE(said(*client, post("/echo", std::string(600'000, 'b')), "b|").find("200"),
            std::string::npos);
  // In the smallest pieces.
  client->received.clear();
  for (const char c : chunked) {
    client->say({&c, 1});
    loop_->turn(Nanos{0});
  }
  EXPECT_TRUE(until([&] { return client->received.ends_with("hello|"); }));
}

TEST_F(Server, EncouragesAClientThatWaitsWithItsBody) {
  const Client client = connect();
  const std::string head =
      request_text("POST", "/echo", "Content-Length: 5\r\nExpect: 100-continue\r\n");
  EXPECT_EQ(said(*client, head, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(said(*client, "hello", "hello|").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(said(*client, head + "hello", "hello|").starts_with("HTTP/1.1 200")) << "no need";
  // What will be rejected is not asked for.
  const std::string wrong =
      alone(request_text("POST", "/nowhere", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
  EXPECT_TRUE(wrong.starts_with("HTTP/1.1 404")) << wrong;
  EXPECT_NE(wrong.find("Connection: close"), std::string::npos) << "a body may follow or not";
  EXPECT_TRUE(
      alone(request_text("POST", "/echo", "Content-Length: 9999999\r\nExpect: 100-continue\r\n"))
          .starts_with("HTTP/1.1 413"));
}

// Whatever two readers could understand differently is answered once, and nothing behind it runs.
TEST_F(Server, RejectsRequestSmuggling) {
  const std::string smuggled = post("/echo", "smuggled");
  const std::vector<std::string> headers{
      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Content-Length: 5\r\nContent-Length: 6\r\n",
      "Content-Length: 5, 5\r\n",
      "Content-Length: +5\r\n",
      "Content-Length: 05\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding : chunked\r\n",
      "Transfer-Encoding:\tchunked\r\n",
      "Content_Length: 5\r\n",
      " folded: x\r\n",
      "Host: other\r\n",
      "X: a\nContent-Length: 5\r\n",
  };
  for (const std::string& wrong : headers) {
    const Client client = connect();
    client->say(request_text("POST", "/echo", wrong) + "0\r\n\r\n" + smuggled);
    ASSERT_TRUE(until([&] { return client->is_over(); })) << wrong;
    EXPECT_TRUE(client->received.starts_with("HTTP/1.1 400")) << wrong << client->received;
    EXPECT_NE(client->received.find("Connection: close"), std::string::npos) << wrong;
    EXPECT_EQ(count_of(client->received, "HTTP/1.1"), 1U) << wrong;
  }
  for (const char* chunk :
       {"5 \r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n", "ffffffffffffffffff\r\n"}) {
    const Client client = connect();
    client->say(request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") + chunk + smuggled);
    ASSERT_TRUE(until([&] { return client->is_over(); })) << chunk;
    EXPECT_TRUE(client->received.starts_with("HTTP/1.1 400")) << chunk << client->received;
  }
  EXPECT_EQ(echoes_, 0);
  EXPECT_EQ(server_->counts().malformed, headers.size() + 5);
}

// A request that is cut off never reaches a handler.
TEST_F(Server, DropsRequestsThatAreCutOff) {
  const std::string request = post("/echo", "0123456789");
  for (std::size_t size = 0; size < request.size(); ++size) {
    const Client client = connect();
    client->say(std::string_view{request}.substr(0, size));
    client->stream.finish_writing();
    ASSERT_TRUE(until([&] { return client->is_over(); })) << size;
    EXPECT_EQ(client->received, "") << size;
  }
  EXPECT_EQ(echoes_, 0);
  EXPECT_EQ(server_->connections(), 0U);
}

// It has closed its side of the connection, and reads on.
TEST_F(Server, RespondsToAClientThatSaysNoMore) {
  const Client client = connect();
  client->say(get("/short") + get("/long") + get("/short"));
  client->stream.finish_writing();
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_EQ(count_of(client->received, "HTTP/1.1 200"), 3U);
  EXPECT_TRUE(client->received.ends_with("short\n"));
}

TEST_F(Server, SpeaksWithClientsOfHttp10) {
  EXPECT_NE(alone("GET /short HTTP/1.0\r\n\r\n").find("Connection: close"), std::string::npos);
  const Client client = connect();
  const std::string kept =
      said(*client, "GET /short HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "short\n");
  EXPECT_NE(kept.find("Connection: keep-alive"), std::string::npos);
  EXPECT_NE(said(*client, get("/short"), "short\n").find("200"), std::string::npos);
}

TEST_F(Server, ClosesWhereItIsAskedTo) {
  const Client client = connect();
  client->say(request_text("GET", "/short", "Connection: close\r\n") + get("/short"));
  ASSERT_TRUE(until([&] { return client->is_over(); }));
  EXPECT_EQ(count_of(client->received, "HTTP/1.1 200"), 1U);
  EXPECT_NE(client->received.find("Connection: close"), std::string::npos);
}

TEST_F(Server, WritesNoBodyWhereThereIsNone) {
  for (const std::uint16_t status : {std::uint16_t{204}, std::uint16_t{304}}) {
    routes_.add("GET", "/" + std::to_string(status), [status](const HttpRequest&) {
      return HttpResponse{.status = status, .headers = {{"etag", "\"a\""}}, .body = "never"};
    });
    const Client client = connect();
    const std::string response = said(*client, get("/" + std::to_string(status)), "\r\n\r\n");
    EXPECT_EQ(response.find("content-length"), std::string::npos);
    EXPECT_NE(response.find("etag: \"a\"\r\n"), std::string::npos);
    EXPECT_TRUE(said(*client, get("/short"), "short\n").starts_with("HTTP/1.1 200"));
  }
}

// A handler that copies what a client sent must not be able to write another response with it.
TEST_F(Server, WritesNoResponseThatCannotBeRead) {
  const std::vector<HttpHeaders> wrong{{{"x", "a\r\nset-cookie: b"}},
                                       {{"x y", "a"}},
                                       {{"", "a"}},
                                       {{"content-length", "5"}},
                                       {{"Transfer-Encoding", "chunked"}},
                                       {{"connection", "close"}},
                                       {{"x", std::string(20'000, 'a')}}};
  HttpHeaders headers;
  std::uint16_t status = 200;
  routes_.add("GET", "/made", [&](const HttpRequest&) {
    return HttpResponse{.status = status, .headers = headers, .body = "secret"};
  });
  const Client client = connect();
  for (const HttpHeaders& one : wrong) {
    headers = one;
    const std::string response = said(*client, get("/made"), "written.\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 500")) << one.front().first;
    EXPECT_EQ(response.find("secret"), std::string::npos);
  }
  headers = {};
  for (const int none : {0, 100, 199, 600, 1000}) {
    status = static_cast<std::uint16_t>(none);
    EXPECT_TRUE(said(*client, get("/made"), "written.\n").starts_with("HTTP/1.1 500")) << none;
  }
  EXPECT_EQ(server_->counts().invalid_responses, wrong.size() + 5);
}

TEST_F(Server, WritesHeadersOfItsOwnUnlessAHandlerDoes) {
  make({.headers = {{"cache-control", "no-store"}, {"x-frame-options", "DENY"}}});
  routes_.add("GET", "/cached", [](const HttpRequest&) {
    return HttpResponse{.status = 200, .headers = {{"Cache-Control", "max-age=60"}}, .body = {}};
  });
  EXPECT_NE(alone(get("/short")).find("cache-control: no-store\r\n"), std::string::npos);
  const std::string cached = alone(get("/cached"));
  EXPECT_NE(cached.find("Cache-Control: max-age=60\r\n"), std::string::npos);
  EXPECT_EQ(cached.find("no-store"), std::string::npos);
  EXPECT_NE(cached.find("x-frame-options: DENY\r\n"), std::string::npos);
}

TEST_F(Server, FiltersByTheHeadersAlone) {
  std::vector<std::string> seen;
  HttpServerOptions options;
  options.filter = [&](const HttpRequest& request,
                       const RouteMatch& match) -> std::optional<HttpResponse> {
    seen.push_back(std::string{request.target} + (match.route != nullptr ? " found" : " none"));
    if (request.header("authorization") == "Bearer x") return std::nullopt;
    return text_response(401, "no\n");
  };
  options.error_response = [](std::uint16_t status, std::string_view why) {
    return text_response(status, "{" + std::string{why} + "}");
  };
  make(std::move(options));
  EXPECT_TRUE(alone(get("/nowhere")).starts_with("HTTP/1.1 401"))
      << "who may not ask learns nothing";
  const std::string rejected = alone(request_text("POST", "/echo", "Content-Length: 1000\r\n"));
  EXPECT_TRUE(rejected.starts_with("HTTP/1.1 401")) << "the body is not waited for";
  EXPECT_NE(rejected.find("Connection: close"), std::string::npos);
  const std::string known = "Authorization: Bearer x\r\n";
  EXPECT_TRUE(alone(request_text("GET", "/nowhere", known)).ends_with("{No matching route.}"));
  EXPECT_TRUE(alone(request_text("GET", "/short", known)).ends_with("short\n"));
  EXPECT_EQ(seen, (std::vector<std::string>{"/nowhere none", "/echo found", "/nowhere none",
                                            "/short found"}));
  EXPECT_EQ(echoes_, 0);
}

}  // namespace
}  // namespace sluice::net
