#include "rules/parse_rules.h"

#include "rules/path_template.h"
#include "rules/rule_grammar.h"
#include "support/cpu_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace sluice::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace std::chrono_literals;

const std::filesystem::path kCorpus{std::filesystem::path{SLUICE_SOURCE_DIR} / "tests" / "corpus"};

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}};
}

// All that the parser may say of good rules is that nodes do not share limits yet.
void expect_good(const config::Diagnostics& diagnostics) {
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
  for (const config::Mistake& mistake : diagnostics.sorted()) {
    EXPECT_THAT(mistake.message, HasSubstr("several nodes cannot share a limit yet"));
  }
}

RuleList good(std::string_view yaml) {
  config::Diagnostics diagnostics;
  RuleList list = parse_rules_text(yaml, "good", diagnostics);
  expect_good(diagnostics);
  return list;
}

Rule good_rule(const std::string& keys) {
  RuleList list = good("rules:\n  - {name: r, " + keys + "}\n");
  return list.rules.empty() ? Rule{} : list.rules.front();
}

const Rule& rule_named(const RuleList& list, std::string_view name) {
  for (const Rule& rule : list.rules) {
    if (rule.name == name) return rule;
  }
  ADD_FAILURE() << "no rule " << name;
  static const Rule kNone;
  return kNone;
}

// ---- values -------------------------------------------------------------------------------------

TEST(ParseRules, AnAbsentKeyIsItsDefault) {
  const Rule rule = good_rule("limit: 100/1s");
  const Rule fresh;
  EXPECT_EQ(rule.domain, "default");
  EXPECT_THAT(rule.per, IsEmpty());
  EXPECT_EQ(rule.on_missing, OnMissing::ip);
  EXPECT_FALSE(rule.tiers);
  EXPECT_EQ(rule.cost.constant, 1U);
  EXPECT_FALSE(rule.count);
  EXPECT_EQ(rule.action.kind, Action::Kind::reject);
  EXPECT_EQ(rule.action.status, 429);
  EXPECT_FALSE(rule.block);
  EXPECT_FALSE(rule.before_auth);
  EXPECT_EQ(rule.sharing.mode, Mode::automatic);
  EXPECT_EQ(rule.sharing.tolerance_permille, fresh.sharing.tolerance_permille);
  EXPECT_EQ(rule.sharing.on_failure, OnFailure::share);
  ASSERT_EQ(rule.limits.size(), 1U);
  EXPECT_EQ(rule.limits[0].limit.algorithm, Algorithm::token_bucket);
  EXPECT_EQ(rule.limits[0].limit.amount, 100U);
  EXPECT_EQ(rule.limits[0].limit.period, 1s);
  EXPECT_EQ(rule.place.line, 2U);
  EXPECT_EQ(rule.place.column, 5U);
}

