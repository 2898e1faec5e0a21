#include "sim/run.h"

#include "support/effort.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace sluice::sim {
namespace {

using testing::effort;

void expect_to_hold(const RunOptions& options) {
  const RunResult result = run(options);
  ASSERT_FALSE(result.violation) << described(options, result)
                                 << "replay: ./dev sim --seeds 1 --verbose --seed " << options.seed
                                 << " --decisions " << options.decisions;
  EXPECT_GE(result.decisions, options.decisions);
  EXPECT_GE(result.faults.size(), 5U) << "seed " << options.seed;
}

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

// No limit is exceeded, nothing is lost, everything recovers. Short runs have the faults of long
// ones and a tenth of their requests; ./dev sim runs long ones, any number of them.
TEST_P(Seeds, HoldAllInvariants) {
  const auto count = effort<std::uint64_t>(1, 30);
  for (std::uint64_t i = 0; i < count; ++i) {
    expect_to_hold({.seed = 1 + GetParam() * count + i, .decisions = 1'000});
  }
}
INSTANTIATE_TEST_SUITE_P(Many, Seeds, ::testing::Range<std::uint64_t>(0, 10));

TEST(Runs, HoldAllInvariants) {
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(1, 6); ++seed) {
    expect_to_hold({.seed = seed});
  }
}

// A failure that its seed does not repeat could not be looked into.
TEST(Runs, RepeatTheirHistory) {
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(1, 10); ++seed) {
    const RunOptions options{.seed = seed, .decisions = 1'000};
    const RunResult first = run(options);
    EXPECT_EQ(run(options).hash, first.hash) << "seed " << seed;
    EXPECT_NE(run({.seed = seed + 1'000'000, .decisions = 1'000}).hash, first.hash);
  }
}

class Defects : public ::testing::TestWithParam<NamedDefect> {};

// docs/testing.md tells how many seeds each of them takes.
TEST_P(Defects, AreFound) {
  const auto seeds = effort<std::uint64_t>(0, 100);
  if (seeds == 0) GTEST_SKIP() << "takes long; see ./dev test --all";
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (run({.seed = seed, .defect = GetParam().defect}).violation) return;
  }
  FAIL() << "no seed up to " << seeds << " found it";
}
INSTANTIATE_TEST_SUITE_P(All, Defects, ::testing::ValuesIn(kDefects), [](const auto& named) {
  std::string name{named.param.name};
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace sluice::sim
