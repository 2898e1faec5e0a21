#include "frontend/admin/guard.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace sluice::admin {
namespace {

constexpr std::string_view kToken = "a token of sufficient length";

struct Asked {
  std::string_view host = "127.0.0.1:9090";
  std::vector<HeaderView> headers;
  bool is_local = false;
};

int refused(const Guard& guard, const Asked& asked) {
  const Request request{.method = "GET",
                        .path = "/metrics",
                        .query = {},
                        .host = asked.host,
                        .headers = asked.headers,
                        .body = {},
                        .is_local = asked.is_local};
  const std::optional<Reply> reply = guard.refuse(request);
  return reply ? reply->status : 0;
}

TEST(Guard, WithATokenWantsExactlyThat) {
  const Guard guard{kToken};
  EXPECT_EQ(refused(guard, {.headers = {{"Authorization", "Bearer a token of sufficient length"}}}),
            0);
  EXPECT_EQ(refused(guard, {.headers = {{"AUTHORIZATION", "bearer a token of sufficient length"}}}),
            0);
  for (const std::string_view wrong :
       {"", "Bearer", "Bearer ", "Bearer a token of sufficient lengt",
        "Bearer a token of sufficient length ", "Basic a token of sufficient length",
        "a token of sufficient length"}) {
    EXPECT_EQ(refused(guard, {.headers = {{"authorization", wrong}}}), 401) << wrong;
  }
  EXPECT_EQ(refused(guard, {}), 401);
}

// Who knows the token may ask under any name: behind a load balancer, say.
TEST(Guard, WithATokenDoesNotMindNames) {
  const Guard guard{kToken};
  EXPECT_EQ(refused(guard, {.host = "admin.example.com",
                            .headers = {{"authorization", "Bearer a token of sufficient length"},
                                        {"origin", "https://dashboards.example"}}}),
            0);
}

TEST(Guard, WithoutATokenKnowsNoNames) {
  const Guard guard;
  for (const std::string_view host : {"127.0.0.1", "127.0.0.1:9090", "[::1]:9090", "[::1]",
                                      "localhost", "LocalHost:9090", "10.0.0.7:1"}) {
    EXPECT_EQ(refused(guard, {.host = host}), 0) << host;
  }
  for (const std::string_view host :
       {"", "evil.example", "evil.example:9090", "127.0.0.1.evil.example", "localhost.evil.example",
        "localhost@evil.example", "0x7f000001", "127.1", "[::1", "::1", "127.0.0.1:99999"}) {
    EXPECT_EQ(refused(guard, {.host = host}), 403) << host;
  }
}

// Nobody but a process of this machine opens a path.
TEST(Guard, OnAUnixSocketAnyNameIsFine) {
  EXPECT_EQ(refused(Guard{}, {.host = "whatever", .is_local = true}), 0);
  EXPECT_EQ(refused(Guard{}, {.host = "", .is_local = true}), 0);
}

TEST(Guard, WithoutATokenPagesFromElsewhereMayNotAsk) {
  const Guard guard;
  const auto from = [&](std::string_view origin) {
    return refused(guard, {.headers = {{"Origin", origin}}});
  };
  EXPECT_EQ(from("http://127.0.0.1:9090"), 0);
  EXPECT_EQ(from("http://localhost:3000"), 0);
  EXPECT_EQ(from("https://evil.example"), 403);
  EXPECT_EQ(from("http://203.0.113.5"), 403) << "an address is a place as well";
  EXPECT_EQ(from("http://[2001:db8::1]:9090"), 403);
  EXPECT_EQ(from("http://[::1]:3000"), 0);
  EXPECT_EQ(from("null"), 403);
  EXPECT_EQ(from(""), 403);
  EXPECT_EQ(from("http://127.0.0.1/path"), 403) << "no browser writes that";
}

}  // namespace
}  // namespace sluice::admin
