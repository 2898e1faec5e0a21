// The client under TLS: whom it trusts, and what it makes of connections that end badly.

#include "net/http/client/client_fixture.h"
#include "net/tls_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace sluice::net {
namespace {

using Kind = HttpFailure::Kind;

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class ClientTls : public testing::TlsFixture {
 protected:
  ClientTls() { server_.tls = server(); }

  [[nodiscard]] HttpOrigin origin(const TlsClientOptions& options,
                                  const std::string& name = "example.com") const {
    return HttpOrigin::load(HttpUrl::parse(server_.url()).value(), options, name).value();
  }
  HttpResult ask(const HttpOrigin& origin) {
    testing::Asked asked;
    client_.send(origin, {}, asked.call);
    EXPECT_TRUE(loop_.until([&] { return asked.result.has_value(); }));
    return asked.result.value_or(tl::unexpected(HttpFailure{.message = "nothing came"}));
  }

  testing::Loop loop_;
  Resolver resolver_;
  testing::ScriptedServer server_{*loop_};
  HttpClient client_{*loop_, resolver_};
};

TEST_F(ClientTls, TrustsWhomItIsToldTo) {
  server_.responses = {kOk, kOk, kOk};
  const HttpOrigin trusted = origin(client_options());
  for (int i = 0; i < 3; ++i) {
    const HttpResult result = ask(trusted);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->body, "ok");
  }
  EXPECT_EQ(server_.connections, 1U) << "the connection is used again";
}

TEST_F(ClientTls, TrustsNobodyElse) {
  const HttpResult by_system = ask(origin({}));
  ASSERT_FALSE(by_system);
  EXPECT_EQ(by_system.error().kind, Kind::tls);
  EXPECT_NE(by_system.error().message.find("certificate"), std::string::npos)
      << by_system.error().message;
  const HttpResult other_name = ask(origin(client_options(), "other.example"));
  ASSERT_FALSE(other_name);
  EXPECT_EQ(other_name.error().kind, Kind::tls);
  const HttpResult own_name = ask(origin(client_options(), ""));
  ASSERT_FALSE(own_name) << "the certificate is not for 127.0.0.1";
  EXPECT_EQ(server_.heard, "");
  server_.responses = {kOk};
  EXPECT_TRUE(ask(origin({.verify = false}))) << "unless it is told not to care";
}

// A connection that was verified in one way is not used for a request to be verified in another.
TEST_F(ClientTls, KeepsConnectionsOfDifferentTrustApart) {
  server_.responses = {kOk, kOk};
  EXPECT_TRUE(ask(origin({.verify = false})));
  EXPECT_FALSE(ask(origin(client_options(), "other.example")));
  EXPECT_EQ(server_.connections, 2U);
}

TEST_F(ClientTls, ShowsACertificateOfItsOwn) {
  const auto own = authority_.issue("node", {.common_name = "node-1", .names = {}});
  TlsServerOptions options = server_options();
  options.client_auth = ClientAuth::required;
  options.client_ca_file = authority_.file();
  server_.tls = server(options);
  server_.responses = {kOk};
  EXPECT_FALSE(ask(origin(client_options())));
  TlsClientOptions with = client_options();
  with.certificate = testing::files(own);
  server_.responses = {kOk};
  const HttpResult result = ask(origin(with));
  EXPECT_TRUE(result) << result.error().message;
}

TEST_F(ClientTls, SaysThatAServerSpeaksPlainHttp) {
  const HttpOrigin secure = origin(client_options());
  server_.tls = nullptr;
  server_.responses = {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"};
  testing::Asked asked;
  client_.send(secure, {}, asked.call);
  EXPECT_TRUE(loop_.until([&] {
    server_.say("HTTP/1.1 400 Bad Request\r\n\r\n");
    return asked.result.has_value();
  }));
  EXPECT_EQ(asked.result->error().kind, Kind::tls) << asked.text();
}

// Without the farewell of TLS the end may be an attacker's.
TEST_F(ClientTls, TakesNoBodyUntilTheEndOfAConnectionThatWasCut) {
  const HttpOrigin trusted = origin(client_options());
  testing::Asked asked;
  client_.send(trusted, {}, asked.call);
  ASSERT_TRUE(loop_.until([&] { return server_.heard.ends_with("\r\n\r\n"); }));
  server_.say("HTTP/1.1 200 OK\r\n\r\nhalf");
  server_.cut();
  EXPECT_TRUE(loop_.until([&] { return asked.result.has_value(); }));
  EXPECT_FALSE(*asked.result) << asked.text();
  server_.hangs_up = true;
  server_.responses = {"HTTP/1.1 200 OK\r\n\r\nwhole"};
  EXPECT_EQ(ask(trusted)->body, "whole");
}

TEST_F(ClientTls, NeedsWhatAnHttpsUrlIsVerifiedBy) {
  HttpOrigin none{.url = HttpUrl::parse("https://127.0.0.1:1").value(), .tls = nullptr};
  const HttpResult result = ask(none);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::tls);
  EXPECT_FALSE(HttpOrigin::load(none.url, {.ca_file = "/nowhere.pem"}));
}

}  // namespace
}  // namespace sluice::net
