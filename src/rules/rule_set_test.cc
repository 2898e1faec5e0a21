#include "rules/rule_set.h"

#include "support/property.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
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

RequestView view_of(const Sent& sent) {
  return {.method = sent.method,
          .host = sent.host,
          .target = sent.path,
          .headers = sent.headers,
          .peer = {},
          .tls_subject = {},
          .domain = sent.domain,
          .descriptor = sent.descriptor};
}

Asked asked_by(const Sent& sent, const RequestView& request) {
  return {.request = request,
          .domain = sent.domain,
          .host = sent.host,
          .path = sent.path,
          .query = sent.query,
          .client = sent.client};
}

std::size_t candidates(const RuleSet& set, const Sent& sent) {
  const RequestView request = view_of(sent);
  return set.candidates(asked_by(sent, request));
}

std::vector<std::string> matching(const RuleSet& set, const Sent& sent,
                                  Phase phase = Phase::after_auth) {
  const RequestView request = view_of(sent);
  Matches matches;
  set.match(asked_by(sent, request), phase, matches);
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

class Attributes final : public identity::Attributes {
 public:
  explicit Attributes(std::vector<Named> all) : all_(std::move(all)) {}
  std::string_view find(std::string_view name) const noexcept override {
    for (const Named& one : all_) {
      if (one.first == name) return one.second;
    }
    return {};
  }
  std::span<const Named> all() const noexcept override { return all_; }

 private:
  std::vector<Named> all_;
};

const Attributes kGold{{{"plan", "gold"}, {"n", "7"}}};
const Attributes kSilver{{{"plan", "silver"}}};

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

// Of a rule's own hosts the one counts that says most, in whichever order they are written.
TEST(RuleSet, TakesTheExactOneOfItsHosts) {
  for (const auto& hosts :
       std::vector<std::vector<std::string>>{{"*.b.com", "a.b.com"}, {"a.b.com", "*.b.com"}}) {
    Rule both = rule("both", {.hosts = hosts});
    Rule wildcard = rule("wildcard", {.hosts = {"*.b.com"}, .paths = {"/v1"}});
    both.group = wildcard.group = "g";
    const RuleSet set{{.rules = {wildcard, both}}};
    EXPECT_THAT(matching(set, {.host = "a.b.com", .path = "/v1"}), ElementsAre("both"))
        << hosts.front();
    EXPECT_THAT(matching(set, {.host = "c.b.com", .path = "/v1"}), ElementsAre("wildcard"))
        << hosts.front();
  }
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
// However many compete, and in whichever order they are found: whoever stays against each of the
// others stays against all of them.
TEST(RuleSet, LetsThoseWinThatWinEveryDuel) {
  const std::vector<std::string> paths{"/**", "/a/**", "/a/*", "/a/{id}", "/a/b"};
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::minstd_rand random{seed};
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    std::vector<Rule> all;
    for (int i = 0; i < 12; ++i) {
      Match match;
      if (!one_in(4)) match.paths = {paths[random() % paths.size()]};
      if (one_in(3)) match.paths.push_back(paths[random() % paths.size()]);
      if (one_in(3)) match.hosts = {one_in(2) ? "*.example.com" : "api.example.com"};
      if (one_in(3)) match.methods = {"GET"};
      all.push_back(rule("r" + std::to_string(i), match));
      all.back().group = one_in(5) ? "" : one_in(3) ? "h" : "g";
      if (one_in(4)) all.back().over.kind = Over::Kind::shadow;
    }
    const Sent sent{.path = "/a/b"};
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool stays = true;
      for (std::size_t j = 0; j < all.size(); ++j) {
        if (i == j) continue;
        const RuleSet duel{{.rules = {all[std::min(i, j)], all[std::max(i, j)]}}};
        const std::vector<std::string> left = matching(duel, sent);
        stays = stays && std::ranges::find(left, all[i].name) != left.end();
      }
      if (stays) expected.push_back(all[i].name);
    }
    EXPECT_EQ(matching(RuleSet{{.rules = all}}, sent), expected);
  }
}

