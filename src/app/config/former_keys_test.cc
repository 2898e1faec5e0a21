// Keys that had another name before: each is an error that names the new one, where it is written.
#include "app/config/configuration.h"
#include "app/config/configuration_grammar.h"
#include "config/grammar.h"
#include "rules/parse_rules.h"
#include "rules/rule_grammar.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace sluice::app {
namespace {

struct Renamed {
  std::string_view section;  // where: keys between dots, [] behind those that hold a list
  std::string_view former;
  std::string_view key;

  friend std::ostream& operator<<(std::ostream& out, const Renamed& one) {
    return out << one.section << "." << one.former;
  }
};

constexpr std::array kRenamed{
    Renamed{"upstreams.app", "connect", "connect_timeout"},
    Renamed{"upstreams.app", "answer", "response_timeout"},
    Renamed{"upstreams.app", "silent", "read_timeout"},
    Renamed{"upstreams.app", "total", "request_timeout"},
    Renamed{"upstreams.app", "keep_alive", "keepalive_connections"},
    Renamed{"upstreams.app", "idle_for", "keepalive_timeout"},
    Renamed{"upstreams.app", "failures", "max_consecutive_failures"},
    Renamed{"upstreams.app", "left_alone", "ejection_time"},
    Renamed{"upstreams.app", "host", "host_header"},
    Renamed{"upstreams.app.tls", "ca", "ca_file"},
    Renamed{"gateway.tls", "client_ca", "client_ca_file"},
    Renamed{"gateway.tls", "client_certificates", "client_auth"},
    Renamed{"gateway.tls.certificates[]", "certificate", "cert_file"},
    Renamed{"gateway.tls.certificates[]", "key", "key_file"},
    Renamed{"gateway", "head_within", "header_timeout"},
    Renamed{"gateway", "idle_for", "keepalive_timeout"},
    Renamed{"gateway", "requests_per_connection", "keepalive_requests"},
    Renamed{"gateway", "body_max", "max_body_size"},
    Renamed{"gateway", "request_line_max", "max_request_line_size"},
    Renamed{"gateway", "headers_max", "max_headers_size"},
    Renamed{"gateway", "header_lines", "max_headers_count"},
    Renamed{"gateway", "body_rate", "min_upload_rate"},
    Renamed{"gateway", "body_every", "upload_rate_interval"},
    Renamed{"gateway", "written_rate", "min_download_rate"},
    Renamed{"gateway", "written_within", "download_rate_interval"},
    Renamed{"gateway", "connections", "max_connections_per_worker"},
    Renamed{"gateway", "connections_per_address", "max_connections_per_ip"},
    Renamed{"gateway", "headers", "ratelimit_headers"},
    Renamed{"gateway", "forwarded", "forwarded_headers"},
    Renamed{"gateway.ratelimit_headers", "only_tightest", "most_restrictive_only"},
    Renamed{"gateway.ratelimit_headers", "below_percent", "threshold_percent"},
    Renamed{"gateway.tracing", "start", "generate"},
    Renamed{"clients", "address_from", "client_ip_header"},
    Renamed{"clients", "hops", "trusted_hops"},
    Renamed{"clients", "tokens", "jwt"},
    Renamed{"clients", "require", "require_auth"},
    Renamed{"clients", "preflight", "cors_preflight"},
    Renamed{"clients.jwt", "jwks", "jwks_file"},
    Renamed{"clients.jwt", "public_key", "public_key_file"},
    Renamed{"clients.jwt", "leeway", "clock_skew"},
    Renamed{"clients.geo", "country", "country_file"},
    Renamed{"clients.geo", "asn", "asn_file"},
    Renamed{"lists.allow[]", "who", "subject"},
    Renamed{"lists.allow[]", "until", "expires"},
    Renamed{"lists.deny[]", "who", "subject"},
    Renamed{"lists.deny[]", "until", "expires"},
    Renamed{"overrides[]", "who", "subject"},
    Renamed{"overrides[]", "until", "expires"},
    Renamed{"overrides[]", "factor", "multiplier"},
    Renamed{"", "rules_max", "max_rules"},
    Renamed{"", "ignore_case", "case_insensitive_paths"},
    Renamed{"", "ignore_parameters", "ignore_path_parameters"},
    Renamed{"max_rules", "all", "total"},
    Renamed{"rules_from", "every", "poll_interval"},
    Renamed{"rules_from", "last_good", "last_good_file"},
    Renamed{"drain", "within", "timeout"},
    Renamed{"access_log", "refusals_per_second", "max_rejected_per_second"},
    Renamed{"rules[]", "no_room", "on_table_full"},
    Renamed{"rules[]", "missing", "on_missing"},
    Renamed{"rules[]", "granularity", "bucket_width"},
    Renamed{"rules[]", "over", "action"},
    Renamed{"rules[]", "count_denied", "count_rejected"},
    Renamed{"rules[]", "scale", "thread_leases"},
    Renamed{"rules[].limit", "concurrent", "max_concurrent"},
    Renamed{"rules[].limit", "ttl", "slot_ttl"},
    Renamed{"rules[].limit", "granularity", "bucket_width"},
    Renamed{"rules[].action.queue", "waiting", "max_queued"},
    Renamed{"rules[].block", "for", "duration"},
    Renamed{"rules[].block", "after", "threshold"},
};

struct Step {
  std::string_view key;
  bool is_list = false;
};

std::vector<Step> steps_of(std::string_view section) {
  std::vector<Step> steps;
  while (!section.empty()) {
    const std::size_t dot = std::min(section.find('.'), section.size());
    std::string_view key = section.substr(0, dot);
    const bool is_list = key.ends_with("[]");
    if (is_list) key.remove_suffix(2);
    steps.push_back({.key = key, .is_list = is_list});
    section.remove_prefix(std::min(dot + 1, section.size()));
  }
  return steps;
}

// One line: {upstreams: {app: {connect: 1}}}.
std::string file_with(std::string_view section, std::string_view key, std::string_view value) {
  std::string text = fmt::format("{{{}: {}}}", key, value);
  const std::vector<Step> steps = steps_of(section);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    text = step->is_list ? fmt::format("{{{}: [{}]}}", step->key, text)
                         : fmt::format("{{{}: {}}}", step->key, text);
  }
  return text;
}

