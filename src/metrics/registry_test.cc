#include "metrics/registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace sluice::metrics {
namespace {

using namespace std::chrono_literals;

constexpr Metric kDecisions{.name = "sluice_decisions_total",
                            .help = "Decisions.",
                            .labels = {"rule", "decision"},
                            .series_max = 3};
constexpr Metric kOpen{.name = "sluice_open", .kind = Kind::gauge, .help = "Open."};
constexpr Metric kTook{.name = "sluice_took_seconds", .kind = Kind::histogram, .help = "Took."};

const SeriesReading* find(const std::vector<FamilyReading>& read, std::string_view name,
                          const std::vector<std::string>& values = {}) {
  for (const FamilyReading& family : read) {
    if (family.name != name) continue;
    for (const SeriesReading& series : family.series) {
      if (series.values == values) return &series;
    }
  }
  return nullptr;
}

double value(const Registry& registry, std::string_view name,
             const std::vector<std::string>& values = {}) {
  const std::vector<FamilyReading> read = registry.read();
  const SeriesReading* const found = find(read, name, values);
  return found != nullptr ? found->value : -1;
}

// A reload registers everything anew, and counts must go on.
TEST(Registry, GivesTheSameCellsForTheSameLabels) {
  Registry registry{2};
  registry.counter(kDecisions, {"api", "allowed"}).add(0, 5);
  registry.counter(kDecisions, {"api", "allowed"}).add(1, 2);
  registry.counter(kDecisions, {"api", "rejected"}).add(1);
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"api", "allowed"}), 7);
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"api", "rejected"}), 1);
}

TEST(Registry, SumsWhatShardsSayOfAGauge) {
  Registry registry{3};
  const Gauge open = registry.gauge(kOpen);
  open.add(0, 4);
  open.add(0, -1);
  open.set(2, 10);
  EXPECT_EQ(value(registry, "sluice_open"), 13);
}

TEST(Registry, AsksOthersWhenItIsRead) {
  Registry registry{1};
  double kept = 1;
  registry.collect(kOpen, {}, [&kept] { return kept; });
  EXPECT_EQ(value(registry, "sluice_open"), 1);
  kept = 2;
  EXPECT_EQ(value(registry, "sluice_open"), 2);
}

// Every sum lands in some bucket, and bounds belong to the bucket below them.
TEST(Registry, PutsDurationsIntoTheirBuckets) {
  Registry registry{1};
  const DurationHistogram took = registry.histogram(kTook);
  std::vector<std::uint64_t> expected(kDurationBounds.size() + 1);
  for (std::size_t i = 0; i < kDurationBounds.size(); ++i) {
    took.record(0, kDurationBounds[i].at_most);
    took.record(0, kDurationBounds[i].at_most + 1ns);
    ++expected[i];
    ++expected[i + 1];
  }
  took.record(0, -5s);  // a clock that went back
  ++expected[0];
  took.record(0, Nanos{1h});
  ++expected.back();
  const std::vector<FamilyReading> read = registry.read();
  EXPECT_EQ(find(read, "sluice_took_seconds")->buckets, expected);
}

// Names of rules become labels: however many there are, memory stays bounded, and it shows.
TEST(Registry, CountsWhatFindsNoRoomAsOther) {
  Registry registry{1};
  for (int i = 0; i < 10; ++i) {
    registry.counter(kDecisions, {"rule-" + std::to_string(i), "allowed"}).add(0);
  }
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"rule-2", "allowed"}), 1);
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"rule-3", "allowed"}), -1);
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"_other", "_other"}), 7);
  EXPECT_EQ(value(registry, "sluice_metrics_overflow_total"), 7);
  registry.counter(kDecisions, {"rule-1", "allowed"}).add(0);
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"rule-1", "allowed"}), 2) << "has its place";
}

TEST(Registry, KnowsMetricsWithoutSeries) {
  Registry registry{1};
  registry.declare(kTook);
  ASSERT_EQ(registry.metrics().size(), 2U);
  EXPECT_EQ(registry.metrics()[1].name, "sluice_took_seconds");
  EXPECT_TRUE(registry.read()[1].series.empty());
}

// More series than one block of cells holds: none of them shares a cell with another.
TEST(Registry, KeepsSeriesApart) {
  Registry registry{2};
  constexpr Metric kMany{
      .name = "sluice_many_total", .help = "Many.", .labels = {"n"}, .series_max = 5000};
  for (int i = 0; i < 3000; ++i) {
    const auto amount = static_cast<std::uint64_t>(i);
    registry.counter(kMany, {std::to_string(i)}).add(0, amount);
    registry.counter(kMany, {std::to_string(i)}).add(1, amount);
    if (i % 100 == 0) registry.histogram(kTook).record(1, 1s);
  }
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(value(registry, "sluice_many_total", {std::to_string(i)}), 2 * i);
    if (i == 100) i = 2900;  // reading all is quadratic
  }
  const std::vector<FamilyReading> read = registry.read();
  EXPECT_EQ(find(read, "sluice_took_seconds")->value, 30);
}

// Workers count while another thread reads and a third one registers; nothing is lost.
TEST(Registry, LosesNothingWhileItIsReadAndExtended) {
  constexpr std::size_t kWorkers = 3;
  constexpr std::uint64_t kEach = 100'000;
  Registry registry{kWorkers};
  const Counter counter = registry.counter(kDecisions, {"api", "allowed"});
  const DurationHistogram took = registry.histogram(kTook);
  {
    std::vector<std::jthread> workers;
    for (std::size_t shard = 0; shard < kWorkers; ++shard) {
      workers.emplace_back([&, shard] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          counter.add(shard);
          took.record(shard, 1ms);
        }
      });
    }
    double before = 0;
    for (int i = 0; i < 100; ++i) {
      const double seen = value(registry, "sluice_decisions_total", {"api", "allowed"});
      EXPECT_GE(seen, before) << "a counter never goes back";
      before = seen;
      (void)registry.counter(kDecisions, {std::to_string(i), "rejected"});
    }
  }
  EXPECT_EQ(value(registry, "sluice_decisions_total", {"api", "allowed"}), kWorkers * kEach);
  const std::vector<FamilyReading> read = registry.read();
  EXPECT_EQ(find(read, "sluice_took_seconds")->buckets[4], kWorkers * kEach);
}

TEST(RegistryDeathTest, EndsTheProcessWhenANameMeansTwoThings) {
  constexpr Metric kOther{.name = "sluice_open", .help = "Open."};
  EXPECT_DEATH(
      {
        Registry registry{1};
        (void)registry.gauge(kOpen);
        (void)registry.counter(kOther);
      },
      "sluice_open: means two things");
}

}  // namespace
}  // namespace sluice::metrics
