#include "rules/rule_set.h"

#include "rules/rule_set_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One rule that asks for one thing, a request that has it and one that has not.
TEST(RuleSet, AsksForOneThing) {
  using Kind = TextMatch::Kind;
  struct Case {
    std::string what;
    Match match;
    std::function<void(Sent&)> has;
    std::function<void(Sent&)> has_not;
  };
  const std::vector<Case> cases{
      {"method",
       {.methods = {"GET", "POST"}},
       [](Sent& s) { s.method = "POST"; },
       [](Sent& s) { s.method = "PUT"; }},
      {"odd method",
       {.methods = {"PURGE"}},
       [](Sent& s) { s.method = "PURGE"; },
       [](Sent& s) { s.method = "BREW"; }},
      {"host",
       {.hosts = {"a.com"}},
       [](Sent& s) { s.host = "a.com"; },
       [](Sent& s) { s.host = "b.a.com"; }},
      {"hosts below",
       {.hosts = {"*.a.com"}},
       [](Sent& s) { s.host = "x.y.a.com"; },
       [](Sent& s) { s.host = "a.com"; }},
      {"path",
       {.paths = {"/v1/{id}", "/v2/**"}},
       [](Sent& s) { s.path = "/v1/7"; },
       [](Sent& s) { s.path = "/v1"; }},
      {"header",
       {.headers = {named("x-a", Kind::exact, "1")}},
       [](Sent& s) { s.headers = {{"X-A", "1"}}; },
       [](Sent& s) { s.headers = {{"X-A", "2"}}; }},
      {"header, any value",
       {.headers = {named("x-a", Kind::present)}},
       [](Sent& s) { s.headers = {{"x-A", ""}}; },
       [](Sent& s) { s.headers = {{"x-ab", "1"}}; }},
      {"header, prefix",
       {.headers = {named("x-a", Kind::prefix, "ab")}},
       [](Sent& s) { s.headers = {{"x-a", "abc"}}; },
       [](Sent& s) { s.headers = {{"x-a", "a"}}; }},
      {"header, expression",
       {.headers = {named("x-a", Kind::regex, "a+")}},
       [](Sent& s) { s.headers = {{"x-a", "aaa"}}; },
       [](Sent& s) { s.headers = {{"x-a", "aab"}}; }},
      {"query",
       {.query = {named("q", Kind::exact, "a b")}},
       [](Sent& s) { s.query = "p=1&q=a+b"; },
       [](Sent& s) { s.query = "q=a"; }},
      {"cookie",
       {.cookies = {named("c", Kind::exact, "1")}},
       [](Sent& s) { s.headers = {{"cookie", "b=2; c=1"}}; },
       [](Sent& s) { s.headers = {{"cookie", "c=2"}}; }},
      {"address",
       {.addresses = {*IpRange::parse("10.0.0.0/8"), *IpRange::parse("2001:db8::/32")}},
       [](Sent& s) { s.client.address = *IpAddress::parse("2001:db8::7"); },
       [](Sent& s) { s.client.address = *IpAddress::parse("11.0.0.1"); }},
      {"country",
       {.countries = {"NL", "BE"}},
       [](Sent& s) { s.client.country = "BE"; },
       [](Sent& s) { s.client.country = ""; }},
      {"system",
       {.asns = {64496}},
       [](Sent& s) { s.client.asn = 64496; },
       [](Sent& s) { s.client.asn = 0; }},
      {"tier",
       {.tiers = {"free"}},
       [](Sent& s) { s.client.tier = "free"; },
       [](Sent& s) { s.client.tier = "paid"; }},
      {"tenant",
       {.tenants = {"acme"}},
       [](Sent& s) { s.client.tenant = "acme"; },
       [](Sent& s) { s.client.tenant = ""; }},
      {"authenticated",
       {.authenticated = true},
       [](Sent& s) { s.client.proof = identity::Proof::good; },
       [](Sent& s) { s.client.proof = identity::Proof::invalid; }},
      {"anonymous",
       {.authenticated = false},
       [](Sent& s) { s.client.proof = identity::Proof::unknown; },
       [](Sent& s) { s.client.proof = identity::Proof::good; }},
      {"descriptor",
       {.descriptor = {named("k", Kind::exact, "v")}},
       [](Sent& s) { s.descriptor = {{"j", "v"}, {"k", "v"}}; },
       [](Sent& s) { s.descriptor = {{"k", "w"}}; }},
      {"attribute",
       {.attributes = {named("plan", Kind::exact, "gold")}},
       [](Sent& s) { s.client.attributes = &kGold; },
       [](Sent& s) { s.client.attributes = &kSilver; }},
      {"attribute, prefix",
       {.attributes = {named("plan", Kind::prefix, "go")}},
       [](Sent& s) { s.client.attributes = &kGold; },
       [](Sent& s) { s.client.attributes = nullptr; }},
  };
  for (const Case& one : cases) {
    const RuleSet set{{.rules = {rule("it", one.match)}}};
    Sent sent;
    one.has(sent);
    EXPECT_THAT(matching(set, sent), ElementsAre("it")) << one.what;
    sent = {};
    one.has_not(sent);
    EXPECT_THAT(matching(set, sent), IsEmpty()) << one.what;
  }
}