TEST(ParseRules, ReadsEveryKeyOfTheLanguage) {
  const RuleList list = good(content_of(kCorpus / "rules" / "every_key.yaml"));
  EXPECT_EQ(list.unmatched, Unmatched::reject);
  const Rule& rule = rule_named(list, "everything");
  EXPECT_EQ(rule.domain, "edge/main");
  EXPECT_THAT(rule.match.methods, ElementsAre("GET"));
  EXPECT_THAT(rule.match.hosts, ElementsAre("*.example.com", "api.example.org"));
  EXPECT_THAT(rule.match.paths, ElementsAre("/v1/users/{id}", "/v1/teams/*/users/{id}"));
  ASSERT_EQ(rule.match.headers.size(), 5U);
  EXPECT_EQ(rule.match.headers[0].name, "x-plan");
  EXPECT_EQ(rule.match.headers[0].value.kind, TextMatch::Kind::exact);
  EXPECT_EQ(rule.match.headers[0].value.text, "free");
  EXPECT_EQ(rule.match.headers[1].value.kind, TextMatch::Kind::prefix);
  EXPECT_EQ(rule.match.headers[1].value.text, "curl/");
  EXPECT_EQ(rule.match.headers[2].value.kind, TextMatch::Kind::regex);
  EXPECT_EQ(rule.match.headers[2].value.text, "application/(json|xml)");
  EXPECT_EQ(rule.match.headers[3].value.kind, TextMatch::Kind::present);
  EXPECT_EQ(rule.match.headers[4].value.kind, TextMatch::Kind::exact);
  EXPECT_EQ(rule.match.headers[4].value.text, "1");
  ASSERT_EQ(rule.match.query.size(), 2U);
  EXPECT_EQ(rule.match.query[0].value.text, "json");
  ASSERT_EQ(rule.match.cookies.size(), 2U);
  EXPECT_EQ(rule.match.cookies[1].name, "consent");
  EXPECT_EQ(rule.match.cookies[1].value.kind, TextMatch::Kind::present);
  ASSERT_EQ(rule.match.addresses.size(), 3U);
  EXPECT_EQ(rule.match.addresses[1].text(), "2001:db8::/32");
  EXPECT_THAT(rule.match.countries, ElementsAre("DE", "NO"));
  EXPECT_THAT(rule.match.asns, ElementsAre(64512U, 4200000000U));
  EXPECT_THAT(rule.match.tiers, ElementsAre("free"));
  EXPECT_THAT(rule.match.tenants, ElementsAre("acme", "42"));
  EXPECT_EQ(rule.match.authenticated, true);
  ASSERT_EQ(rule.match.descriptor.size(), 2U);
  EXPECT_EQ(rule.match.descriptor[1].name, "remote_address");
  EXPECT_EQ(rule.match.descriptor[1].value.kind, TextMatch::Kind::prefix);
  ASSERT_EQ(rule.match.attributes.size(), 2U);
  EXPECT_EQ(rule.match.attributes[0].name, "plan");
  EXPECT_EQ(rule.match.attributes[0].value.text, "gold");
  EXPECT_EQ(rule.match.attributes[1].value.kind, TextMatch::Kind::prefix);
  ASSERT_EQ(rule.per.size(), 7U);
  EXPECT_EQ(rule.per[1].kind, Per::Kind::path);
  EXPECT_EQ(rule.per[1].name, "id");
  EXPECT_EQ(rule.per[2].kind, Per::Kind::header);
  EXPECT_EQ(rule.per[2].name, "x-team");
  EXPECT_EQ(rule.per[5].kind, Per::Kind::attribute);
  EXPECT_EQ(rule.per[5].name, "team");
  EXPECT_EQ(rule.on_missing, OnMissing::skip);
  EXPECT_EQ(rule.cost.kind, CostRule::Kind::header);
  EXPECT_EQ(rule.cost.name, "x-cost");
  EXPECT_EQ(rule.cost.max, 10U);
  EXPECT_EQ(rule.cost.constant, 2U);
  ASSERT_TRUE(rule.count);
  EXPECT_THAT(rule.count->statuses,
              ElementsAre(Pair(401, 401), Pair(403, 403), Pair(500, 599), Pair(400, 499)));
  EXPECT_THAT(rule.count->grpc_statuses, ElementsAre(7, 16));
  ASSERT_TRUE(rule.count->header);
  EXPECT_EQ(rule.count->header->name, "x-login");
  EXPECT_EQ(rule.count->header->value.text, "failed");
  EXPECT_TRUE(rule.count->after);
  EXPECT_EQ(rule.action.status, 420);
  EXPECT_EQ(rule.action.body, "calm down\n");
  EXPECT_THAT(rule.action.headers, ElementsAre(Pair("x-docs", "https://example.com")));
  ASSERT_TRUE(rule.block);
  EXPECT_EQ(rule.block->duration, 15min);
  EXPECT_EQ(rule.block->threshold, 3U);
  EXPECT_EQ(rule.group, "users");
  EXPECT_EQ(rule.on_change, OnChange::proportional);
  EXPECT_EQ(rule.on_table_full, OnTableFull::reject);
  EXPECT_FALSE(rule.thread_leases);
  EXPECT_TRUE(rule_named(list, "windows").thread_leases);
  EXPECT_EQ(rule.sharing.mode, Mode::lease);
  EXPECT_EQ(rule.sharing.tolerance_permille, 5U);
  EXPECT_EQ(rule.sharing.on_failure, OnFailure::open);
}

