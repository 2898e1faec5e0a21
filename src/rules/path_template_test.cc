#include "rules/path_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::rules {
namespace {

using ::testing::HasSubstr;

PathTemplate path(std::string_view text) { return PathTemplate::parse(text).value(); }

bool matches(std::string_view pattern, std::string_view actual) {
  return path(pattern).matches(actual);
}

TEST(PathTemplate, MatchesSegmentBySegment) {
  EXPECT_TRUE(matches("/login", "/login"));
  EXPECT_FALSE(matches("/login", "/logins"));
  EXPECT_FALSE(matches("/login", "/login/x"));
  EXPECT_FALSE(matches("/login", "/"));
  EXPECT_TRUE(matches("/", "/"));
  EXPECT_FALSE(matches("/", "/x"));
  EXPECT_TRUE(matches("/v1/*/files", "/v1/a/files"));
  EXPECT_FALSE(matches("/v1/*/files", "/v1/a/b/files"));
  EXPECT_FALSE(matches("/v1/*/files", "/v1/files"));
}

TEST(PathTemplate, HasAnyNumberOfSegmentsAtItsEnd) {
  for (const char* actual : {"/v1", "/v1/", "/v1/a", "/v1/a/b/c"}) {
    EXPECT_TRUE(matches("/v1/**", actual)) << actual;
  }
  EXPECT_FALSE(matches("/v1/**", "/v10"));
  EXPECT_FALSE(matches("/v1/**", "/"));
  EXPECT_TRUE(matches("/**", "/"));
  EXPECT_TRUE(matches("/**", "/anything/at/all"));
}

// A limit on /login must not be dodged by asking for /login/.
TEST(PathTemplate, IgnoresASlashAtTheEnd) {
  EXPECT_TRUE(matches("/login", "/login/"));
  EXPECT_TRUE(matches("/login/", "/login"));
  EXPECT_TRUE(matches("/users/{id}", "/users/7/"));
}

TEST(PathTemplate, KnowsTheValuesOfItsParameters) {
  const PathTemplate users = path("/users/{id}/*/{file}");
  ASSERT_TRUE(users.matches("/users/7/x/a.txt"));
  EXPECT_EQ(users.value_in("/users/7/x/a.txt", "id"), "7");
  EXPECT_EQ(users.value_in("/users/7/x/a.txt", "file"), "a.txt");
  EXPECT_EQ(users.value_in("/users/7/x/a.txt/", "file"), "a.txt");
  EXPECT_EQ(users.value_in("/users/7/x/a.txt", "other"), "");
  EXPECT_EQ(users.value_in("", "id"), "");
  EXPECT_EQ(path("/{a}/{b}/**").value_in("/1/2", "b"), "2");
  EXPECT_EQ(path("/{a}/{b}/**").value_in("/1/2/3/4", "b"), "2");
}

TEST(PathTemplate, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"login", "does not begin with '/'"},  {"", "does not begin with '/'"},
      {"/a//b", "an empty segment"},         {"/a/../b", "has a segment '..'"},
      {"/a/**/b", "'**' is not at the end"}, {"/a/x*", "only partly a pattern"},
      {"/a/{id", "only partly a pattern"},   {"/a/{}", "no name of a parameter"},
      {"/a/:id", "taken literally"},         {"/a/%2e", "'%2e' in '/a/%2e' stands for dots"},
      {"/.%2E/a", "stands for dots"},        {"/a/{id}/{id}", "occurs twice"},
      {"/a?b=c", "holds what no path can"},  {"/a/%zz", "not followed by two hexadecimal digits"},
  };
  for (const auto& [text, message] : wrong) {
    const auto parsed = PathTemplate::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
    EXPECT_FALSE(parsed.error().remedy.empty()) << text;
  }
}

// As people of nginx know them.
TEST(PathTemplate, TellsRegularExpressionsFromPaths) {
  for (const char* text : {"~ ^/x", "~* /x", "^/x$", "~ \\.(png|jpg)$"}) {
    EXPECT_THAT(PathTemplate::parse(text).error().message,
                HasSubstr("is a regular expression, which paths do not support"))
        << text;
  }
  for (const char* text : {"= /x", "^~ /x"}) {
    EXPECT_THAT(PathTemplate::parse(text).error().message, HasSubstr("a modifier of nginx"))
        << text;
  }
  EXPECT_THAT(PathTemplate::parse("x").error().message, HasSubstr("does not begin with '/'"));
}

// What a message tells to write is accepted.
TEST(PathTemplate, SuggestsWhatItAccepts) {
  const std::vector<std::pair<std::string, std::string>> suggested{
      {"^/api/.*", "/api/**"},
      {"^/api/.*$", "/api/**"},
      {"^/api/(.*)$", "/api/**"},
      {"^/api", "/api/**"},
      {"^/api$", "/api"},
      {"~ ^/x", "/x/**"},
      {"~* ^/api/", "/api/**"},
      {"~ ^/api/v1$", "/api/v1"},
      {"~ ^/", "/**"},
      {"~^/api/", "/api/**"},
      {"^~ /images/", "/images/**"},
      {"= /login", "/login"},
      {"/api/.*", "/api/**"},
      {"/api/(.*)", "/api/**"},
      {"*", "/**"},
      {"**", "/**"},
      {"api/*", "/api/**"},
      {"v1/users", "/v1/users"},
      {"v1/{id}", "/v1/{id}"},
      {"/users/:id", "/users/{id}"},
      {"/users/:id/files/:file/x", "/users/{id}/files/{file}/x"},
  };
  for (const auto& [text, remedy] : suggested) {
    const auto parsed = PathTemplate::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().remedy, "write " + remedy) << text;
    EXPECT_TRUE(PathTemplate::parse(remedy)) << text;
  }
  for (const char* text :
       {"^/users/[0-9]+$", "^/(a|b)/.*", "/a/.*/b", "^", "", "^/a//b", "a*b", "/.*/x.*",
        "/:id/.*/.*", "^/api/.*?x", "~", "~ \\.php$", "=", "^~", "^~ "}) {
    const auto parsed = PathTemplate::parse(text);
    ASSERT_FALSE(parsed) << text;
    const std::string& remedy = parsed.error().remedy;
    if (remedy.starts_with("write /")) {
      EXPECT_TRUE(PathTemplate::parse(remedy.substr(6))) << remedy;
    }
  }
}

// Requests' paths are normalised before they are compared.
TEST(PathTemplate, IsNormalisedAsRequestsAre) {
  EXPECT_TRUE(matches("/%6cogin", "/login"));
  EXPECT_TRUE(matches("/a%2fb", "/a%2Fb"));
}

// Each of these says more than the next.
TEST(PathTemplate, MoreSpecificIsGreater) {
  const std::vector<std::string> order{"/a/b/c", "/a/b", "/a/b/**", "/a/{id}/*", "/a/{id}",
                                       "/a/*",   "/a",   "/a/**",   "/{x}/{y}",  "/{x}",
                                       "/*",     "/",    "/**"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      const int sign = i == j ? 0 : (i < j ? 1 : -1);
      EXPECT_EQ(compare_specificity(path(order[i]), path(order[j])), sign)
          << order[i] << " and " << order[j];
    }
  }
}

}  // namespace
}  // namespace sluice::rules
