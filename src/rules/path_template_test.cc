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
  PathParameters values;
  return path(pattern).matches(actual, values);
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
  PathParameters values;
  ASSERT_TRUE(users.matches("/users/7/x/a.txt", values));
  EXPECT_EQ(values[static_cast<std::size_t>(users.parameter("id"))], "7");
  EXPECT_EQ(values[static_cast<std::size_t>(users.parameter("file"))], "a.txt");
  EXPECT_EQ(users.parameter("other"), -1);
}

TEST(PathTemplate, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"login", "does not begin with '/'"},
      {"", "does not begin with '/'"},
      {"/a//b", "an empty segment"},
      {"/a/../b", "has a segment '..'"},
      {"/a/**/b", "'**' is not at the end"},
      {"/a/x*", "only partly a pattern"},
      {"/a/{id", "only partly a pattern"},
      {"/a/{}", "no name of a parameter"},
      {"/a/:id", "taken literally"},
      {"/a/{id}/{id}", "occurs twice"},
      {"/a?b=c", "holds what no path can"},
      {"/a/%zz", "not followed by two hexadecimal digits"},
      {"/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", "too many parameters"},
  };
  for (const auto& [text, message] : wrong) {
    const auto parsed = PathTemplate::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
    EXPECT_FALSE(parsed.error().remedy.empty()) << text;
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
