#include "rules/envoy_rules.h"

#include "rules/envoy_golden.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EnvoyRules good(std::string_view yaml) {
  config::Diagnostics diagnostics;
  const std::vector<EnvoyFile> files{{"f.yaml", std::string{yaml}}};
  EnvoyRules rules = load_envoy_rules(files, diagnostics);
  EXPECT_EQ(diagnostics.text(), "");
  return rules;
}

std::vector<std::string> mistakes_in(const std::vector<EnvoyFile>& files,
                                     const EnvoyOptions& options = {}) {
  config::Diagnostics diagnostics;
  (void)load_envoy_rules(files, diagnostics, options);
  std::vector<std::string> mistakes;
  for (const auto& mistake : diagnostics.sorted()) mistakes.push_back(mistake.headline());
  return mistakes;
}

std::vector<std::string> mistakes_in(std::string_view yaml) {
  return mistakes_in({{"f", std::string{yaml}}});
}

std::string name_of(const EnvoyLimit* limit) { return limit == nullptr ? "none" : limit->name; }

using Entries = std::vector<DescriptorEntry>;

// ---- the walk -----------------------------------------------------------------------------------

class EnvoyGolden : public ::testing::TestWithParam<EnvoyGoldenCase> {};

TEST_P(EnvoyGolden, GivesTheLimitThatTheReferenceGives) {
  const EnvoyRules rules = good(kEnvoyGolden);
  EXPECT_EQ(name_of(rules.match("d", GetParam().entries)), GetParam().limit);
}

INSTANTIATE_TEST_SUITE_P(Table, EnvoyGolden, ::testing::ValuesIn(kEnvoyGoldenCases),
                         [](const auto& one) { return one.param.name; });

TEST(EnvoyMatch, AnUnknownDomainHasNoLimit) {
  const EnvoyRules rules = good(kEnvoyGolden);
  EXPECT_EQ(rules.match("e", Entries{{"ip", "8.8.8.8"}}), nullptr);
  EXPECT_FALSE(rules.has_domain("e"));
  EXPECT_TRUE(rules.has_domain("d"));
  EXPECT_EQ(rules.match("d", {}), nullptr);
}

// A literal request value that equals a pattern is that pattern's exact composite.
TEST(EnvoyMatch, TheExactCompositeComesBeforeWildcards) {
  const EnvoyRules rules = good(kEnvoyGolden);
  EXPECT_EQ(name_of(rules.match("d", Entries{{"ip", "10.*"}})), "C");
}

// Composites are strings: the node (plan, free) is also found by the key plan_free alone.
TEST(EnvoyMatch, AKeyAloneFindsACompositeOfKeyAndValue) {
  const EnvoyRules rules = good(
      "domain: d\ndescriptors:\n- {key: plan, value: free, rate_limit: {unit: day, name: X}}\n");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"plan_free", "anything"}})), "X");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"plan", "free"}})), "X");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"plan", "paid"}})), "none");
}

TEST(EnvoyMatch, AnEmptyValueIsAnExactCompositeOfItsOwn) {
  const EnvoyRules rules = good(
      "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: day, name: K}}\n"
      "- {key: a_, rate_limit: {unit: day, name: U}}\n");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"a", ""}})), "U");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"a", "x"}})), "K");
}

TEST(EnvoyMatch, WildcardsMayStandInKeysAndComeSeveralTimes) {
  const EnvoyRules rules = good(
      "domain: d\ndescriptors:\n- {key: 'x*', rate_limit: {unit: day, name: K}}\n"
      "- {key: p, value: '*/a/*/b', rate_limit: {unit: day, name: P}}\n");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"xyz", "v"}})), "K");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"p", "/a/1/b"}})), "P");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"p", "q/a/a/b/b"}})), "P");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"p", "/a/b"}})), "none");
}

// The slow obvious reading of a pattern, on the composite as one text.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*') {
    return !text.empty() && pattern.front() == text.front() &&
           matches_slowly(pattern.substr(1), text.substr(1));
  }
  for (std::size_t taken = 0; taken <= text.size(); ++taken) {
    if (matches_slowly(pattern.substr(1), text.substr(taken))) return true;
  }
  return false;
}

