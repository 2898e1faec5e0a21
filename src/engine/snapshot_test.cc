// From the text of rules to a snapshot that requests are decided by.

#include "engine/snapshot.h"

#include "config/diagnostics.h"
#include "engine/engine_fixture.h"
#include "rules/parse_rules.h"
#include "support/cpu_time.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace sluice::engine {
namespace {

// No two of them have the same path, tier or amount.
std::string different_rules(int count) {
  std::string yaml = "rules:\n";
  for (int i = 1; i <= count; ++i) {
    const std::string number = std::to_string(i);
    yaml += "  - name: rule-" + number + "\n    match: {path: /" + number + "}\n    group: g" +
            number + "\n    per: [ip]\n    limit: " + number + "/1h\n";
  }
  return yaml;
}

// Everything between an edit and the first answer. Ten times as many rules take about ten times as
// long: were each limit compared with all the others, it would be a hundred times.
TEST(Snapshot, TakesATimeThatGrowsWithTheNumberOfRules) {
  const Now now{.mono = MonoTime{std::chrono::hours{1000}},
                .wall_offset = std::chrono::seconds{1'700'000'000}};
  const auto seconds_for = [&](int count) {
    const std::string yaml = different_rules(count);
    return testing::least_cpu_seconds(3, [&] {
      const auto table =
          store::LocalStore::open({.mapping = {.memory = std::size_t{64} << 20U}}, now).value();
      store::LocalLimits limits{*table};
      config::Diagnostics diagnostics;
      rules::RuleList list = rules::parse_rules_text(yaml, "f", diagnostics);
      ASSERT_EQ(diagnostics.text(), "");
      const auto made = Snapshot::make(std::move(list), limits, now);
      ASSERT_TRUE(made) << made.error().text();
      ASSERT_EQ(table->status().limits_used, static_cast<std::size_t>(count));
    });
  };
  const double few = seconds_for(1'000);
  EXPECT_LT(seconds_for(10'000), 30 * few);
}

}  // namespace
}  // namespace sluice::engine
