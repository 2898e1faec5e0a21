// Nothing on the way to a limit allocates. A program of its own, since it counts every `new`.
#include "rules/envoy_rules.h"
#include "support/counted_new.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sluice::rules {
namespace {

TEST(EnvoyMatch, DoesNotAllocate) {
  config::Diagnostics diagnostics;
  const std::vector<EnvoyFile> files{{"f",
                                      "domain: d\ndescriptors:\n- key: svc\n  descriptors:\n"
                                      "  - {key: op, value: get*item, rate_limit: {unit: day}}\n"}};
  const EnvoyRules rules = load_envoy_rules(files, diagnostics);
  const std::vector<DescriptorEntry> deep{
      {"svc", "x"}, {"op", "get-a-very-long-name-that-no-small-string-can-hold-item"}};
  const std::vector<DescriptorEntry> none{{"svc", "x"}, {"other", "y"}};

  const std::uint64_t before = sluice::testing::allocations();
  const EnvoyLimit* found = rules.match("d", deep);
  const EnvoyLimit* missed = rules.match("d", none);
  const std::uint64_t after = sluice::testing::allocations();

  EXPECT_EQ(after, before);
  EXPECT_NE(found, nullptr);
  EXPECT_EQ(missed, nullptr);
}

}  // namespace
}  // namespace sluice::rules
