// No spelling of a path goes around a rule: what a server may see behind an escaped slash is
// matched as well.
#include "identity/path.h"
#include "rules/rule_set.h"
#include "rules/rule_set_fixture.h"
#include "support/property.h"
#include "support/server_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::rules {
namespace {

using ::testing::ElementsAre;

using testing::as_servers_read;
using testing::Segments;
using testing::Slashes;

bool is_one_of_these(const Segments& segments, const PathTemplate& pattern) {
  std::size_t i = 0;
  for (const PathSegment& wanted : pattern.segments()) {
    if (wanted.kind == PathSegment::Kind::rest) return true;
    if (i == segments.size()) return false;
    if (wanted.kind == PathSegment::Kind::literal && wanted.text != segments[i]) return false;
    ++i;
  }
  return i == segments.size();
}

// ---- rules --------------------------------------------------------------------------------------

struct Applied {
  bool rejected = false;
  std::vector<std::string> names;
  std::vector<std::string> paths;  // that they were matched by
};

Applied applied(const RuleSet& set, std::string_view target) {
  std::array<char, identity::kPathScratchBytes> scratch{};
  std::array<char, identity::kPathScratchBytes> other{};
  const identity::Target read = identity::read_target(target, set.path_options("h"),
                                                      set.escaped_slashes("h"), scratch, other);
  Applied result{.rejected = !read.ok()};
  if (result.rejected) return result;
  const RequestView request{};
  const identity::Identity nobody;
  const Asked asked{.request = request,
                    .domain = {},
                    .host = "h",
                    .path = read.route(),
                    .query = read.query,
                    .client = nobody,
                    .decoded_path = read.decoded_route()};
  Matches matches;
  set.match(asked, Phase::after_auth, matches);
  for (const Matched& one : matches.span()) {
    EXPECT_EQ(set.mismatch(one.rule, asked), "");
    result.names.push_back(set.rules()[one.rule].name);
    result.paths.emplace_back(set.path(asked, one).text);
  }
  return result;
}

std::vector<std::string> names(const RuleSet& set, std::string_view target) {
  return applied(set, target).names;
}

Rule of_group(const char* name, const char* path) {
  Rule made = rule(name, {.paths = {path}});
  made.group = "g";
  return made;
}

TEST(EscapedSlashes, AreMatchedInBothReadings) {
  const RuleSet set{{.rules = {rule("login", {.paths = {"/v1/login"}}),
                               rule("project", {.paths = {"/projects/{id}"}}),
                               rule("issue", {.paths = {"/projects/{id}/issues"}}), rule("all", {}),
                               rule("posts", {.methods = {"POST"}})}}};
  EXPECT_THAT(names(set, "/v1%2flogin"), ElementsAre("login", "all"));
  EXPECT_THAT(names(set, "/v1%5Clogin"), ElementsAre("login", "all"));
  EXPECT_THAT(names(set, "/projects/a%2Fb"), ElementsAre("project", "all"));
  EXPECT_THAT(names(set, "/projects/a%2Fissues"), ElementsAre("project", "issue", "all"));
  EXPECT_THAT(names(set, "/v1%252flogin"), ElementsAre("all"));
  EXPECT_TRUE(applied(set, "/x/..%2fv1/login").rejected);
}

// By the decoded path: /users/7%2Fx, /users/7%2F%2Fx, ... are one user to a server that decodes.
TEST(EscapedSlashes, CountARuleOnceByItsDecodedPath) {
  const RuleSet set{{.rules = {rule("users", {.paths = {"/users/{id}/**"}}),
                               rule("user", {.paths = {"/users/{id}"}})}}};
  const Applied both = applied(set, "/users/7%2F%2Fx/orders");
  EXPECT_THAT(both.names, ElementsAre("users"));
  EXPECT_THAT(both.paths, ElementsAre("/users/7/x/orders"));
  const Applied one = applied(set, "/users/7%2Fx");
  EXPECT_THAT(one.names, ElementsAre("users", "user"));
  EXPECT_THAT(one.paths, ElementsAre("/users/7/x", "/users/7%2Fx"));
}

// Neither reading may take another one's limit away, whichever the server has.
TEST(EscapedSlashes, HaveAWinnerOfAGroupForEachReading) {
  const RuleSet set{
      {.rules = {of_group("all", "/**"), of_group("v1", "/v1/**"),
                 of_group("bulk", "/v1/{id}/bulk"), of_group("deep", "/v1/a/x/bulk")}}};
  EXPECT_THAT(names(set, "/v1/7/bulk"), ElementsAre("bulk"));
  EXPECT_THAT(names(set, "/v1/7%2Fx/bulk"), ElementsAre("v1", "bulk"));
  EXPECT_THAT(names(set, "/v1/a%2Fx/bulk"), ElementsAre("bulk", "deep"));
  EXPECT_THAT(names(set, "/v1%2F7%2Fbulk"), ElementsAre("all", "bulk"));
}

TEST(EscapedSlashes, AreReadAsTheHostDoes) {
  const auto with = [](SlashesByHost slashes) {
    return RuleList{
        .rules = {rule("login", {.paths = {"/v1/login"}}), rule("one", {.paths = {"/*"}})},
        .escaped_slashes = std::move(slashes)};
  };
  using enum identity::EscapedSlashes;
  EXPECT_THAT(names(RuleSet{with({.otherwise = keep})}, "/v1%2flogin"), ElementsAre("one"));
  EXPECT_TRUE(applied(RuleSet{with({.otherwise = reject})}, "/v1%2flogin").rejected);
  EXPECT_THAT(names(RuleSet{with({.otherwise = keep, .hosts = {{"h", decode}}})}, "/v1%2flogin"),
              ElementsAre("login", "one"));
}

TEST(EscapedSlashes, AreSetByTheMostSpecificHost) {
  using enum identity::EscapedSlashes;
  const SlashesByHost slashes{
      .otherwise = reject,
      .hosts = {{"*.example.com", keep}, {"a.example.com", decode}, {"*.b.example.com", reject}}};
  EXPECT_EQ(slashes.of("a.example.com"), decode);
  EXPECT_EQ(slashes.of("c.example.com"), keep);
  EXPECT_EQ(slashes.of("c.b.example.com"), reject);
  EXPECT_EQ(slashes.of("example.com"), reject);
  const std::vector<std::string> below{"*.example.com"};
  EXPECT_FALSE(slashes.are_kept_on_all(below)) << "not on a.example.com";
  const std::vector<std::string> one{"c.example.com"};
  EXPECT_TRUE(slashes.are_kept_on_all(one));
  EXPECT_FALSE(slashes.are_kept_on_all({}));
}

// Whether an enforcing rule matched is asked of each reading: a server may have either.
TEST(EscapedSlashes, AreUnmatchedIfOneReadingIs) {
  const RuleSet set{{.rules = {rule("page", {.paths = {"/public/{page}"}})}}};
  const RequestView request{};
  const identity::Identity nobody;
  Matches matches;
  set.match({.request = request,
             .domain = {},
             .host = {},
             .path = "/public/x%2Fadmin",
             .query = {},
             .client = nobody,
             .decoded_path = "/public/x/admin"},
            Phase::after_auth, matches);
  EXPECT_TRUE(matches.enforced);
  EXPECT_FALSE(matches.enforced_decoded);
}

// The rules of what the server sees are among those that apply, or the request is rejected.
TEST(EscapedSlashes, NeverHideARuleFromWhatTheServerSees) {
  const std::vector<std::string> patterns{"/a",   "/a/b",     "/a/{x}",    "/a/**",
                                          "/*/b", "/{x}/a/b", "/a/b/a/**", "/**",
                                          "/",    "/b/*",     "/*",        "/a/*/b"};
  RuleList list;
  std::vector<PathTemplate> templates;
  for (const std::string& pattern : patterns) {
    list.rules.push_back(rule(pattern, {.paths = {pattern}}));
    templates.push_back(PathTemplate::parse(pattern).value());
  }
  const RuleSet set{std::move(list)};
  testing::check_property(5000, [&] {
    const auto piece = rc::gen::element<std::string>("/", "/", "a", "b", "a", "/a", "/b", ".", "..",
                                                     "%2f", "%2F", "%2f", "%5c", "%2e", "%61", ";",
                                                     "/..", "/../", "%252f", "%3b", "?", "//");
    std::string target = "/";
    for (const std::string& one : *rc::gen::container<std::vector<std::string>>(piece)) {
      target += one;
    }
    const Applied result = applied(set, target);
    if (result.rejected) return;
    for (const Slashes slashes : {Slashes::merged, Slashes::separate}) {
      const std::optional<Segments> seen = as_servers_read(target, slashes);
      for (std::size_t i = 0; seen && i < templates.size(); ++i) {
        if (!is_one_of_these(*seen, templates[i])) continue;
        if (std::ranges::find(result.names, patterns[i]) == result.names.end()) {
          RC_FAIL(target + " goes around " + patterns[i]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace sluice::rules
