// For tests: a table, a worker, trees as text, and descriptors in one line.
#pragma once

#include "config/diagnostics.h"
#include "engine/envoy_decider.h"
#include "rules/envoy_rules.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::engine {

class EnvoyFixture {
 public:
  struct Asked {
    std::vector<DescriptorEntry> entries;
    std::optional<EnvoyOverride> limit;
    std::optional<std::uint64_t> hits;
  };
  struct Answered {
    EnvoyCode overall = EnvoyCode::ok;
    std::vector<EnvoyStatus> statuses;
  };

  // A time since 1970 on the wall clock.
  static Now at(Nanos since_epoch) {
    constexpr Nanos kMono = std::chrono::hours{1000};
    return {.mono = MonoTime{kMono}, .wall_offset = since_epoch - kMono};
  }

  void use(std::string_view yaml, EnvoyModes modes = {}) {
    config::Diagnostics diagnostics;
    const std::vector<rules::EnvoyFile> files{{"f.yaml", std::string{yaml}}};
    auto rules = std::make_shared<const rules::EnvoyRules>(load_envoy_rules(files, diagnostics));
    EXPECT_EQ(diagnostics.text(), "");
    auto made = EnvoySnapshot::make(std::move(rules), modes, *limits, now);
    ASSERT_TRUE(made) << made.error().text();
    worker.use(*made);
  }

  // A domain of descriptors by key alone, each with what else stands in it.
  void use_keys(const std::vector<std::pair<std::string, std::string>>& keys,
                EnvoyModes modes = {}) {
    std::string yaml = "domain: d\ndescriptors:\n";
    for (const auto& [key, rest] : keys) yaml += "- {key: " + key + ", " + rest + "}\n";
    use(yaml, modes);
  }
  static std::string per(std::string_view unit, std::uint32_t amount) {
    return "rate_limit: {unit: " + std::string{unit} +
           ", requests_per_unit: " + std::to_string(amount) + "}";
  }

  static Asked with(std::string_view key) {
    return {.entries = {{key, "v"}}, .limit = {}, .hits = {}};
  }
  static Asked brought(std::string_view key, EnvoyOverride limit) {
    return {.entries = {{key, "v"}}, .limit = limit, .hits = {}};
  }
  static Asked hitting(std::string_view key, std::uint64_t hits) {
    return {.entries = {{key, "v"}}, .limit = {}, .hits = hits};
  }

  Result<void> try_to_ask(const std::vector<Asked>& all, std::uint32_t hits = 0,
                          std::string_view domain = "d") {
    std::vector<EnvoyDescriptor> descriptors;
    for (const Asked& one : all) {
      descriptors.push_back({.entries = one.entries, .limit = one.limit, .hits_addend = one.hits});
    }
    EXPECT_EQ(worker.should_rate_limit(
                  op, {.domain = domain, .descriptors = descriptors, .hits_addend = hits}, now),
              store::Completion::now);
    return op.result;
  }
  Answered ask(const std::vector<Asked>& all, std::uint32_t hits = 0,
               std::string_view domain = "d") {
    const Result<void> asked = try_to_ask(all, hits, domain);
    EXPECT_TRUE(asked) << asked.error().where;
    const auto statuses = op.response.statuses();
    return {.overall = op.response.overall_code(), .statuses = {statuses.begin(), statuses.end()}};
  }
  // One descriptor of one entry.
  EnvoyStatus ask(std::string_view key, std::string_view value, std::uint32_t hits = 0) {
    return ask({{.entries = {{key, value}}, .limit = {}, .hits = {}}}, hits).statuses.at(0);
  }

  Now now = at(std::chrono::seconds{1'700'000'000});
  std::unique_ptr<store::LocalStore> table =
      store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, now).value();
  std::unique_ptr<store::LocalLimits> limits = std::make_unique<store::LocalLimits>(*table);
  std::unique_ptr<store::LocalAuthority> local = std::make_unique<store::LocalAuthority>(*table, 1);
  EnvoyDecider worker{*local};
  EnvoyOp op;
};

}  // namespace sluice::engine