TEST(RuleSet, AsksForAllItNames) {
  const RuleSet set{{.rules = {rule("it", {.methods = {"POST"}, .paths = {"/login"}})}}};
  EXPECT_THAT(matching(set, {.method = "POST", .path = "/login"}), ElementsAre("it"));
  EXPECT_THAT(matching(set, {.method = "GET", .path = "/login"}), IsEmpty());
  EXPECT_THAT(matching(set, {.method = "POST", .path = "/"}), IsEmpty());
}

// Longer than what the index takes: then it is found by something else, or by looking at it.
TEST(RuleSet, AsksForHeadersWithLongNames) {
  for (const std::size_t length : {63U, 64U, 65U, 200U}) {
    const std::string name(length, 'x');
    const RuleSet set{
        {.rules = {rule("it", {.headers = {named(name, TextMatch::Kind::present)}})}}};
    EXPECT_THAT(matching(set, {.headers = {{name, "1"}}}), ElementsAre("it")) << length;
    EXPECT_THAT(matching(set, {}), IsEmpty()) << length;
  }
}

TEST(RuleSet, HasRulesThatAskForNothing) {
  const RuleSet set{{.rules = {rule("all", {}), rule("login", {.paths = {"/login"}})}}};
  EXPECT_THAT(matching(set, {}), ElementsAre("all"));
  EXPECT_THAT(matching(set, {.path = "/login"}), ElementsAre("all", "login"));
}

TEST(RuleSet, KeepsDomainsApart) {
  Rule other = rule("other", {});
  other.domain = "edge";
  const RuleSet set{{.rules = {rule("it", {}), other}}};
  EXPECT_THAT(matching(set, {}), ElementsAre("it"));
  EXPECT_THAT(matching(set, {.domain = "edge"}), ElementsAre("other"));
  EXPECT_THAT(matching(set, {.domain = "nowhere"}), IsEmpty());
}

TEST(RuleSet, TellsRulesBeforeVerificationFromOthers) {
  Rule early = rule("early", {});
  early.before_auth = true;
  const RuleSet set{{.rules = {early, rule("late", {})}}};
  EXPECT_THAT(matching(set, {}, Phase::before_auth), ElementsAre("early"));
  EXPECT_THAT(matching(set, {}, Phase::after_auth), ElementsAre("late"));
}

// A rule that two of its alternatives lead to applies once.
TEST(RuleSet, CountsARuleOnce) {
  const RuleSet set{
      {.rules = {rule("it", {.hosts = {"a.com", "*.com"}, .paths = {"/a/**", "/a/b", "/a/{x}"}})}}};
  EXPECT_THAT(matching(set, {.host = "a.com", .path = "/a/b"}), ElementsAre("it"));
}

