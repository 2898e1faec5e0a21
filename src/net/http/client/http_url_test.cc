#include "net/http/client/http_url.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::net {
namespace {

TEST(HttpUrl, HasHostPortAndPath) {
  const HttpUrl url = HttpUrl::parse("http://127.0.0.1:8080/v1/users?a=b").value();
  EXPECT_FALSE(url.is_tls);
  EXPECT_EQ(url.endpoint.text(), "127.0.0.1:8080");
  EXPECT_EQ(url.host, "127.0.0.1:8080");
  EXPECT_EQ(url.path_and_query, "/v1/users?a=b");
  EXPECT_EQ(url.server(), "http://127.0.0.1:8080");
}

// The Host header has no port where the URL has none, as browsers do it.
TEST(HttpUrl, KnowsTheUsualPorts) {
  const HttpUrl plain = HttpUrl::parse("http://Example.com").value();
  EXPECT_EQ(plain.endpoint.text(), "example.com:80");
  EXPECT_EQ(plain.host, "Example.com");
  EXPECT_EQ(plain.path_and_query, "/");
  const HttpUrl secure = HttpUrl::parse("https://[::1]?q").value();
  EXPECT_TRUE(secure.is_tls);
  EXPECT_EQ(secure.endpoint.text(), "[::1]:443");
  EXPECT_EQ(secure.name(), "::1");
  EXPECT_EQ(secure.path_and_query, "/?q");
  EXPECT_EQ(secure.server(), "https://[::1]");
}

TEST(HttpUrl, IsNothingElse) {
  for (const char* const text :
       {"", "127.0.0.1:80", "ftp://a/", "http://", "http:///x", "http://a:0/", "http://a:x/",
        "http://:80/", "http://u:p@a/", "http://a/b c", "http://a/#f", "http://unix:/run/s",
        "http://::1/", "http://1.2.3.400/", "HTTP://a", "http://a\r\nx", "http://a/\xc3\xa9"}) {
    const auto url = HttpUrl::parse(text, "URL to load");
    ASSERT_FALSE(url) << text;
    EXPECT_NE(url.error().message.find("is no URL to load: "), std::string::npos) << text;
  }
}

TEST(HttpUrl, MayNameAServerAlone) {
  const auto server = [](std::string_view text) {
    const auto url = HttpUrl::parse_server(text);
    return url ? url->server() + " " + url->endpoint.text() + " " + url->host : std::string{"no"};
  };
  EXPECT_EQ(server("http://127.0.0.1:9090"), "http://127.0.0.1:9090 127.0.0.1:9090 127.0.0.1:9090");
  EXPECT_EQ(server("127.0.0.1:9090"), "http://127.0.0.1:9090 127.0.0.1:9090 127.0.0.1:9090");
  EXPECT_EQ(server("http://a.example/"), "http://a.example a.example:80 a.example");
  EXPECT_EQ(server("http://[::1]"), "http://[::1] [::1]:80 [::1]");
  EXPECT_EQ(server("http://[::1]:90"), "http://[::1]:90 [::1]:90 [::1]:90");
  EXPECT_EQ(server("https://a.example"), "https://a.example a.example:443 a.example");
  EXPECT_EQ(server("unix:/run/s"), "unix:/run/s unix:/run/s localhost");
  for (const char* wrong : {"", "http://", "http://:80", "http://a b:1", "http://a.example/path",
                            "http://a.example/?q", "unix:relative", "ftp://a"}) {
    EXPECT_EQ(server(wrong), "no") << wrong;
  }
}

}  // namespace
}  // namespace sluice::net