TEST(ParseRules, ReadsEveryFormOfALimit) {
  const RuleList list = good(content_of(kCorpus / "rules" / "every_key.yaml"));
  const Rule& rule = rule_named(list, "everything");
  ASSERT_EQ(rule.limits.size(), 8U);
  EXPECT_EQ(rule.limits[0].limit.burst, 200U) << "plain text takes the rule's options";
  EXPECT_TRUE(rule.limits[0].limit.count_rejected);
  EXPECT_EQ(rule.limits[1].limit.algorithm, Algorithm::leaky_bucket);
  EXPECT_EQ(rule.limits[1].limit.burst, 5U);
  EXPECT_EQ(rule.limits[1].name, "pace");
  EXPECT_EQ(rule.limits[2].limit.bucket_width, 1min);
  EXPECT_EQ(rule.limits[2].limit.burst, std::nullopt) << "a map takes none of them";
  EXPECT_EQ(rule.limits[3].limit.algorithm, Algorithm::fixed_window);
  EXPECT_EQ(rule.limits[3].limit.unit, CalendarUnit::month);
  EXPECT_EQ(rule.limits[3].limit.timezone, "Europe/Berlin");
  EXPECT_EQ(rule.limits[4].limit.refill, Refill::interval);
  ASSERT_TRUE(rule.limits[5].from);
  EXPECT_EQ(rule.limits[5].from->kind, AmountFrom::Kind::claim);
  EXPECT_EQ(rule.limits[5].from->name, "limits.rps");
  EXPECT_EQ(rule.limits[5].from->max, 1000U);
  ASSERT_TRUE(rule.limits[6].from);
  EXPECT_EQ(rule.limits[6].from->kind, AmountFrom::Kind::attribute);
  EXPECT_EQ(rule.limits[6].from->name, "rps");
  ASSERT_TRUE(rule.limits[7].from);
  EXPECT_EQ(rule.limits[7].from->kind, AmountFrom::Kind::header);
  EXPECT_EQ(rule.limits[7].from->name, "x-limit");
  EXPECT_GT(rule.limits[6].place.line, rule.limits[5].place.line);

  ASSERT_TRUE(rule.tiers);
  EXPECT_EQ(rule.tiers->by, "claim.plan");
  ASSERT_EQ(rule.tiers->values.size(), 2U);
  EXPECT_EQ(rule.tiers->values[0].first, "free");
  EXPECT_EQ(rule.tiers->values[0].second.at(0).limit.burst, 200U);
  EXPECT_EQ(rule.tiers->values[1].second.at(1).limit.algorithm, Algorithm::gcra);

  const Limit& slots = rule_named(list, "in-flight").limits.at(0).limit;
  EXPECT_EQ(slots.algorithm, Algorithm::concurrency);
  EXPECT_EQ(slots.amount, 20U);
  EXPECT_EQ(slots.slot_ttl, 30s);
  EXPECT_EQ(rule_named(list, "windows").limits.at(0).limit.align, Align::first_request);
  EXPECT_EQ(rule_named(list, "calendar").limits.at(0).limit.timezone, "America/New_York");
  EXPECT_EQ(rule_named(list, "slices").limits.at(0).limit.bucket_width, 1min);
}

TEST(ParseRules, ReadsWhatHappensOverTheLimit) {
  const RuleList list = good(content_of(kCorpus / "rules" / "every_key.yaml"));
  const Rule& queued = rule_named(list, "queued");
  EXPECT_EQ(queued.action.kind, Action::Kind::queue);
  EXPECT_EQ(queued.action.max_delay, 2s);
  EXPECT_EQ(queued.action.max_queued, 50U);
  EXPECT_EQ(queued.limits.at(0).limit.max_delay, 2s);
  EXPECT_EQ(rule_named(list, "before").action.kind, Action::Kind::drop);
  EXPECT_EQ(rule_named(list, "quietly").action.kind, Action::Kind::shadow);
  EXPECT_EQ(rule_named(list, "constant").action.kind, Action::Kind::reject);
}

TEST(ParseRules, ReadsCostsAndAddressPrefixes) {
  const RuleList list = good(content_of(kCorpus / "rules" / "every_key.yaml"));
  const Rule& before = rule_named(list, "before");
  EXPECT_TRUE(before.before_auth);
  EXPECT_EQ(before.cost.kind, CostRule::Kind::method);
  EXPECT_THAT(before.cost.by_method, ElementsAre(Pair("GET", 1U), Pair("POST", 5U)));
  EXPECT_EQ(before.per[0].v4_bits, 24);
  EXPECT_EQ(before.per[0].v6_bits, 56);
  EXPECT_EQ(rule_named(list, "by-query").cost.kind, CostRule::Kind::query);
  EXPECT_EQ(rule_named(list, "constant").cost.constant, 5U);
  EXPECT_EQ(rule_named(list, "constant").per[0].v4_bits, 16);
  EXPECT_EQ(rule_named(list, "constant").per[0].v6_bits, 64) << "ip/N leaves IPv6 alone";
}

