#include "sim/run.h"

#include "support/effort.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::sim {
namespace {

// Of a seed that is not known to fail; shards of the test take turns.
class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

// No limit is exceeded, nothing is lost, everything recovers; ./dev sim runs any number of them.
TEST_P(Seeds, HoldAllInvariants) {
  const auto count = testing::effort<std::uint64_t>(1, 15);
  for (std::uint64_t i = 0; i < count; ++i) {
    const RunOptions options{.seed = 1 + GetParam() * count + i};
    const RunResult result = run(options);
    ASSERT_FALSE(result.violation)
        << described(options, result) << "replay: ./dev sim --seeds 1 --verbose --seed "
        << options.seed;
    EXPECT_GE(result.decisions, 10'000U);
    EXPECT_GE(result.faults.size(), 5U) << "seed " << options.seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Many, Seeds, ::testing::Range<std::uint64_t>(0, 20));

// A failure that its seed does not repeat could not be looked into.
TEST(Runs, RepeatTheirHistory) {
  for (std::uint64_t seed = 1; seed <= testing::effort<std::uint64_t>(1, 5); ++seed) {
    const RunResult first = run({.seed = seed});
    EXPECT_EQ(run({.seed = seed}).hash, first.hash) << "seed " << seed;
    EXPECT_NE(run({.seed = seed + 1'000'000}).hash, first.hash);
  }
}

class Defects : public ::testing::TestWithParam<NamedDefect> {};

// docs/testing.md tells how many seeds each of them takes.
TEST_P(Defects, AreFound) {
  constexpr std::uint64_t kSeeds = 200;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (run({.seed = seed, .defect = GetParam().defect}).violation) return;
  }
  FAIL() << "no seed up to " << kSeeds << " found it";
}
INSTANTIATE_TEST_SUITE_P(All, Defects, ::testing::ValuesIn(kDefects), [](const auto& named) {
  std::string name{named.param.name};
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace sluice::sim