// A group takes as much room as what applies of it.
TEST(RuleSet, HasRoomForGroupsOfAnySize) {
  RuleList list;
  for (std::size_t i = 0; i < 5 * kMatchesMax; ++i) {
    list.rules.push_back(rule(std::to_string(i), {}));
    list.rules.back().group = i % 2 == 0 ? "even" : "odd";
  }
  EXPECT_THAT(matching(RuleSet{list}, {}), ElementsAre("0", "1"));
}

// Those that only tell are left out where there are too many, and shed nothing.
TEST(RuleSet, LetsNoShadowTakeARealRulesPlace) {
  RuleList list;
  for (std::size_t i = 0; i < 2 * kMatchesMax; ++i) {
    list.rules.push_back(rule("shadow" + std::to_string(i), {}));
    list.rules.back().over.kind = Over::Kind::shadow;
  }
  for (std::size_t i = 0; i < kMatchesMax; ++i) list.rules.push_back(rule(std::to_string(i), {}));
  const RuleSet set{list};
  const RequestView request{};
  const identity::Identity nobody;
  Matches matches;
  set.match(
      {.request = request, .domain = {}, .host = {}, .path = "/", .query = {}, .client = nobody},
      Phase::after_auth, matches);
  EXPECT_FALSE(matches.too_many);
  EXPECT_EQ(matches.count, 2 * kMatchesMax);
  EXPECT_EQ(matches.shadows, kMatchesMax);
  EXPECT_EQ(matches.shadows_left_out, kMatchesMax);
}