TEST(ParseRules, CountRejectedSkipsRequestsInFlight) {
  const RuleList list = good(content_of(kCorpus / "rules" / "forms.yaml"));
  const Rule& mixed = rule_named(list, "mixed-with-concurrency");
  EXPECT_TRUE(mixed.limits.at(0).limit.count_rejected);
  EXPECT_FALSE(mixed.limits.at(1).limit.count_rejected);
}

TEST(ParseRules, EveryGoodFileIsAccepted) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{kCorpus / "rules"}) {
    config::Diagnostics diagnostics;
    (void)parse_rules_text(content_of(entry.path()), entry.path().filename().string(), diagnostics);
    expect_good(diagnostics);
    ++files;
  }
  EXPECT_GE(files, 5);
}

// ---- the grammar and the parser -----------------------------------------------------------------

// The reverse, a key that the parser asks for and the grammar lacks, is an assertion.
TEST(ParseRules, TheParserAsksForEveryKeyOfTheGrammar) {
  config::Diagnostics diagnostics;
  std::set<std::string> asked;
  for (const char* file : {"every_key.yaml", "forms.yaml"}) {
    const auto document =
        config::parse_document(content_of(kCorpus / "rules" / file), file, diagnostics);
    ASSERT_TRUE(document);
    config::Checked checked = check(document->root, rules_file_shape(), "the file", diagnostics);
    checked.watch(&asked);
    (void)read_rules(document->root, checked, diagnostics);
  }
  for (const config::Section* section : sections_of(rules_file_shape())) {
    for (const config::Key& key : section->keys) {
      const std::string name = std::string{section->name} + "." + std::string{key.name};
      EXPECT_TRUE(asked.contains(name)) << "the parser ignores " << name;
    }
  }
}

TEST(ParseRules, EveryExampleAndDefaultOfTheGrammarIsWellFormed) {
  for (const config::Section* section : sections_of(rules_file_shape())) {
    for (const config::Key& key : section->keys) {
      std::vector<std::string_view> values = key.examples;
      if (!key.fallback.empty()) values.push_back(key.fallback);
      for (const std::string_view value : values) {
        config::Diagnostics diagnostics;
        const auto document = config::parse_document(value, "example", diagnostics);
        ASSERT_TRUE(document) << value;
        (void)check(document->root, key.shape, key.name, diagnostics);
        EXPECT_EQ(diagnostics.text(), "") << section->name << "." << key.name;
      }
    }
  }
}

TEST(ParseRules, EveryKeyIsExplained) {
  for (const config::Section* section : sections_of(rules_file_shape())) {
    EXPECT_TRUE(section->meaning.ends_with('.')) << section->name;
    for (const config::Key& key : section->keys) {
      EXPECT_TRUE(key.meaning.ends_with('.')) << section->name << "." << key.name;
    }
  }
}

// ---- bounds -------------------------------------------------------------------------------------

std::string many_rules(int count, std::string_view keys) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < count; ++i) {
    yaml += "  - name: rule-" + std::to_string(i) + "\n" + std::string{keys};
  }
  return yaml;
}

TEST(ParseRules, TooManyRulesAreANamedError) {
  const std::string yaml = many_rules(11, "    limit: 1/1s\n");
  const auto told = [&](std::string_view max) {
    config::Diagnostics diagnostics;
    (void)parse_rules_text(yaml + "max_rules: " + std::string{max} + "\n", "f", diagnostics);
    return diagnostics.empty() ? "" : diagnostics.sorted().front().headline();
  };
  constexpr std::string_view kInAll =
      "f:2:3: max_rules: there are 11 rules, at most 10 are allowed; remove some, or write "
      "max_rules: 11 beside 'rules'";
  constexpr std::string_view kInADomain =
      "f:22:5: max_rules: the domain 'default' has more than 10 rules; remove some, or raise "
      "per_domain of max_rules";
  EXPECT_EQ(told("10"), kInAll);
  EXPECT_EQ(told("{total: 10}"), kInAll);
  EXPECT_EQ(told("{per_domain: 10}"), kInADomain);
  EXPECT_EQ(told("{total: 11, per_domain: 10}"), kInADomain);
  EXPECT_EQ(told("11"), "");
  EXPECT_EQ(told("{total: 11, per_domain: 11}"), "");
}

