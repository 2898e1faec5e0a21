#include "rules/rule_set.h"

#include "support/property.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::rules {
namespace {

using sluice::testing::check_property;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A request, and who sent it.
struct Sent {
  std::string method = "GET";
  std::string host = "api.example.com";
  std::string path = "/";
  std::string query;
  std::vector<HeaderView> headers;
  std::vector<DescriptorEntry> descriptor;
  std::string domain = "default";
  identity::Identity client;
};

std::vector<std::string> matching(const RuleSet& set, const Sent& sent,
                                  Phase phase = Phase::after_auth) {
  const RequestView request{.method = sent.method,
                            .host = sent.host,
                            .target = sent.path,
                            .headers = sent.headers,
                            .peer = {},
                            .tls_subject = {},
                            .domain = sent.domain,
                            .descriptor = sent.descriptor};
  Matches matches;
  set.match({.request = request,
             .domain = sent.domain,
             .host = sent.host,
             .path = sent.path,
             .query = sent.query,
             .client = sent.client},
            phase, matches);
  std::vector<std::string> names;
  for (const Matched& one : matches.span()) {
    names.push_back(set.rules()[one.rule].name);
    const PathTemplate* const path = set.path(one);
    EXPECT_TRUE(path == nullptr || path->matches(sent.path)) << names.back();
  }
  return names;
}

Rule rule(std::string name, Match match) {
  Rule made;
  made.name = std::move(name);
  made.match = std::move(match);
  return made;
}

NamedMatch named(std::string name, TextMatch::Kind kind, std::string text = {}) {
  return {.name = std::move(name), .value = {.kind = kind, .text = std::move(text)}};
}

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

TEST(RuleSet, SaysWhenMoreRulesMatchThanARequestMayHave) {
  RuleList list;
  for (std::size_t i = 0; i <= kMatchesMax; ++i) list.rules.push_back(rule(std::to_string(i), {}));
  const RuleSet set{std::move(list)};
  Matches matches;
  const RequestView request{};
  const identity::Identity nobody;
  set.match({.request = request,
             .domain = "default",
             .host = {},
             .path = "/",
             .query = {},
             .client = nobody},
            Phase::after_auth, matches);
  EXPECT_TRUE(matches.too_many);
  EXPECT_EQ(matches.count, kMatchesMax);
}

// Every step of what "most specific" means: each pair is won by the first, in either order of the
// file, except for the last step, which is the order itself.
TEST(RuleSet, LetsTheMostSpecificRuleOfAGroupWin) {
  const Sent sent{.host = "a.b.com", .path = "/v1/users/7"};
  const std::vector<std::pair<Match, Match>> pairs{
      {{.hosts = {"a.b.com"}}, {.hosts = {"*.b.com"}, .paths = {"/v1/users/7"}}},
      {{.hosts = {"*.b.com"}}, {.hosts = {"*.com"}, .paths = {"/v1/users/7"}}},
      {{.hosts = {"*.com"}}, {.paths = {"/v1/users/7"}}},
      {{.paths = {"/v1/users/**"}}, {.paths = {"/v1/**"}}},
      {{.paths = {"/v1/**"}}, {.methods = {"GET"}}},
      {{.paths = {"/v1/users/7"}}, {.paths = {"/v1/users/{id}"}}},
      {{.paths = {"/v1/users/{id}"}}, {.paths = {"/v1/users/*"}}},
      {{.paths = {"/v1/users/*"}}, {.paths = {"/v1/users/**"}}},
      {{.methods = {"GET"}, .paths = {"/v1/**"}}, {.paths = {"/v1/**"}}},
      {{.methods = {"GET"}}, {}},
  };
  for (const auto& [winner, loser] : pairs) {
    for (const bool winner_first : {true, false}) {
      Rule wins = rule("wins", winner);
      Rule loses = rule("loses", loser);
      wins.group = loses.group = "g";
      RuleList list;
      list.rules = winner_first ? std::vector{wins, loses} : std::vector{loses, wins};
      EXPECT_THAT(matching(RuleSet{list}, sent), ElementsAre("wins"));
    }
  }
  Rule first = rule("first", {});
  Rule second = rule("second", {});
  first.group = second.group = "g";
  EXPECT_THAT(matching(RuleSet{{.rules = {first, second}}}, sent), ElementsAre("first"));
}

TEST(RuleSet, LetsOtherRulesApplyTogether) {
  Rule a = rule("a", {.paths = {"/x"}});
  Rule b = rule("b", {});
  Rule other_group = rule("c", {});
  a.group = b.group = "g";
  other_group.group = "h";
  const RuleSet set{{.rules = {b, rule("d", {}), a, other_group}}};
  EXPECT_THAT(matching(set, {.path = "/x"}), ElementsAre("d", "a", "c"));
}

// A shadow rule only tells: it must not switch another one off.
TEST(RuleSet, LetsNoShadowWinAGroup) {
  Rule shadow = rule("shadow", {.paths = {"/x"}});
  shadow.over.kind = Over::Kind::shadow;
  Rule real = rule("real", {});
  shadow.group = real.group = "g";
  EXPECT_THAT(matching(RuleSet{{.rules = {shadow, real}}}, {.path = "/x"}),
              ElementsAre("shadow", "real"));
}

// The index finds exactly what comparing every rule would.
TEST(RuleSet, FindsWhatComparingEveryRuleFinds) {
  const auto pick = [](std::vector<std::string> from) { return rc::gen::elementOf(from); };
  check_property(300, [&] {
    const std::vector<std::string> hosts{"a.com", "b.a.com", "*.a.com", "*.com"};
    // Some segments differ behind their first eight bytes only.
    const std::vector<std::string> paths{"/",
                                         "/**",
                                         "/a",
                                         "/a/**",
                                         "/a/{x}",
                                         "/*/b",
                                         "/a/b",
                                         "/b",
                                         "/longer-77",
                                         "/longer-78",
                                         "/seventeen-bytes1/{x}",
                                         "/seventeen-bytes2/{x}"};
    const std::vector<std::string> values{"1", "2", "3"};
    RuleList list;
    const int count = *rc::gen::inRange(1, 24);
    for (int i = 0; i < count; ++i) {
      Match match;
      const auto maybe = [](int percent) { return *rc::gen::inRange(0, 100) < percent; };
      if (maybe(30)) match.hosts = {*pick(hosts)};
      if (maybe(50)) match.paths = {*pick(paths)};
      if (maybe(20)) match.paths.push_back(*pick(paths));
      if (maybe(20)) match.methods = {*pick({"GET", "POST", "PURGE"})};
      if (maybe(20)) match.tiers = {*pick(values), *pick(values)};
      if (maybe(20)) match.countries = {*pick(values)};
      if (maybe(20)) match.asns = {static_cast<std::uint32_t>(*rc::gen::inRange(1, 4))};
      if (maybe(20)) match.addresses = {*IpRange::parse(*pick({"10.0.0.0/8", "10.1.0.0/16"}))};
      if (maybe(20)) {
        const auto kind = *rc::gen::element(TextMatch::Kind::exact, TextMatch::Kind::present,
                                            TextMatch::Kind::prefix);
        match.headers = {named(*pick({"x-a", "x-b"}), kind, *pick(values))};
      }
      if (maybe(10)) match.descriptor = {named("k", TextMatch::Kind::exact, *pick(values))};
      list.rules.push_back(rule(std::to_string(i), match));
      list.rules.back().domain = *pick({"default", "edge"});
    }
    const RuleSet set{list};
    Sent sent;
    sent.host = *pick({"a.com", "b.a.com", "c.b.a.com", "x.org", ""});
    sent.path = *pick({"/", "/a", "/a/", "/a/b", "/b", "/b/b", "/a/b/c", "/longer-77", "/longer-78",
                       "/seventeen-bytes1/a", "/seventeen-bytes2/a"});
    sent.method = *pick({"GET", "POST", "PURGE", "PUT"});
    sent.domain = *pick({"default", "edge"});
    const std::string tier = *pick(values);
    const std::string country = *pick(values);
    const std::string value = *pick(values);
    sent.client.tier = tier;
    sent.client.country = country;
    sent.client.asn = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
    sent.client.address = *IpAddress::parse(*pick({"10.0.0.1", "10.1.0.1", "::1"}));
    sent.headers = {{"X-A", value}};
    sent.descriptor = {{"k", value}};

    std::vector<std::string> expected;
    const RequestView request{.method = sent.method,
                              .host = sent.host,
                              .target = sent.path,
                              .headers = sent.headers,
                              .peer = {},
                              .tls_subject = {},
                              .domain = sent.domain,
                              .descriptor = sent.descriptor};
    for (RuleNumber number = 0; number < set.rules().size(); ++number) {
      const bool concerned = set.mismatch(number, {.request = request,
                                                   .domain = sent.domain,
                                                   .host = sent.host,
                                                   .path = sent.path,
                                                   .query = {},
                                                   .client = sent.client})
                                 .empty();
      if (concerned) expected.push_back(set.rules()[number].name);
    }
    RC_ASSERT(matching(set, sent) == expected);
  });
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
