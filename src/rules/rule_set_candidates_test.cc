#include "rules/rule_set.h"
#include "rules/rule_set_fixture.h"
#include "support/property.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::rules {
namespace {

using sluice::testing::check_property;
using ::testing::ElementsAre;

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

}  // namespace
}  // namespace sluice::rules
