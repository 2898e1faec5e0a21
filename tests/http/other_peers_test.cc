// Our client and nginx as its server; our server and nginx and curl as its clients.

#include "net/http/client/client_fixture.h"
#include "net/http/client/http_client.h"
#include "net/http/server/http_server.h"
#include "net/http/server/server_sent_events.h"
#include "net/listen.h"
#include "net/tls_fixture.h"
#include "support/program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using sluice::testing::find_program;
using sluice::testing::Program;

class OtherPeers : public testing::TlsFixture {
 protected:
  OtherPeers() {
    routes_.add("GET", "/short", [](const HttpRequest&) { return text_response(200, "short\n"); });
    routes_.add(
        "POST", "/echo",
        [](const HttpRequest& request) { return text_response(200, std::string{request.body}); },
        {.body_bytes_max = 5'000'000});
    routes_.add("GET", "/events", [this](const HttpRequest&, Responder responder) {
      streams_.push_back(begin_events(std::move(responder)));
    });
    if (!acceptor_.start(*loop_, listener_.descriptor())) std::abort();
    if (!tls_acceptor_.start(*loop_, tls_listener_.descriptor())) std::abort();
    server_.use_tls(server());
  }
  void write_file(const std::string& name, std::string_view text) const {
    std::ofstream{folder_.file(name), std::ios::binary} << text;
  }
  [[nodiscard]] std::string address() const { return listener_.endpoint().text(); }

  testing::Loop loop_;
  Resolver resolver_;
  HttpRoutes routes_;
  std::deque<ResponseStream> streams_;
  HttpServer server_{*loop_, routes_};
  Listener listener_ = listen_on(testing::free_port()).value();
  Listener tls_listener_ = listen_on(testing::free_port()).value();
  Acceptor acceptor_{Callback<Accepted>::to<&HttpServer::accept>(server_)};
  Acceptor tls_acceptor_{Callback<Accepted>::to<&HttpServer::accept_tls>(server_)};
};

// ---- nginx ------------------------------------------------------------------------------------

// On Unix sockets, so that no port has to be free: `plain` and `secure`.
class Nginx : public OtherPeers {
 protected:
  void SetUp() override {
    const auto program = find_program("nginx");
    ASSERT_TRUE(program) << "install nginx-light, as ./dev setup test does";
    write_file("small.txt", "small\n");
    write_file("large.bin", std::string(3'000'000, 'L'));
    write_file("page.shtml", "<!--# echo var=\"uri\" --> and more");
    write_file("nginx.conf", configuration());
    nginx_ = std::make_unique<Program>(
        std::vector<std::string>{*program, "-p", folder_.file(""), "-e", "stderr", "-c",
                                 folder_.file("nginx.conf")},
        folder_.file("nginx.log"));
    // It binds both before it serves either.
    ASSERT_TRUE(loop_.until([&] {
      if (nginx_->has_ended()) return true;
      return ask("plain", {.path = "/small.txt"}) == "200 small\n";
    }));
    ASSERT_FALSE(nginx_->has_ended()) << nginx_->output();
  }
  [[nodiscard]] std::string configuration() const {
    std::string temporary;
    for (const std::string kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      temporary += kind + "_temp_path " + folder_.file(kind) + ";\n";
    }
    return "daemon off; master_process off; pid " + folder_.file("pid") +
           "; error_log stderr crit;\nevents {}\nhttp { access_log off;\n" + temporary +
           "server { listen unix:" + folder_.file("plain") +
           "; listen unix:" + folder_.file("secure") + " ssl;\nssl_certificate " + example_.chain +
           "; ssl_certificate_key " + example_.key + ";\nroot " + folder_.file("") +
           "; keepalive_requests 5; client_max_body_size 100k;\n"
           "location /page.shtml { ssi on; ssi_types *; }\n"
           "location /none { return 204; }\n"
           "location /slow { limit_rate 1; alias " +
           folder_.file("large.bin") +
           "; }\n"
           "location /ours/ { proxy_http_version 1.1; proxy_set_header Connection ''; "
           "proxy_request_buffering off; proxy_buffering off; client_max_body_size 10m; "
           "proxy_pass http://" +
           address() +
           "/; }\n"
           "} }\n";
  }
  [[nodiscard]] HttpOrigin origin(const std::string& socket) {
    HttpUrl url = HttpUrl::parse_server("unix:" + folder_.file(socket)).value();
    url.is_tls = socket == "secure";
    std::optional<HttpOrigin>& known = url.is_tls ? secure_ : plain_;
    if (!known) known = HttpOrigin::load(url, client_options(), "example.com").value();
    return *known;
  }
  std::string ask(const std::string& socket, const ClientRequest& request) {
    asked_.result.reset();
    client_.send(origin(socket), request, asked_.call);
    EXPECT_TRUE(loop_.until([&] { return asked_.result.has_value(); }));
    return asked_.text();
  }

  HttpClient client_{*loop_, resolver_};
  std::optional<HttpOrigin> plain_;
  std::optional<HttpOrigin> secure_;
  testing::Asked asked_;
  std::unique_ptr<Program> nginx_;
};