TEST(RuleSet, FindsRulesWhoseBlocksNeedNoProof) {
  const auto blocking = [](const char* name, Per::Kind kind) {
    Rule made = rule(name, {});
    made.per = {{.kind = kind, .name = {}}};
    made.block = Block{.lasts = std::chrono::minutes{1}, .after = 1};
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

TEST(RuleSet, LetsNoShadowWinAGroup) {
  Rule shadow = rule("shadow", {.paths = {"/x"}});
  shadow.over.kind = Over::Kind::shadow;
  Rule real = rule("real", {});
  shadow.group = real.group = "g";
  EXPECT_THAT(matching(RuleSet{{.rules = {shadow, real}}}, {.path = "/x"}),
              ElementsAre("shadow", "real"));
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

// Whatever tells rules apart, a request is compared with those that ask for what it has, and with
// no more of them when there are thousands.
TEST(RuleSet, ComparesARequestWithFewRulesHoweverManyThereAre) {
  using Kind = TextMatch::Kind;
  struct Case {
    std::string what;
    std::function<void(Rule&, const std::string&)> ask;
    std::function<void(Sent&)> has_number_7;
  };
  const std::vector<Case> cases{
      {"path", [](Rule& r, const std::string& n) { r.match.paths = {"/" + n}; },
       [](Sent& s) { s.path = "/7"; }},
      {"host", [](Rule& r, const std::string& n) { r.match.hosts = {n + ".com"}; },
       [](Sent& s) { s.host = "7.com"; }},
      {"header",
       [](Rule& r, const std::string& n) { r.match.headers = {named("x-a", Kind::exact, n)}; },
       [](Sent& s) { s.headers = {{"X-A", "7"}}; }},
      {"header, prefix",
       [](Rule& r, const std::string& n) {
         r.match.headers = {named("x-a", Kind::prefix, "p-" + n + "-")};
       },
       [](Sent& s) { s.headers = {{"X-A", "p-7-and-more"}}; }},
      {"header, name",
       [](Rule& r, const std::string& n) {
         r.match.headers = {named("x-" + n, Kind::regex, "a+")};
       },
       [](Sent& s) { s.headers = {{"X-7", "a"}}; }},
      {"query", [](Rule& r, const std::string& n) { r.match.query = {named("q", Kind::exact, n)}; },
       [](Sent& s) { s.query = "a=1&q=%37"; }},
      {"query, prefix",
       [](Rule& r, const std::string& n) { r.match.query = {named("q", Kind::prefix, n + "-")}; },
       [](Sent& s) { s.query = "q=7-7-7"; }},
      {"query, repeated",
       [](Rule& r, const std::string& n) { r.match.query = {named("q", Kind::exact, n)}; },
       [](Sent& s) {
         for (int i = 0; i < 1000; ++i) s.query += "q=7&";
       }},
      {"cookie",
       [](Rule& r, const std::string& n) { r.match.cookies = {named("c", Kind::exact, n)}; },
       [](Sent& s) { s.headers = {{"Cookie", "a=1; c=7; c=7"}}; }},
      {"cookie, prefix",
       [](Rule& r, const std::string& n) { r.match.cookies = {named("c", Kind::prefix, n + "-")}; },
       [](Sent& s) { s.headers = {{"Cookie", "c=7-x"}}; }},
      {"descriptor, prefix",
       [](Rule& r, const std::string& n) {
         r.match.descriptor = {named("k", Kind::prefix, n + "-")};
       },
       [](Sent& s) { s.descriptor = {{"k", "7-x"}}; }},
      {"attribute",
       [](Rule& r, const std::string& n) { r.match.attributes = {named("n", Kind::exact, n)}; },
       [](Sent& s) { s.client.attributes = &kGold; }},
      {"domain", [](Rule& r, const std::string& n) { r.domain = n; },
       [](Sent& s) { s.domain = "7"; }},
      {"tenant", [](Rule& r, const std::string& n) { r.match.tenants = {n}; },
       [](Sent& s) { s.client.tenant = "7"; }},
  };
  for (const Case& one : cases) {
    RuleList list;
    for (int i = 0; i < 10'000; ++i) {
      list.rules.push_back(rule(std::to_string(i), {}));
      one.ask(list.rules.back(), std::to_string(i));
    }
    const RuleSet set{std::move(list)};
    Sent sent;
    one.has_number_7(sent);
    EXPECT_THAT(matching(set, sent), ElementsAre("7")) << one.what;
    EXPECT_EQ(candidates(set, sent), 1U) << one.what;
    EXPECT_EQ(candidates(set, {}), 0U) << one.what;
  }
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
      const auto some = [&](std::string name) {
        const auto kind = *rc::gen::element(TextMatch::Kind::exact, TextMatch::Kind::present,
                                            TextMatch::Kind::prefix, TextMatch::Kind::regex);
        const bool is_regex = kind == TextMatch::Kind::regex;
        return named(std::move(name), kind, is_regex ? "1+" : *pick({"1", "11", "2", "2 b", "3"}));
      };
      if (maybe(20)) match.query = {some(*pick({"p", "q"}))};
      if (maybe(20)) match.cookies = {some(*pick({"c", "d"}))};
      if (maybe(10)) match.headers.push_back(some("x-a"));
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
    const std::string another = *pick({"", "1", "111", "2 bc"});
    sent.headers = {{"X-A", value}, {"x-a", another}};
    sent.query = *pick({"", "p=1", "q=11&q=2", "q=%32+b&p=3", "p&q=2%20bc", "x=1&q=1&q=1"});
    const std::string cookies = *pick({"", "c=1", "c=11; c=2", "d=3;c=1", "x=1; d=2 b"});
    if (!cookies.empty()) sent.headers.push_back({"Cookie", cookies});
    sent.descriptor = {{"k", value}};

    std::vector<std::string> expected;
    const RequestView request = view_of(sent);
    for (RuleNumber number = 0; number < set.rules().size(); ++number) {
      const bool concerned = set.mismatch(number, asked_by(sent, request)).empty();
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