// The map that can stand behind a key, or as an item of its list.
const config::Section* map_in(const config::Shape& shape, bool of_list) {
  for (const config::Form& form : shape.forms) {
    if (of_list && form.items) return map_in(*form.items, false);
    if (!of_list && form.section != nullptr) return &form.section();
  }
  return nullptr;
}

// Null if the grammar has none there.
const config::Section* section_at(std::string_view path) {
  const config::Section* section = &configuration_section();
  for (const Step& step : steps_of(path)) {
    const config::Key* const key = section->find(step.key);
    if (key == nullptr && !section->others) return nullptr;
    section = map_in(key != nullptr ? key->shape : section->others->shape, step.is_list);
    if (section == nullptr) return nullptr;
  }
  return section;
}

std::vector<config::Mistake> mistakes_in(const std::string& text) {
  config::Diagnostics diagnostics;
  (void)read_configuration(text, "sluice.yaml", diagnostics);
  return diagnostics.sorted();
}

class FormerKey : public ::testing::TestWithParam<Renamed> {};

TEST_P(FormerKey, IsAnErrorThatNamesTheNewOne) {
  const Renamed& one = GetParam();
  const std::string text = file_with(one.section, one.former, "1");
  const std::size_t column = text.find(fmt::format("{{{}: 1}}", one.former)) + 2;
  const std::vector<config::Mistake> all = mistakes_in(text);
  const auto found = std::ranges::find_if(all, [&](const config::Mistake& mistake) {
    return mistake.severity == config::Severity::error && mistake.place.column == column &&
           mistake.place.line == 1;
  });
  ASSERT_NE(found, all.end()) << text;
  EXPECT_EQ(found->message,
            fmt::format("unknown key '{}' in {}", one.former, section_at(one.section)->name));
  EXPECT_EQ(found->remedy, fmt::format("it is called '{}' now", one.key));
}