TEST_F(Nginx, ServesOurClient) {
  for (const char* socket : {"plain", "secure"}) {
    const std::uint64_t before = client_.connections();
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(ask(socket, {.path = "/small.txt"}), "200 small\n") << socket << i;
    }
    const std::uint64_t opened = client_.connections() - before;
    EXPECT_TRUE(opened == 4 || opened == 5) << "five requests on each: " << opened;
    EXPECT_EQ(ask(socket, {.path = "/large.bin"}), "200 " + std::string(3'000'000, 'L'));
    EXPECT_EQ(ask(socket, {.path = "/page.shtml"}), "200 /page.shtml and more");
    EXPECT_EQ((*asked_.result)->header("transfer-encoding"), "chunked");
    EXPECT_EQ(ask(socket, {.path = "/none"}), "204 ");
    EXPECT_EQ(ask(socket, {.method = "HEAD", .path = "/large.bin"}), "200 ");
    EXPECT_TRUE(ask(socket, {.path = "/nowhere"}).starts_with("404 "));
    EXPECT_TRUE(ask(socket, {.method = "POST", .path = "/none", .body = std::string(200'000, 'x')})
                    .starts_with("413 "));
  }
}

TEST_F(Nginx, IsTooSlowForOurClient) {
  const std::string late = ask("plain", {.path = "/slow", .timeout = 100ms});
  EXPECT_NE(late.find("no whole response within 100 ms"), std::string::npos) << late;
  EXPECT_EQ(ask("plain", {.path = "/small.txt"}), "200 small\n");
}

TEST_F(Nginx, IsAClientOfOurServer) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ask("plain", {.path = "/ours/short"}), "200 short\n") << i;
  }
  const std::string large(4'000'000, 'x');
  EXPECT_EQ(ask("plain", {.method = "POST", .path = "/ours/echo", .body = large}), "200 " + large);
  EXPECT_EQ(ask("plain", {.method = "HEAD", .path = "/ours/short"}), "200 ");
  EXPECT_TRUE(ask("plain", {.path = "/ours/nowhere"}).starts_with("404 "));
}

TEST_F(Nginx, PassesOurStreamsOn) {
  const HttpOrigin plain = origin("plain");
  testing::Asked asked;
  client_.send(plain, {.path = "/ours/events"}, asked.call);
  ASSERT_TRUE(loop_.until([&] { return !streams_.empty(); }));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(streams_.front().write("x"));
  streams_.front().finish();
  ASSERT_TRUE(loop_.until([&] { return asked.result.has_value(); }));
  EXPECT_EQ(asked.text(), "200 " + std::string(50, 'x'));
  // The client hangs up, and so does nginx.
  client_.send(plain, {.path = "/ours/events"}, asked.call);
  ASSERT_TRUE(loop_.until([&] { return streams_.size() == 2; }));
  asked.call.cancel();
  EXPECT_TRUE(loop_.until([&] { return !streams_.back().is_open(); }));
}

// ---- curl -------------------------------------------------------------------------------------

class Curl : public OtherPeers {
 protected:
  void SetUp() override {
    curl_ = find_program("curl").value_or("");
    if (curl_.empty()) GTEST_SKIP() << "curl is not installed";
  }
  // What it prints.
  std::string run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {curl_, "-sS", "--http1.1", "--max-time", "20"});
    Program program{arguments, folder_.file("output")};
    EXPECT_TRUE(loop_.until([&] { return program.has_ended(); }));
    return program.output();
  }
  [[nodiscard]] std::string url(std::string_view path) const {
    return "http://" + address() + std::string{path};
  }

  std::string curl_;
};

TEST_F(Curl, IsServed) {
  EXPECT_EQ(run({url("/short"), url("/short"), url("/short")}), "short\nshort\nshort\n");
  EXPECT_EQ(server_.counts().connections, 1U) << "by one connection";
  EXPECT_NE(run({"-I", url("/short")}).find("content-length: 6"), std::string::npos);
  EXPECT_EQ(run({"-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", url("/short")}), "405");
  EXPECT_EQ(run({"-0", url("/short")}), "short\n") << "by HTTP/1.0";
}

TEST_F(Curl, SendsBodies) {
  const std::string large(2'000'000, 'c');
  write_file("body", large);
  const std::string body = "@" + folder_.file("body");
  EXPECT_EQ(run({"--data-binary", body, url("/echo")}), large);
  EXPECT_EQ(run({"--data-binary", body, "-H", "Transfer-Encoding: chunked", url("/echo")}), large);
  EXPECT_EQ(run({"--data-binary", body, "-H", "Expect: 100-continue", "--expect100-timeout", "19",
                 url("/echo")}),
            large);
}

TEST_F(Curl, SpeaksTls) {
  const std::string port = std::to_string(tls_listener_.endpoint().port);
  EXPECT_EQ(run({"--cacert", authority_.file(), "--resolve", "example.com:" + port + ":127.0.0.1",
                 "https://example.com:" + port + "/short"}),
            "short\n");
}

TEST_F(Curl, ReadsEvents) {
  Program program{{curl_, "-sSN", "--max-time", "20", url("/events")}, folder_.file("output")};
  ASSERT_TRUE(loop_.until([&] { return !streams_.empty(); }));
  ASSERT_TRUE(streams_.front().write(format_event({.event = "one", .data = "1", .id = {}})));
  EXPECT_TRUE(loop_.until([&] { return program.output() == "event: one\ndata: 1\n\n"; }));
  EXPECT_FALSE(program.has_ended());
  streams_.front().finish();
  EXPECT_TRUE(loop_.until([&] { return program.has_ended(); }));
  EXPECT_EQ(program.code(), 0);
}

}  // namespace
}  // namespace sluice::net