RC_GTEST_PROP(EnvoyMatch, PatternsMatchAsTheObviousReadingDoes, ()) {
  const auto text = [](const char* letters) {
    return *rc::gen::resize(
        8, rc::gen::container<std::string>(rc::gen::elementOf(std::string{letters})));
  };
  const std::string pattern = text("ab_*");
  const std::string key = text("ab_");
  const std::string value = text("ab_");
  RC_ASSERT(matches_composite(pattern, key, value) == matches_slowly(pattern, key + "_" + value));
}

// Exact lookups find every node and nothing else, whatever the composites look like.
RC_GTEST_PROP(EnvoyMatch, LooksUpCompositesAsStrings, ()) {
  const auto word = rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::string>(
                                           rc::gen::elementOf(std::string{"ab_^\x7f"}))));
  const auto keys = *rc::gen::unique<std::vector<std::string>>(word);
  std::string yaml = "domain: d\ndescriptors:\n";
  for (const std::string& key : keys) {
    std::string plain = key;
    std::replace(plain.begin(), plain.end(), '\x7f', 'z');
    yaml += "- {key: 'k" + plain + "', rate_limit: {unit: day, name: 'k" + plain + "'}}\n";
  }
  config::Diagnostics diagnostics;
  const std::vector<EnvoyFile> files{{"f", yaml}};
  const EnvoyRules rules = load_envoy_rules(files, diagnostics);
  for (const EnvoyLimit* limit : rules.limits()) {
    const std::string& name = limit->name;
    const Entries alone{{name, "no such value"}};
    RC_ASSERT(name_of(rules.match("d", alone)) == name);
    const std::size_t underscore = name.find('_');
    if (underscore == std::string::npos) continue;
    const Entries split{{std::string_view{name}.substr(0, underscore),
                         std::string_view{name}.substr(underscore + 1)}};
    RC_ASSERT(name_of(rules.match("d", split)) == name);
  }
}

// ---- the files ----------------------------------------------------------------------------------

TEST(EnvoyLoad, ReadsEveryKey) {
  const EnvoyRules rules = good(R"(
domain: d
descriptors:
  - key: a
    value: b*
    share_threshold: true
    value_to_metric: true
    descriptors:
      - key: c
        rate_limit:
          unit: MINUTE
          requests_per_unit: 20
          name: mine
          replaces: [{name: other}, {name: third}]
        shadow_mode: true
        quota_mode: true
        detailed_metric: true
        metadata: {anything: [1, two], nested: {free: form}}
  - key: free
    rate_limit: {unlimited: true}
)");
  const EnvoyLimit* limit = rules.match("d", Entries{{"a", "bcd"}, {"c", "x"}});
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->unit, EnvoyUnit::minute);
  EXPECT_EQ(limit->requests_per_unit, 20U);
  EXPECT_EQ(limit->name, "mine");
  EXPECT_THAT(limit->replaces, ElementsAre("other", "third"));
  EXPECT_TRUE(limit->shadow_mode);
  EXPECT_TRUE(limit->quota_mode);
  EXPECT_TRUE(limit->detailed_metric);
  EXPECT_FALSE(limit->unlimited);
  EXPECT_EQ(limit->metric, "d.a_b*.c");
  EXPECT_EQ(limit->metadata_json, R"({"anything":[1,"two"],"nested":{"free":"form"}})");
  ASSERT_EQ(limit->levels.size(), 2U);
  EXPECT_TRUE(limit->levels[0].share_threshold);
  EXPECT_TRUE(limit->levels[0].value_to_metric);
  EXPECT_EQ(limit->levels[0].value_pattern, "b*");
  EXPECT_FALSE(limit->levels[1].share_threshold);
  const EnvoyLimit* unlimited = rules.match("d", Entries{{"free", "x"}});
  ASSERT_NE(unlimited, nullptr);
  EXPECT_TRUE(unlimited->unlimited);
  EXPECT_EQ(rules.limits().size(), 2U);
  EXPECT_THAT(rules.domains(), ElementsAre("d"));
}

