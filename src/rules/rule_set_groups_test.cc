#include "rules/rule_set.h"
#include "rules/rule_set_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sluice::rules {
namespace {

using ::testing::ElementsAre;

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

// Those that only tell are left out where there are too many, and shed nothing.
TEST(RuleSet, LetsNoShadowTakeARealRulesPlace) {
  RuleList list;
  for (std::size_t i = 0; i < 2 * kMatchesMax; ++i) {
    list.rules.push_back(rule("shadow" + std::to_string(i), {}));
    list.rules.back().action.kind = Action::Kind::shadow;
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
  EXPECT_EQ(matches.shadow_checks_skipped, kMatchesMax);
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
      if (one_in(4)) all.back().action.kind = Action::Kind::shadow;
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

// A shadow rule only tells: it must not switch another one off.
TEST(RuleSet, LetsNoShadowWinAGroup) {
  Rule shadow = rule("shadow", {.paths = {"/x"}});
  shadow.action.kind = Action::Kind::shadow;
  Rule real = rule("real", {});
  shadow.group = real.group = "g";
  EXPECT_THAT(matching(RuleSet{{.rules = {shadow, real}}}, {.path = "/x"}),
              ElementsAre("shadow", "real"));
}

}  // namespace
}  // namespace sluice::rules
