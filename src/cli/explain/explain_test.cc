// What `sluice explain` tells of the way through a gateway, and of the request it is asked about.
#include "app/config/configuration.h"
#include "cli/explain/explained_request.h"
#include "cli/explain/route_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGateway = R"(
rules: [{name: a, per: ip, limit: 5/1s}]
listen: {gateway: '127.0.0.1:0'}
upstreams:
  app: {servers: ['127.0.0.1:3000', '127.0.0.1:3001']}
  files: {servers: [unix:/run/files.sock]}
routes:
  - {path: /v1/**, upstream: app}
  - {host: [static.example.com, '*.cdn.example.com'], upstream: files}
)";

app::ServeConfig gateway(const std::string& text) {
  config::Diagnostics diagnostics;
  app::ServeConfig serve = app::read_configuration(text, "sluice.yaml", diagnostics).serve;
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
  return serve;
}

TEST(ExplainedRoute, NamesRouteUpstreamAndServers) {
  const app::ServeConfig serve = gateway(kGateway);
  const RouteStory path = route_of(serve, "api.example.com", "/v1/users");
  EXPECT_EQ(route_text(path), "/v1/**, to upstream app (127.0.0.1:3000, 127.0.0.1:3001)");
  EXPECT_EQ(route_members(path),
            R"("route":{"hosts":[],"path":"/v1/**"},)"
            R"("upstream":{"name":"app","servers":["127.0.0.1:3000","127.0.0.1:3001"]})");
  const RouteStory host = route_of(serve, "a.cdn.example.com", "/v1/users");
  EXPECT_THAT(route_text(host),
              HasSubstr("static.example.com or *.cdn.example.com any path, to upstream files"));
  EXPECT_THAT(route_members(host), HasSubstr(R"("path":null},"upstream":{"name":"files")"));
}

TEST(ExplainedRoute, SaysThatThereIsNone) {
  const RouteStory none = route_of(gateway(kGateway), "api.example.com", "/other");
  EXPECT_TRUE(none.has_gateway);
  EXPECT_THAT(route_text(none), HasSubstr("none: what passes the rules is answered 404"));
  EXPECT_EQ(route_members(none), R"("route":null,"upstream":null)");
}

// The gateway compares upstreams, not routes.
TEST(ExplainedRoute, IsAmbiguousWhereTheTwoReadingsOfAPathLeadElsewhere) {
  const app::ServeConfig serve = gateway(R"(
rules: []
listen: {gateway: '127.0.0.1:0'}
upstreams: {app: {servers: [':1']}, users: {servers: [':2']}}
routes:
  - {path: '/v1/{one}', upstream: app}
  - {path: /v1/a/b, upstream: users}
  - {path: /v1/a/c, upstream: app}
)");
  const RouteStory one = route_of(serve, "h", "/v1/a%2Fb", "/v1/a/b");
  EXPECT_TRUE(one.is_ambiguous);
  EXPECT_FALSE(one.found);
  EXPECT_THAT(route_text(one), HasSubstr("the path has different routes"));
  EXPECT_EQ(route_members(one), R"("route":null,"upstream":null)");
  EXPECT_TRUE(route_of(serve, "h", "/v1/a%2Fd", "/v1/a/d").is_ambiguous) << "one of them has none";
  EXPECT_THAT(route_text(route_of(serve, "h", "/v1/a%2Fc", "/v1/a/c")),
              HasSubstr("/v1/{one}, to upstream app"));
  const RouteStory none = route_of(serve, "h", "/x%2Fy", "/x/y");
  EXPECT_FALSE(none.is_ambiguous);
  EXPECT_THAT(route_text(none), HasSubstr("404"));
}

TEST(ExplainedRoute, IsNotToldOfWithoutAGateway) {
  EXPECT_FALSE(route_of(gateway("rules: []"), "a", "/").has_gateway);
}

TEST(ExplainedRequest, IsReadAsItIsTyped) {
  ExplainOptions options;
  options.request = "POST /login?a=b";
  options.headers = {"x-api-key:  k", "empty:"};
  options.ip = "2001:db8::1";
  options.descriptors = {{"tenant=gold", "path=/a=b"}};
  const Parsed<ExplainedRequest> request = ExplainedRequest::parse(options);
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->target, "/login?a=b");
  EXPECT_EQ(request->headers[0].second, "k");
  EXPECT_EQ(request->headers[1].second, "");
  EXPECT_EQ(request->descriptor[1].second, "/a=b");
  options.request = "/login";
  EXPECT_EQ(ExplainedRequest::parse(options)->method, "GET");
}

TEST(ExplainedRequest, ThatMakesNoSenseIsToldWhatToWrite) {
  const auto told = [](auto&& change) {
    ExplainOptions options;
    options.request = "GET /";
    change(options);
    const auto request = ExplainedRequest::parse(options);
    return request ? std::string{} : request.error().text();
  };
  EXPECT_THAT(told([](auto& o) { o.request = "login"; }), HasSubstr("write a method and a path"));
  EXPECT_THAT(told([](auto& o) { o.request = "GET /a b"; }), HasSubstr("write %20"));
  EXPECT_THAT(told([](auto& o) { o.headers = {"name"}; }), HasSubstr("write 'name: value'"));
  EXPECT_THAT(told([](auto& o) { o.ip = "somewhere"; }), HasSubstr("write 192.0.2.1"));
  EXPECT_THAT(told([](auto& o) { o.descriptors = {{"a"}}; }), HasSubstr("write key=value"));
  EXPECT_THAT(told([](auto& o) { o.descriptors = {{"a=b"}, {"c=d"}}; }),
              HasSubstr("give --descriptor once"));
}

}  // namespace
}  // namespace sluice::cli