TEST(EnvoyLoad, NullsAndEmptyListsAreNothing) {
  const EnvoyRules rules = good(
      "domain: d\ndescriptors:\n"
      "- {key: a, value: null, rate_limit: ~, descriptors: [], metadata: null, shadow_mode: null}\n"
      "- {key: b, value: '', rate_limit: {unit: hour, requests_per_unit: null, replaces: []}, "
      "descriptors: null}\n");
  EXPECT_EQ(rules.match("d", Entries{{"a", "x"}}), nullptr);
  const EnvoyLimit* limit = rules.match("d", Entries{{"b", "x"}});
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->requests_per_unit, 0U) << "absent is 0, which is always over";
  good("domain: d\ndescriptors:\n");
  good("domain: d\n");
}

TEST(EnvoyLoad, ValuesKeepTheTextOfTheirSource) {
  const EnvoyRules rules = good(
      "domain: d\ndescriptors:\n- {key: n, value: 010, rate_limit: {unit: day, name: N}}\n"
      "- {key: b, value: true, rate_limit: {unit: day, name: B}}\n"
      "- {key: f, value: 1.50, rate_limit: {unit: day, name: F}}\n");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"n", "010"}})), "N");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"b", "true"}})), "B");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"f", "1.50"}})), "F");
}

TEST(EnvoyLoad, EveryUnitInAnyCase) {
  const std::vector<std::pair<std::string, std::uint32_t>> units{
      {"second", 1},       {"Minute", 60},        {"HOUR", 3600},       {"day", 86400},
      {"week", 7 * 86400}, {"month", 30 * 86400}, {"year", 365 * 86400}};
  for (const auto& [unit, seconds] : units) {
    const EnvoyRules rules =
        good("domain: d\ndescriptors: [{key: a, rate_limit: {unit: " + unit + "}}]\n");
    EXPECT_EQ(seconds_of(rules.match("d", Entries{{"a", "x"}})->unit), seconds) << unit;
  }
}

TEST(EnvoyLoad, AcceptsWhatItsYamlReaderAccepts) {
  const EnvoyRules rules = good(
      "domain: d\nname: ignored here\ndescriptors:\n"
      "- key: a\n  rate_limit: &r {unit: day, requests_per_unit: 1_000}\n  shadow_mode: yes\n"
      "- key: b\n  rate_limit: *r\n"
      "- key: c\n  rate_limit: {<<: *r, requests_per_unit: 0x10}\n"
      "---\ndomain: ignored\n");
  EXPECT_EQ(rules.match("d", Entries{{"a", ""}})->requests_per_unit, 1000U);
  EXPECT_TRUE(rules.match("d", Entries{{"a", ""}})->shadow_mode);
  EXPECT_EQ(rules.match("d", Entries{{"b", ""}})->requests_per_unit, 1000U);
  EXPECT_EQ(rules.match("d", Entries{{"c", ""}})->requests_per_unit, 16U);
  EXPECT_EQ(rules.match("d", Entries{{"c", ""}})->unit, EnvoyUnit::day);
}

TEST(EnvoyLoad, RefusesWhatTheReferenceRefuses) {
  EXPECT_THAT(mistakes_in("descriptors: []"),
              ElementsAre("f:1:1: the file has no domain; write domain: NAME"));
  EXPECT_THAT(mistakes_in("domain: ''"),
              ElementsAre("f:1:1: the file has no domain; write domain: NAME"));
  EXPECT_THAT(mistakes_in(""), ElementsAre(HasSubstr("the file has no domain")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{value: x}]"),
              ElementsAre("f:2:15: a descriptor has no key; write key: NAME"));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, ratelimit: {}}]"),
              ElementsAre("f:2:24: unknown key 'ratelimit'; did you mean 'rate_limit'?"));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a}, {key: a}]"),
              ElementsAre("f:2:31: the descriptor 'a' is written twice; put both below one"));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a_b}, {key: a, value: b}]"),
              ElementsAre(HasSubstr("the descriptor 'a_b' is written twice")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [a]"),
              ElementsAre(HasSubstr("an item of a list must be a map")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, rate_limit: {unit: fortnight}}]"),
              ElementsAre(HasSubstr("invalid unit 'fortnight'")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, rate_limit: {}}]"),
              ElementsAre(HasSubstr("invalid unit ''")));
  EXPECT_THAT(
      mistakes_in("domain: d\ndescriptors: [{key: a, rate_limit: {unlimited: true, unit: day}}]"),
      ElementsAre(HasSubstr("what is unlimited has no unit")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, "
                          "requests_per_unit: 4294967296}}]"),
              ElementsAre(HasSubstr("use 0 to 4294967295")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, name: x, "
                          "replaces: [{name: x}, {name: ''}]}}]"),
              ElementsAre(HasSubstr("replaces itself"), HasSubstr("an empty name")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, value: b, share_threshold: true}]"),
              ElementsAre(HasSubstr("share_threshold is for values with a *")));
  EXPECT_THAT(mistakes_in("domain: d\ndescriptors: [{key: a, shadow_mode: maybe}]"),
              ElementsAre(HasSubstr("neither true nor false")));
}