TEST(RuleSet, KnowsWhichOfManyPathsItWas) {
  Match match;
  for (int i = 0; i < 700; ++i) match.paths.push_back("/p" + std::to_string(i) + "/{id}");
  const RuleSet set{{.rules = {rule("it", match)}}};
  for (const int i : {0, 255, 256, 257, 511, 512, 699}) {
    const std::string base = "/p" + std::to_string(i);
    const Sent sent{.path = base + "/7"};
    const RequestView request = view_of(sent);
    Matches matches;
    const Asked asked = asked_by(sent, request);
    set.match(asked, Phase::after_auth, matches);
    ASSERT_EQ(matches.count, 1U);
    EXPECT_EQ(set.path(asked, matches.all[0]).pattern->text(), base + "/{id}");
  }
}

TEST(RuleSet, FindsRulesWhoseBlocksNeedNoProof) {
  const auto blocking = [](const char* name, Per::Kind kind) {
    Rule made = rule(name, {});
    made.per = {{.kind = kind, .name = {}}};
    made.block = Block{.duration = std::chrono::minutes{1}, .threshold = 1};
    return made;
  };
  const Rule plain = rule("plain", {});
  EXPECT_FALSE((RuleSet{{.rules = {plain, blocking("user", Per::Kind::user)}}}).has(Phase::blocks));
  Rule elsewhere = blocking("elsewhere", Per::Kind::ip);
  elsewhere.match.paths = {"/x"};
  const RuleSet set{{.rules = {plain, blocking("user", Per::Kind::user),
                               blocking("ip", Per::Kind::ip), elsewhere}}};
  EXPECT_TRUE(set.has(Phase::blocks));
  EXPECT_THAT(matching(set, {}, Phase::blocks), ElementsAre("ip"));
  EXPECT_THAT(matching(set, {}), ElementsAre("plain", "user", "ip"));
}

// A client cannot escape a rule by sending something twice, nor by sending more of it than is read.
TEST(RuleSet, AsksForAnyOfSeveralValues) {
  using Kind = TextMatch::Kind;
  const RuleSet set{{.rules = {rule("header", {.headers = {named("x-plan", Kind::exact, "free")}}),
                               rule("query", {.query = {named("plan", Kind::prefix, "fr")}}),
                               rule("cookie", {.cookies = {named("plan", Kind::regex, "fr.*")}})}}};
  EXPECT_THAT(matching(set, {.headers = {{"X-Plan", "paid"}, {"x-plan", "free"}}}),
              ElementsAre("header"));
  EXPECT_THAT(matching(set, {.query = "plan=paid&plan=free"}), ElementsAre("query"));
  EXPECT_THAT(matching(set, {.headers = {{"cookie", "plan=paid; plan=free"}}}),
              ElementsAre("cookie"));
  EXPECT_THAT(matching(set, {.headers = {{"cookie", "plan=paid"}, {"cookie", "plan=free"}}}),
              ElementsAre("cookie"));
}

TEST(RuleSet, IsNotEscapedByALongValue) {
  using Kind = TextMatch::Kind;
  const std::string much(2'000, 'x');
  const RuleSet set{
      {.rules = {rule("present", {.query = {named("q", Kind::present)}}),
                 rule("prefix", {.query = {named("q", Kind::prefix, "a b")}}),
                 rule("expression", {.query = {named("q", Kind::regex, ".*end")}}),
                 rule("exact", {.query = {named("q", Kind::exact, "a b")}}),
                 rule("long", {.query = {named("q", Kind::exact, "a b" + much + "end")}}),
                 rule("another", {.query = {named("q", Kind::prefix, "b")}})}}};
  EXPECT_THAT(matching(set, {.query = "q=a+b" + much + "end"}),
              ElementsAre("present", "prefix", "expression", "long"));
}

TEST(RuleSet, NamesTheConditionThatDoesNotHold) {
  const RuleSet set{{.rules = {rule("it", {.methods = {"POST"}, .paths = {"/login"}})}}};
  const RequestView request{.method = "POST"};
  const identity::Identity nobody;
  const auto at = [&](std::string_view path) {
    return set.mismatch(0, {.request = request,
                            .domain = "default",
                            .host = {},
                            .path = path,
                            .query = {},
                            .client = nobody});
  };
  EXPECT_EQ(at("/login"), "");
  EXPECT_EQ(at("/logout"), "path");
}

}  // namespace
}  // namespace sluice::rules
