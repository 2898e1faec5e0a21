// Keys and values that had another name before: none is read any more, and each is answered with
// the new one, at its place.

#include "config/grammar.h"
#include "rules/parse_rules.h"
#include "rules/rule_grammar.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::rules {
namespace {

using ::testing::HasSubstr;

struct Former {
  std::string_view section;
  std::string_view before;
  std::string_view now;
  std::string_view file;  // with @ where the key stands
};

constexpr Former kKeys[] = {
    {"rules_file", "rules_max", "max_rules", "rules: []\n@: 50\n"},
    {"rules_file", "ignore_case", "case_insensitive_paths", "rules: []\n@: true\n"},
    {"rules_file", "ignore_parameters", "ignore_path_parameters", "rules: []\n@: true\n"},
    {"max_rules", "all", "total", "rules: []\nmax_rules: {@: 50}\n"},
    {"rule", "missing", "on_missing", "rules: [{name: a, per: user, limit: 1/1s, @: skip}]\n"},
    {"rule", "granularity", "bucket_width",
     "rules: [{name: a, limit: 8/8s, algorithm: sliding_buckets, @: 1s}]\n"},
    {"rule", "over", "action", "rules: [{name: a, limit: 1/1s, @: shadow}]\n"},
    {"rule", "count_denied", "count_rejected", "rules: [{name: a, limit: 1/1s, @: true}]\n"},
    {"rule", "no_room", "on_table_full", "rules: [{name: a, limit: 1/1s, @: allow}]\n"},
    {"rule", "scale", "thread_leases", "rules: [{name: a, limit: 1/1s, @: true}]\n"},
    {"limit", "concurrent", "max_concurrent", "rules: [{name: a, limit: {@: 5}}]\n"},
    {"limit", "ttl", "slot_ttl", "rules: [{name: a, limit: {max_concurrent: 5, @: 9s}}]\n"},
    {"limit", "granularity", "bucket_width",
     "rules: [{name: a, limit: {rate: 8/8s, algorithm: sliding_buckets, @: 1s}}]\n"},
    {"queue", "waiting", "max_queued",
     "rules: [{name: a, limit: {rate: 1/1s, algorithm: leaky_bucket},\n"
     "         action: {queue: {max_delay: 2s, @: 5}}}]\n"},
    {"block", "for", "duration", "rules: [{name: a, per: ip, limit: 1/1s, block: {@: 15m}}]\n"},
    {"block", "after", "threshold",
     "rules: [{name: a, per: ip, limit: 1/1s, block: {duration: 15m, @: 3}}]\n"},
};

std::string with_key(const Former& former, std::string_view key) {
  std::string file{former.file};
  file.replace(file.find('@'), 1, key);
  return file;
}

std::vector<config::Mistake> mistakes_in(std::string_view file) {
  config::Diagnostics diagnostics;
  (void)parse_rules_text(file, "", diagnostics);
  return diagnostics.sorted();
}

config::Place place_of_key(const Former& former) {
  const std::string_view before = former.file.substr(0, former.file.find('@'));
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  config::Place place;
  place.line = 1 + static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
  place.column = 1 + static_cast<std::uint32_t>(before.size() - line_start);
  return place;
}

TEST(FormerKeys, AreToldTheirNewNameWhereTheyStand) {
  for (const Former& former : kKeys) {
    SCOPED_TRACE(fmt::format("{}.{}", former.section, former.before));
    const auto mistakes = mistakes_in(with_key(former, former.before));
    ASSERT_EQ(mistakes.size(), 1U) << "and nothing else is reported because of it";
    const config::Mistake& told = mistakes.front();
    EXPECT_EQ(told.severity, config::Severity::error);
    EXPECT_EQ(told.message, fmt::format("unknown key '{}' in {}", former.before, former.section));
    EXPECT_EQ(told.remedy, fmt::format("it is called '{}' now", former.now));
    EXPECT_EQ(told.place.line, place_of_key(former).line);
    EXPECT_EQ(told.place.column, place_of_key(former).column);
    EXPECT_TRUE(mistakes_in(with_key(former, former.now)).empty()) << "the new name is read";
  }
}

// A key that is renamed later belongs into the table.
TEST(FormerKeys, AreAllInTheTable) {
  std::set<std::string> written;
  for (const config::Section* section : config::sections_of(rules_file_shape())) {
    for (const config::Key& key : section->keys) {
      for (const std::string_view before : key.formerly) {
        written.insert(fmt::format("{}.{} -> {}", section->name, before, key.name));
      }
    }
  }
  std::set<std::string> listed;
  for (const Former& former : kKeys) {
    listed.insert(fmt::format("{}.{} -> {}", former.section, former.before, former.now));
  }
  EXPECT_EQ(written, listed);
}

struct Moved {
  std::string_view file;
  std::string_view remedy;
};

// What `over` held is spread over two maps now, and some values have other words.
TEST(FormerKeys, ThatMovedAreToldWhereTo) {
  const Moved kMoved[] = {
      {"action: {status: 503}", "reject: {status: 429}"},
      {"action: {body: go away}", "reject: {body: "},
      {"action: {headers: {x-a: b}}", "reject: {headers: "},
      {"action: {queue: {max_delay: 2s}, waiting: 50}", "queue: {max_delay: 2s, max_queued: 50}"},
      {"action: {queue: 2s}", "queue: {max_delay: 2s}"},
      {"action: refuse", "write reject"},
      {"per: user, on_missing: refuse", "write reject"},
      {"on_table_full: forgive", "write allow"},
      {"on_table_full: refuse", "write reject"},
      {"mode: blacklist", "write deny_list"},
      {"block: 15m", "block: {duration: 15m"},
      {"zone: UTC", "a time zone is called 'timezone'"},
      {"limit: {rate: 1/day, zone: UTC}", "a time zone is called 'timezone'"},
      {"concurrent: 5", "limit: {max_concurrent: 20}"},
      {"ttl: 5s", "slot_ttl: 60s"},
      {"queue: 5s", "action: {queue: {max_delay: 2s}}"},
      {"limit: {rate: 1/1s, count_denied: true}", "'count_rejected' in the rule"},
      {"limit: {rate: 1/1s, queue: 2s}", "action: {queue: {max_delay: 2s}} in the rule"},
  };
  for (const Moved& moved : kMoved) {
    const bool has_limit = moved.file.starts_with("limit:");
    const auto mistakes =
        mistakes_in(fmt::format("rules: [{{name: a, algorithm: leaky_bucket, {}{}}}]\n",
                                has_limit ? "" : "limit: 1/1s, ", moved.file));
    ASSERT_FALSE(mistakes.empty()) << moved.file;
    EXPECT_THAT(mistakes.back().remedy, HasSubstr(moved.remedy)) << moved.file;
  }
}

}  // namespace
}  // namespace sluice::rules