TEST(EnvoyLoad, ADomainInTwoFilesIsAMistakeUnlessMerged) {
  const std::vector<EnvoyFile> files{
      {"one", "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, name: A}}]"},
      {"two", "domain: d\ndescriptors: [{key: b, rate_limit: {unit: day, name: B}}]"}};
  EXPECT_THAT(
      mistakes_in(files),
      ElementsAre("two:1:9: the domain 'd' is already in one; keep a domain in one file, or "
                  "allow merging"));
  config::Diagnostics diagnostics;
  const EnvoyRules rules = load_envoy_rules(files, diagnostics, {.merge_domains = true});
  EXPECT_EQ(diagnostics.text(), "");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"a", "x"}})), "A");
  EXPECT_EQ(name_of(rules.match("d", Entries{{"b", "x"}})), "B");
  EXPECT_THAT(mistakes_in({files[0], {"two", files[0].text}}, {.merge_domains = true}),
              ElementsAre(HasSubstr("the descriptor 'a' is written twice")));
}

TEST(EnvoyLoad, ReadsAFolderButNoDotFiles) {
  const sluice::testing::TempFolder temporary;
  const std::filesystem::path folder{temporary.file("config")};
  std::filesystem::create_directories(folder / "below");
  std::filesystem::create_directories(folder / "..data");
  std::ofstream{folder / "a.yaml"} << "domain: a\n";
  std::ofstream{folder / "below" / "b.yaml"} << "domain: b\n";
  std::ofstream{folder / "..data" / "a.yaml"} << "domain: a\n";
  std::ofstream{folder / ".hidden"} << "not yaml: [";
  config::Diagnostics diagnostics;
  const EnvoyRules rules = load_envoy_directory(folder, diagnostics);
  EXPECT_EQ(diagnostics.text(), "");
  EXPECT_THAT(rules.domains(), ElementsAre("a", "b"));
  config::Diagnostics missing;
  EXPECT_THAT(load_envoy_directory(folder / "none", missing).domains(), IsEmpty());
  EXPECT_EQ(missing.errors(), 1U);
  EXPECT_THAT(missing.text(), HasSubstr("none' with all below it: No such file"));
}

// A file that cannot be used is told of with a remedy, and so is every other one.
TEST(EnvoyLoad, ReadsOnlyFilesThatCanBeTrustedAndAreNotTooLarge) {
  const sluice::testing::TempFolder temporary;
  const std::filesystem::path folder{temporary.file("config")};
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "a.yaml"} << "domain: a\n";
  std::ofstream{folder / "b.yaml"} << "domain: b\n" << std::string(100, '\n');
  std::filesystem::permissions(folder / "a.yaml", std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  config::Diagnostics diagnostics;
  EXPECT_THAT(load_envoy_directory(folder, diagnostics, {.bytes_max = 50}).domains(), IsEmpty());
  EXPECT_EQ(diagnostics.errors(), 2U);
  EXPECT_THAT(diagnostics.text(), HasSubstr("chmod o-w " + (folder / "a.yaml").string()));
  EXPECT_THAT(diagnostics.text(), HasSubstr("b.yaml' is larger than 50 bytes"));
}

}  // namespace
}  // namespace sluice::rules