INSTANTIATE_TEST_SUITE_P(OfTheConfiguration, FormerKey, ::testing::ValuesIn(kRenamed),
                         [](const auto& of) { return fmt::format("Number{}", of.index); });

using Names = std::set<std::tuple<std::string_view, std::string_view, std::string_view>>;

// Of one grammar: section, former name, key.
Names all_renamed(const config::Shape& shape) {
  Names names;
  for (const config::Section* section : config::sections_of(shape)) {
    for (const config::Key& key : section->keys) {
      for (const std::string_view former : key.formerly) {
        names.emplace(section->name, former, key.name);
      }
    }
  }
  return names;
}

// A key that is renamed without a row above is noticed here, and so is a row without a key.
TEST(FormerKeys, AreAllTested) {
  Names tested;
  for (const Renamed& one : kRenamed) {
    const config::Section* const section = section_at(one.section);
    ASSERT_NE(section, nullptr) << one;
    tested.emplace(section->name, one.former, one.key);
  }
  EXPECT_EQ(tested, all_renamed(configuration_shape()));
}

// The old name must not be another key of today: it would be read as that one.
TEST(FormerKeys, AreNoKeysOfToday) {
  for (const config::Section* section : config::sections_of(configuration_shape())) {
    for (const config::Key& key : section->keys) {
      for (const std::string_view former : key.formerly) {
        EXPECT_EQ(section->find(former), nullptr) << section->name << "." << former;
      }
    }
  }
}

// In a file of rules of its own the same keys are told the same.
TEST(FormerKeys, OfAFileOfRulesAreNamedThere) {
  std::size_t count = 0;
  for (const config::Key& key : rules::rules_file_section().keys) {
    for (const std::string_view former : key.formerly) {
      config::Diagnostics diagnostics;
      (void)rules::parse_rules_text(fmt::format("rules: []\n{}: 1\n", former), "rules.yaml",
                                    diagnostics);
      ASSERT_EQ(diagnostics.errors(), 1U) << diagnostics.text();
      EXPECT_EQ(diagnostics.sorted()[0].headline(),
                fmt::format("rules.yaml:2:1: unknown key '{}' in rules_file; it is called '{}' now",
                            former, key.name));
      ++count;
    }
  }
  EXPECT_EQ(count, 3U);
}

// Words that were values before.
TEST(FormerValues, AreErrorsThatNameTheNewOnes) {
  struct Case {
    std::string_view section;
    std::string_view key;
    std::string_view former;
    std::string_view remedy;
  };
  for (const Case& one :
       {Case{"upstreams.app", "balance", "hash", "write client_hash"},
        Case{"gateway", "ratelimit_headers", "[triplet]", "write ietf-03"},
        Case{"gateway.ratelimit_headers", "families", "[triplet]", "write ietf-03"},
        Case{"gateway.ratelimit_headers", "when", "on_refusal", "write on_rejection"},
        Case{"gateway.ratelimit_headers", "when", "below", "write below_threshold"},
        Case{"overrides[]", "multiplier", "2x", "write 2"},
        Case{"overrides[]", "multiplier", "0.5x", "write 0.5"}}) {
    const std::string text = file_with(one.section, one.key, one.former);
    std::vector<std::string> remedies;
    for (const config::Mistake& mistake : mistakes_in(text)) remedies.push_back(mistake.remedy);
    EXPECT_THAT(remedies, ::testing::Contains(one.remedy)) << text;
  }
}

}  // namespace
}  // namespace sluice::app
