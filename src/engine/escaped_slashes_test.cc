// Requests whose path has an escaped slash: counted by both readings, once by each rule.
#include "engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::engine {
namespace {

using Kind = rules::Per::Kind;

class EscapedSlashRequests : public EngineFixture {
 protected:
  void use_slashes(std::vector<rules::Rule> all, rules::SlashesByHost slashes) {
    auto made = Snapshot::make({.rules = std::move(all), .escaped_slashes = std::move(slashes)},
                               *limits_, now_);
    ASSERT_TRUE(made) << made.error().text();
    worker_->use(*made);
  }
};

TEST_F(EscapedSlashRequests, CannotDodgeALimit) {
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/v1/login"};
  use({login});
  EXPECT_EQ(passed(1, {.target = "/v1%2flogin"}), 1);
  for (const char* spelling :
       {"/v1/login", "/v1%2Flogin", "/v1/%2flogin", "/v1%2f/login", "/v1/login%2f", "/%2fv1/login",
        "/v1%5clogin", "/v1%5Clogin%5c", "/v1/login/%2F", "/v1%2f%2f%2flogin",
        "http://elsewhere/v1%2flogin", "/v1%2flogin?x=%2f", "/x/..%2fv1/login", "/v1/.%2flogin",
        "/x%2f..%2fv1%2flogin", "/x/%2e%2e%2fv1/login", "/v1%2fx/../login", "/v1%5c%2flogin"}) {
    EXPECT_EQ(ask({.target = spelling}), Action::reject) << spelling;
  }
  for (const char* other : {"/v1%252flogin", "/v1/login%2fx", "/?x=/v1%2flogin"}) {
    EXPECT_EQ(ask({.target = other}), Action::pass) << other;
  }
  EXPECT_EQ(ask({.target = "/x/..%2fv1/login"}), Action::reject);
  EXPECT_EQ(reason_, Reason::bad_target);
  EXPECT_EQ(status_, 400);
}

TEST_F(EscapedSlashRequests, AreChargedOnce) {
  rules::Rule all = rule("all", {limit("4/1h")}, {per(Kind::ip)});
  rules::Rule below = rule("below", {limit("4/1h")}, {per(Kind::ip)});
  below.match.paths = {"/v1/**"};
  use({all, below});
  EXPECT_EQ(passed(9, {.target = "/v1/a%2fb"}), 4);
}

// Or each spelling of one user would have a counter of its own.
TEST_F(EscapedSlashRequests, AreCountedPerParameterOfTheDecodedPath) {
  rules::Rule users = rule("users", {limit("2/1h")}, {per(Kind::path, "id")});
  users.match.paths = {"/users/{id}/**"};
  use({users});
  EXPECT_EQ(passed(1, {.target = "/users/7/orders"}), 1);
  EXPECT_EQ(passed(1, {.target = "/users/7%2forders"}), 1);
  EXPECT_EQ(passed(1, {.target = "/users/7%2f%2forders/1"}), 0);
  EXPECT_EQ(passed(1, {.target = "/users/%2f7%2forders/1"}), 0);
  EXPECT_EQ(passed(1, {.target = "/users/8%2forders"}), 1);
}

TEST_F(EscapedSlashRequests, AreUnmatchedUnlessARuleIsForEachReading) {
  rules::Rule page = rule("page", {limit("9/1h")});
  page.match.paths = {"/public/{page}"};
  use({page}, rules::Unmatched::reject);
  EXPECT_EQ(ask({.target = "/public/x"}), Action::pass);
  EXPECT_EQ(ask({.target = "/public/x%2fadmin"}), Action::reject);
  EXPECT_EQ(reason_, Reason::no_rule);
  page.before_auth = true;
  use({page}, rules::Unmatched::reject);
  EXPECT_EQ(ask({.target = "/public/x"}), Action::pass);
  EXPECT_EQ(ask({.target = "/public/x%2fadmin"}), Action::reject);
  use({page});
  EXPECT_EQ(ask({.target = "/public/x%2fadmin"}), Action::pass);
}

TEST_F(EscapedSlashRequests, MeetRulesBeforeAuthenticationAndBlocks) {
  rules::Rule login = rule("login", {limit("1/1h")}, {per(Kind::ip)});
  login.match.paths = {"/v1/login"};
  login.before_auth = true;
  use({login});
  EXPECT_EQ(passed(3, {.target = "/v1%2flogin"}), 1);
  login.name = "blocking";
  login.before_auth = false;
  login.block = rules::Block{.duration = std::chrono::hours{5}};
  use({login});
  EXPECT_EQ(passed(2, {.target = "/v1/login"}), 1);
  now_ = at(std::chrono::hours{2});
  EXPECT_EQ(ask({.target = "/v1%2flogin"}), Action::reject);
  EXPECT_EQ(reason_, Reason::blocked);
}

TEST_F(EscapedSlashRequests, AreReadAsTheHostDoes) {
  using enum identity::EscapedSlashes;
  rules::Rule login = rule("login", {limit("1/1h")});
  login.match.paths = {"/v1/login"};
  use_slashes({login}, {.otherwise = reject, .hosts = {{"api.example.com", keep}}});
  EXPECT_EQ(passed(3, {.target = "/v1%2flogin"}), 3);
  EXPECT_EQ(passed(3, {.target = "/v1/..%2flogin"}), 3);
  use_slashes({login}, {.otherwise = reject});
  EXPECT_EQ(ask({.target = "/a%2fb"}), Action::reject);
  EXPECT_EQ(reason_, Reason::bad_target);
  EXPECT_EQ(ask({.target = "/a%2fb/../c"}), Action::reject);
  EXPECT_EQ(ask({.target = "/a?b=%2f"}), Action::pass);
}

}  // namespace
}  // namespace sluice::engine
