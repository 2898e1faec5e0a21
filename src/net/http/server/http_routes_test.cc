#include "net/http/server/http_routes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::net {
namespace {

using Kind = RouteMatch::Kind;

class Routes : public ::testing::Test {
 protected:
  Routes() {
    for (const char* pattern : {"/", "/v1/rules", "/v1/rules/{name}", "/v1/rules/validate",
                                "/v1/rules/{name}/versions/{number}", "/v1/{kind}/validate/all"}) {
      add("GET", pattern);
    }
    add("PUT", "/v1/rules/{name}");
    add("DELETE", "/v1/rules/{name}");
    add("POST", "/v1/check");
  }
  void add(std::string_view method, std::string_view pattern) {
    routes_.add(method, pattern, [](const HttpRequest&) { return HttpResponse{}; });
  }
  // "pattern name=value name=value"
  [[nodiscard]] std::string found(std::string_view path, std::string_view method = "GET") const {
    const RouteMatch match = routes_.match(method, path);
    switch (match.kind) {
      case Kind::no_path: return "none";
      case Kind::no_method: return "allow " + match.allow;
      case Kind::malformed: return "malformed";
      case Kind::found: break;
    }
    std::string text{match.pattern};
    for (const PathParameter& one : match.parameters) {
      text += " " + std::string{one.name} + "=" + one.value;
    }
    return text;
  }

  HttpRoutes routes_;
};

TEST_F(Routes, AreFoundByPath) {
  EXPECT_EQ(found("/"), "/");
  EXPECT_EQ(found("/v1/rules"), "/v1/rules");
  EXPECT_EQ(found("/v1/rules/login"), "/v1/rules/{name} name=login");
  EXPECT_EQ(found("/v1/rules/a/versions/7"), "/v1/rules/{name}/versions/{number} name=a number=7");
  for (const char* path : {"", "*", "v1/rules", "/v1", "/v1/rules/", "/v1//rules", "/v1/rules/a/b",
                           "//", "/V1/rules", "/v1/%72ules", "/v1/./rules", "/x/../v1/rules"}) {
    EXPECT_EQ(found(path), "none") << path;
  }
}

TEST_F(Routes, PreferPlainSegments) {
  EXPECT_EQ(found("/v1/rules/validate"), "/v1/rules/validate");
  EXPECT_EQ(found("/v1/lists/validate/all"), "/v1/{kind}/validate/all kind=lists");
  add("GET", "/v1/rules/{name}/all");
  EXPECT_EQ(found("/v1/rules/validate/all"), "/v1/rules/{name}/all name=validate");
}

TEST_F(Routes, DecodeParameters) {
  EXPECT_EQ(found("/v1/rules/a%20b%2Fc"), "/v1/rules/{name} name=a b/c");
  EXPECT_EQ(found("/v1/rules/gr%C3%BC%C3%9Fe"),
            "/v1/rules/{name} name=gr\xc3\xbc\xc3\x9f"
            "e");
  for (const char* path :
       {"/v1/rules/%", "/v1/rules/%4", "/v1/rules/%zz", "/v1/rules/a%00b", "/v1/rules/a%0d%0ab",
        "/v1/rules/%ff", "/v1/rules/%2e", "/v1/rules/%2E%2e",
        // Of these a handler could make a path out of its folder.
        "/v1/rules/%2e%2e%2fx", "/v1/rules/..%2Fx", "/v1/rules/a%2F..%2Fb", "/v1/rules/a%2f%2e%2e",
        "/v1/rules/a%2f.", "/v1/rules/..%5cx", "/v1/rules/a%5C%2E%2E"}) {
    EXPECT_EQ(found(path), "malformed") << path;
  }
  for (const char* path : {"/v1/rules/.", "/v1/rules/.."}) EXPECT_EQ(found(path), "none") << path;
  EXPECT_EQ(found("/v1/rules/..a%2F.b%2Fc."), "/v1/rules/{name} name=..a/.b/c.");
}

TEST_F(Routes, KnowTheMethodsOfAPath) {
  EXPECT_EQ(found("/v1/rules/a", "HEAD"), "/v1/rules/{name} name=a");
  EXPECT_EQ(found("/v1/rules/a", "POST"), "allow DELETE, GET, HEAD, PUT");
  EXPECT_EQ(found("/v1/check", "GET"), "allow POST");
  EXPECT_EQ(found("/v1/check", "HEAD"), "allow POST");
  EXPECT_EQ(found("/v1/rules", "get"), "allow GET, HEAD") << "methods have capitals";
}

TEST_F(Routes, FallBackWhereThereIsOne) {
  routes_.set_fallback([](const HttpRequest&) { return HttpResponse{}; }, {.body_bytes_max = 5});
  for (const char* path : {"/anything", "*", "/v1/check", "a.example:443"}) {
    const RouteMatch match = routes_.match("GET", path);
    ASSERT_EQ(match.kind, Kind::found) << path;
    EXPECT_EQ(match.route->options.body_bytes_max, 5U);
    EXPECT_EQ(match.pattern, "");
  }
  EXPECT_EQ(found("/v1/rules"), "/v1/rules");
}

TEST(Request, FindsWhatTheQuerySays) {
  HttpRequest request;
  request.query = "a=1&b&c=x+y%26z&a=2&bad=%zz&=5&e=";
  EXPECT_EQ(request.query_value("a"), "1");
  EXPECT_EQ(request.query_value("b"), "");
  EXPECT_EQ(request.query_value("c"), "x y&z");
  EXPECT_EQ(request.query_value("e"), "");
  EXPECT_EQ(request.query_value("d"), std::nullopt);
  EXPECT_EQ(request.query_value("bad"), std::nullopt);
  EXPECT_TRUE(request.asks_for("bad"));
  EXPECT_TRUE(request.asks_for("b"));
  EXPECT_FALSE(request.asks_for("d"));
}

TEST(Request, FindsHeadersInAnyCase) {
  const HeaderView headers[] = {{"Accept", "a"}, {"accept", "b"}};
  HttpRequest request;
  request.headers = headers;
  EXPECT_EQ(request.header("ACCEPT"), "a");
  EXPECT_EQ(request.header("x"), std::nullopt);
  EXPECT_EQ(request.parameter("x"), "");
}

}  // namespace
}  // namespace sluice::net
