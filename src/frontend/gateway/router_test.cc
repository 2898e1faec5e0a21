#include "frontend/gateway/router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::gateway {
namespace {

RouteOptions route(std::vector<std::string> hosts, std::string_view path, std::size_t upstream) {
  RouteOptions made{.hosts = std::move(hosts), .path = std::nullopt, .upstream = upstream};
  if (!path.empty()) made.path = rules::PathTemplate::parse(path).value();
  return made;
}

TEST(Router, KnowsNothingWithoutRoutes) {
  const Router router{{}};
  EXPECT_EQ(router.find("a", "/"), std::nullopt);
}

// An exact host over a wildcard over any, a longer wildcard over a shorter one; whatever the order
// of the file.
TEST(Router, PrefersTheHostThatSaysMore) {
  const std::vector<RouteOptions> routes{route({}, "", 0), route({"*.example.com"}, "", 1),
                                         route({"*.api.example.com"}, "", 2),
                                         route({"a.api.example.com"}, "", 3)};
  const Router router{routes};
  EXPECT_EQ(router.find("a.api.example.com", "/"), 3U);
  EXPECT_EQ(router.find("b.api.example.com", "/"), 2U);
  EXPECT_EQ(router.find("a.b.example.com", "/"), 1U);
  EXPECT_EQ(router.find("example.com", "/"), 0U) << "a wildcard is for what is below";
  EXPECT_EQ(router.find("badexample.com", "/"), 0U);
  EXPECT_EQ(router.find("", "/"), 0U);
}

TEST(Router, PrefersThePathThatSaysMore) {
  const std::vector<RouteOptions> routes{route({}, "", 0), route({}, "/v1/**", 1),
                                         route({}, "/v1/users/{id}", 2),
                                         route({}, "/v1/users/me", 3)};
  const Router router{routes};
  EXPECT_EQ(router.find("a", "/v1/users/me"), 3U);
  EXPECT_EQ(router.find("a", "/v1/users/7"), 2U);
  EXPECT_EQ(router.find("a", "/v1/users/7/x"), 1U);
  EXPECT_EQ(router.find("a", "/v10"), 0U);
}

// Else the routes of a host would be incomplete without its every path.
TEST(Router, GoesOnToOtherHostsWhereNoPathOfTheFirstOneMatches) {
  const std::vector<RouteOptions> routes{route({"a"}, "/v1/**", 0), route({}, "", 1)};
  const Router router{routes};
  EXPECT_EQ(router.find("a", "/v1"), 0U);
  EXPECT_EQ(router.find("a", "/v2"), 1U);
}

TEST(Router, TakesTheFirstOfThoseThatSayTheSame) {
  const std::vector<RouteOptions> routes{route({"b", "a"}, "/{x}", 0), route({"a"}, "/{y}", 1)};
  const Router router{routes};
  EXPECT_EQ(router.find("a", "/z"), 0U);
  EXPECT_EQ(router.find("b", "/z"), 0U);
  EXPECT_EQ(router.find("c", "/z"), std::nullopt);
}

}  // namespace
}  // namespace sluice::gateway