TEST(ParseRules, MoreRulesThanUsualAreAllowedByAKey) {
  const std::string yaml = many_rules(10'001, "    group: g\n    limit: 1/1s\n");
  config::Diagnostics diagnostics;
  (void)parse_rules_text(yaml, "f", diagnostics);
  EXPECT_EQ(diagnostics.errors(), 1U);
  EXPECT_EQ(good(yaml + "max_rules: 10001\n").rules.size(), 10'001U);
}

// Ten times as many take about ten times as long: were each compared with all the others, it would
// be a hundred times.
TEST(ParseRules, TakesATimeThatGrowsWithTheNumberOfRules) {
  const auto seconds_for = [](int count) {
    const std::string yaml = many_rules(
        count,
        "    match: {method: [GET, POST], path: '/v1/users/{id}/**', host: api.example.com}\n"
        "    per: [user, path.id]\n"
        "    limit: [100/1s, {rate: 10000/1h, algorithm: sliding_counter}, 5000/month]\n"
        "    tiers: {by: client.tier, values: {free: 10/1s, paid: [1000/1s, 50000/1h]}}\n");
    return sluice::testing::least_cpu_seconds(3, [&] {
      config::Diagnostics diagnostics;
      const RuleList list = parse_rules_text(yaml, "f", diagnostics);
      EXPECT_EQ(diagnostics.text(), "");
      EXPECT_EQ(list.rules.size(), static_cast<std::size_t>(count));
    });
  };
  const double few = seconds_for(1'000);
  EXPECT_LT(seconds_for(10'000), 30 * few);
}

// ---- path templates -----------------------------------------------------------------------------

TEST(PathTemplate, IsCutIntoSegments) {
  using Kind = PathSegment::Kind;
  const auto segments = parse_path_template("/v1/{user_id}/*/x%20y/**");
  ASSERT_TRUE(segments);
  EXPECT_THAT(*segments,
              ElementsAre(PathSegment{Kind::literal, "v1"}, PathSegment{Kind::parameter, "user_id"},
                          PathSegment{Kind::any, ""}, PathSegment{Kind::literal, "x%20y"},
                          PathSegment{Kind::rest, ""}));
  EXPECT_THAT(*parse_path_template("/"), ElementsAre(PathSegment{Kind::literal, ""}));
  EXPECT_THAT(*parse_path_template("/a/"),
              ElementsAre(PathSegment{Kind::literal, "a"}, PathSegment{Kind::literal, ""}));
}

TEST(PathTemplate, RefusesWhatIsNone) {
  for (const char* path : {"", "v1", "/a//b", "/**/b", "/a*", "/{}", "/{a}/{a}", "/{1}", "/a?b=c",
                           "/a b", "/a#b", "/./a", "/..", "/:id", "/{a", "/%zz", "/x{id}"}) {
    EXPECT_FALSE(parse_path_template(path)) << path;
  }
}

TEST(ParseRules, WarnsOfMoreLimitsThanARequestMayMeet) {
  std::string text = "rules:\n";
  for (int i = 0; i < 33; ++i) text += "  - {name: r" + std::to_string(i) + ", limit: 5/1s}\n";
  config::Diagnostics diagnostics;
  (void)parse_rules_text(text, "rules.yaml", diagnostics);
  EXPECT_TRUE(diagnostics.ok());
  ASSERT_EQ(diagnostics.warnings(), 1U);
  EXPECT_EQ(diagnostics.sorted()[0].place.line, 34U);
}

// Rules that need not apply are no reason to warn, and shadows are left out, not shed.
TEST(ParseRules, WarnsOfLimitsThatApplyOnly) {
  const auto warned = [](const std::string& rest) {
    std::string text = "rules:\n";
    for (int i = 0; i < 33; ++i) text += "  - {name: r" + std::to_string(i) + ", " + rest + "}\n";
    config::Diagnostics diagnostics;
    (void)parse_rules_text(text, "rules.yaml", diagnostics);
    return diagnostics.text();
  };
  EXPECT_EQ(warned("limit: 5/1s, group: g"), "");
  EXPECT_EQ(warned("limit: 5/1s, per: header.x-a, on_missing: skip"), "");
  EXPECT_THAT(warned("limit: 5/1s, per: header.x-a"), HasSubstr("is shed with 503"));
  EXPECT_THAT(warned("limit: 5/1s, action: shadow"), HasSubstr("are not told of it"));
}

// MAX_DELAY times the rate is what one key can hold.
TEST(ParseRules, WarnsOfQueuesThatOneClientCanFill) {
  const auto told = [](const std::string& rest) {
    config::Diagnostics diagnostics;
    (void)parse_rules_text("rules:\n  - name: q\n    algorithm: leaky_bucket\n    " + rest, "r",
                           diagnostics);
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return diagnostics.text();
  };
  EXPECT_EQ(
      told("limit: 10/1s\n    per: ip\n    action: {queue: {max_delay: 2s, max_queued: 21}}\n"),
      "");
  EXPECT_THAT(
      told("limit: 10/1s\n    per: ip\n    action: {queue: {max_delay: 2s, max_queued: 20}}\n"),
      HasSubstr("r:6:49: warning: one client can take all 20 places of this queue: in 2s its "
                "limit lets 20 wait; write a 'max_queued' of several times 20, or a shorter "
                "'max_delay'"));
  EXPECT_EQ(told("limit: 10/1s\n    per: ip\n    action: {queue: {max_delay: 90s}}\n"), "");
  EXPECT_THAT(told("limit: 10/1s\n    per: ip\n    action: {queue: {max_delay: 100s}}\n"),
              HasSubstr("one client can take all 1000 places"));
  EXPECT_EQ(told("limit: 10/1s\n    action: {queue: {max_delay: 100s}}\n"), "")
      << "one queue for all, as written";
  EXPECT_EQ(told("limit: 10/1s\n    per: ip\n    cost: 5\n    burst: 5\n    action: {queue: "
                 "{max_delay: 100s}}\n"),
            "");
  EXPECT_THAT(told("limit: 1/1s\n    per: ip\n    action: {queue: {max_delay: 2s, max_queued: 9}}\n"
                   "    tiers: {by: client.tier, values: {gold: 10/1s}}\n"),
              HasSubstr("one client can take all 9 places"));
}

TEST(ParseRules, ReadsWhereCaseIsIgnored) {
  config::Diagnostics diagnostics;
  const RuleList all =
      parse_rules_text("case_insensitive_paths: true\nrules: []\n", "r", diagnostics);
  EXPECT_TRUE(all.case_insensitive_paths.everywhere);
  const RuleList some = parse_rules_text(
      "case_insensitive_paths: [intranet.example.com]\nrules: []\n", "r", diagnostics);
  EXPECT_TRUE(some.case_insensitive_paths.holds_for("intranet.example.com"));
  EXPECT_FALSE(some.case_insensitive_paths.holds_for("example.com"));
  const RuleList below =
      parse_rules_text("case_insensitive_paths: ['*.Example.com.']\nrules: []\n", "r", diagnostics);
  EXPECT_TRUE(below.case_insensitive_paths.holds_for("intranet.example.com"));
  EXPECT_TRUE(below.case_insensitive_paths.holds_for("*.example.com"));
  EXPECT_FALSE(below.case_insensitive_paths.holds_for("example.com"));
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
}

TEST(ParseRules, ReadsWhereParametersAreIgnored) {
  config::Diagnostics diagnostics;
  const RuleList none = parse_rules_text("rules: []\n", "r", diagnostics);
  EXPECT_FALSE(none.ignore_path_parameters.holds_anywhere());
  const RuleList all =
      parse_rules_text("ignore_path_parameters: true\nrules: []\n", "r", diagnostics);
  EXPECT_TRUE(all.ignore_path_parameters.everywhere);
  const RuleList some =
      parse_rules_text("ignore_path_parameters: ['*.Example.com']\nrules: []\n", "r", diagnostics);
  EXPECT_TRUE(some.ignore_path_parameters.holds_for("intranet.example.com"));
  EXPECT_FALSE(some.case_insensitive_paths.holds_anywhere());
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();

  // A path with a parameter is fine for hosts that heed it.
  (void)parse_rules_text(
      "ignore_path_parameters: [a.example.com]\n"
      "rules: [{name: r, match: {host: b.example.com, path: /x;y}, limit: 1/1s}]\n",
      "r", diagnostics);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
}

TEST(ParseRules, ReadsWhatEscapedSlashesAre) {
  using enum identity::EscapedSlashes;
  config::Diagnostics diagnostics;
  const auto slashes = [&](const std::string& text) {
    return parse_rules_text(text + "rules: []\n", "r", diagnostics).escaped_slashes;
  };
  EXPECT_EQ(slashes(""), SlashesByHost{});
  EXPECT_EQ(slashes("").otherwise, decode);
  EXPECT_EQ(slashes("escaped_slashes: reject\n").otherwise, reject);
  EXPECT_EQ(slashes("escaped_slashes: {default: keep}\n").otherwise, keep);
  EXPECT_EQ(slashes("escaped_slashes: {hosts: {Git.Example.com: keep, '*.example.com': reject}}\n"),
            (SlashesByHost{.hosts = {{"git.example.com", keep}, {"*.example.com", reject}}}));
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  (void)slashes("escaped_slashes: {}\n");
  (void)slashes("escaped_slashes: strict\n");
  EXPECT_EQ(diagnostics.errors(), 2U) << diagnostics.text();
}

// The warning goes where another spelling, or another path beside it, makes it plain.
TEST(ParseRules, WarnsOfPathsThatLookLikePrefixes) {
  const auto told = [](const std::string& rules) {
    config::Diagnostics diagnostics;
    (void)parse_rules_text("rules:\n" + rules, "r", diagnostics);
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return diagnostics.text();
  };
  const auto with = [](const std::string& name, const std::string& path) {
    return "- {name: " + name + ", limit: 1/1s, match: {path: " + path + "}}\n";
  };
  EXPECT_THAT(told(with("a", "/api/")),
              HasSubstr("the path '/api/' is this one path, not all that begin so; write /api/** "
                        "for all that begin so, or /api for this one"));
  EXPECT_THAT(told(with("a", "/")), HasSubstr("write /** for all paths"));
  EXPECT_EQ(told(with("a", "/api") + with("b", "/api/**")), "");
  EXPECT_EQ(told(with("a", "[/, /index.html]")), "");
  EXPECT_EQ(told(with("a", "/") + with("b", "/**")), "");
}

// A path with capitals would match on some hosts and never on others.
TEST(ParseRules, RefusesCapitalsWhereSomeHostsIgnoreThem) {
  config::Diagnostics diagnostics;
  (void)parse_rules_text(
      "case_insensitive_paths: [a.example.com]\n"
      "rules:\n"
      "  - {name: wrong, limit: 1/1s, match: {path: /Login}}\n"
      "  - {name: right, limit: 1/1s, match: {path: /Login, host: a.example.com}}\n"
      "  - {name: other, limit: 1/1s, match: {path: /Login, host: b.example.com}}\n"
      "  - {name: both, limit: 1/1s, match: {path: /Login, host: '*.example.com'}}\n",
      "r", diagnostics);
  EXPECT_EQ(diagnostics.errors(), 2U) << diagnostics.text();
  EXPECT_EQ(diagnostics.sorted()[0].place.line, 3U);
  EXPECT_EQ(diagnostics.sorted()[1].place.line, 6U);
}

TEST(ParseRules, ReadsHostsAsRequestsHaveThem) {
  config::Diagnostics diagnostics;
  const RuleList list = parse_rules_text(
      "rules: [{name: a, limit: 1/1s, match: {host: [API.Example.com., '*.Example.org']}}]\n", "r",
      diagnostics);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
  EXPECT_THAT(list.rules.at(0).match.hosts, ElementsAre("api.example.com", "*.example.org"));
}

// An answer has to fit what the server has room for.
TEST(ParseRules, RefusesMoreHeadersThanAnAnswerHasRoomFor) {
  const auto errors = [](int values) {
    std::string headers;
    for (int i = 0; i < values; ++i) {
      headers += "x-" + std::to_string(i) + ": " + std::string(4000, 'v') + ", ";
    }
    config::Diagnostics diagnostics;
    (void)parse_rules_text(
        "rules: [{name: a, limit: 1/1s, action: {reject: {headers: {" + headers + "}}}}]\n", "r",
        diagnostics);
    return diagnostics.text();
  };
  EXPECT_EQ(errors(4), "");
  EXPECT_THAT(errors(5), HasSubstr("the headers have 20015 bytes in all; use at most 16384"));
}

}  // namespace
}  // namespace sluice::rules
