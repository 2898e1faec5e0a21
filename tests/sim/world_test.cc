#include "sim/world.h"

#include "sim/clock.h"
#include "sim/process.h"
#include "sim/random.h"
#include "sim/task.h"
#include <sluice/time.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

constexpr WorldTime at(Nanos time) { return WorldTime{time}; }

// ---- chance -----------------------------------------------------------------------------------

TEST(Streams, DependOnSeedAndNameAlone) {
  Stream one{1, "delays"};
  Stream same{1, "delays"};
  Stream other_name{1, "faults"};
  Stream other_seed{2, "delays"};
  int equal_to_name = 0;
  int equal_to_seed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t drawn = one.below(1'000'000);
    EXPECT_EQ(drawn, same.below(1'000'000));
    equal_to_name += drawn == other_name.below(1'000'000) ? 1 : 0;
    equal_to_seed += drawn == other_seed.below(1'000'000) ? 1 : 0;
  }
  EXPECT_LT(equal_to_name, 3);
  EXPECT_LT(equal_to_seed, 3);
}

TEST(Streams, StayWithinTheirBounds) {
  Stream stream{7, "bounds"};
  bool least = false;
  bool most = false;
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t drawn = stream.between(-2, 2);
    ASSERT_GE(drawn, -2);
    ASSERT_LE(drawn, 2);
    least |= drawn == -2;
    most |= drawn == 2;
  }
  EXPECT_TRUE(least && most);
  EXPECT_EQ(stream.time_below(Nanos{0}), Nanos{0});
  EXPECT_EQ(stream.time_below(Nanos{1}), Nanos{0});
  EXPECT_FALSE(stream.happens(0));
  EXPECT_TRUE(stream.happens(1'000'000));
  (void)stream.between(INT64_MIN, INT64_MAX);
}

// Two parts that draw from one stream would do the same things at the same time.
TEST(Streams, AreGivenOnce) {
  World world{1};
  (void)world.random("network");
  EXPECT_THROW((void)world.random("network"), std::logic_error);
}

// ---- events -----------------------------------------------------------------------------------

TEST(Events, RunInTheOrderOfTheirTimesThenOfTheirScheduling) {
  World world{1};
  std::vector<int> order;
  world.at(at(20ms), [&] { order.push_back(3); });
  world.at(at(10ms), [&] { order.push_back(1); });
  world.at(at(10ms), [&] {
    order.push_back(2);
    EXPECT_EQ(world.now(), at(10ms));
    world.after(Nanos{0}, [&] { order.push_back(20); });
  });
  world.run_all();
  EXPECT_EQ(order, (std::vector{1, 2, 20, 3}));
  EXPECT_EQ(world.now(), at(20ms));
  EXPECT_EQ(world.events(), 4U);
}

TEST(Events, RunUpToAnInstant) {
  World world{1};
  int ran = 0;
  for (int i = 1; i <= 5; ++i) world.at(at(i * 10ms), [&] { ++ran; });
  world.run_until(at(30ms));
  EXPECT_EQ(ran, 3);
  world.run_for(5ms);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(world.now(), at(35ms));
  EXPECT_EQ(world.scheduled(), 2U);
}

TEST(Events, AreNeverInThePast) {
  World world{1};
  world.run_until(at(1s));
  EXPECT_THROW(world.at(at(999ms), [] {}), std::logic_error);
}

TEST(Events, CanBeCancelledOnce) {
  World world{1};
  int ran = 0;
  const World::Timer first = world.after(1ms, [&] { ran += 1; });
  EXPECT_TRUE(world.cancel(first));
  EXPECT_FALSE(world.cancel(first));
  EXPECT_FALSE(world.cancel({}));
  // Takes the place of the first one, which does not cancel it.
  const World::Timer second = world.after(1ms, [&] { ran += 10; });
  EXPECT_FALSE(world.cancel(first));
  world.run_all();
  EXPECT_EQ(ran, 10);
  EXPECT_FALSE(world.cancel(second));
}

TEST(Events, FreeWhatTheyHoldWhenTheyAreCancelled) {
  World world{1};
  const auto held = std::make_shared<int>(1);
  const World::Timer timer = world.after(1ms, [held] {});
  EXPECT_EQ(held.use_count(), 2);
  world.cancel(timer);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Events, ThatNeverEndAreReported) {
  World world{1};
  std::function<void()> again = [&] { world.after(1ms, [&] { again(); }); };
  again();
  EXPECT_THROW(world.run_all(1'000), std::logic_error);
}

TEST(Tasks, MoveWhatTheyCapture) {
  auto owned = std::make_unique<int>(5);
  int seen = 0;
  Task task{[owned = std::move(owned), &seen] { seen = *owned; }};
  Task moved = std::move(task);
  EXPECT_TRUE(static_cast<bool>(moved));
  moved();
  EXPECT_EQ(seen, 5);
  moved = Task{};
  EXPECT_FALSE(static_cast<bool>(moved));
}

// A history of events that schedule and cancel events by chance.
std::uint64_t random_history(std::uint64_t seed) {
  World world{seed};
  Stream stream = world.random("test");
  std::vector<World::Timer> timers;
  std::function<void()> act = [&] {
    for (std::uint64_t i = stream.below(3); i > 0; --i) {
      timers.push_back(world.after(stream.time_below(1ms), [&] { act(); }));
    }
    if (stream.below(4) == 0 && !timers.empty()) world.cancel(timers[stream.below(timers.size())]);
  };
  for (int i = 0; i < 20; ++i) act();
  for (int i = 0; i < 5'000 && world.step(); ++i) {
  }
  return world.history();
}

TEST(History, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(random_history(seed), random_history(seed)) << seed;
    EXPECT_NE(random_history(seed), random_history(seed + 100)) << seed;
  }
}

// So that a change of the hash or of the generator, which makes old seeds worthless, is noticed.
TEST(History, IsTheSameOnEveryMachine) {
  World world{42};
  world.note("text");
  world.note(std::uint64_t{7});
  world.after(1ms, [] {});
  world.run_all();
  EXPECT_EQ(world.history(), 11'668'074'202'773'134'374U);
  EXPECT_EQ((Stream{42, "name"}).below(1'000'000'000), 558'758'255U);
}

TEST(History, DependsOnWhatIsNoted) {
  const auto noted = [](std::uint64_t first, std::uint64_t second) {
    World world{1};
    world.note(first);
    world.note(second);
    return world.history();
  };
  EXPECT_NE(noted(1, 2), noted(2, 1));
  EXPECT_NE(noted(0, 0), noted(0, 1));
}

// ---- clocks -----------------------------------------------------------------------------------

TEST(NodeClocks, RunAtTheirOwnSpeed) {
  World world{1};
  const NodeClock right{world};
  const NodeClock fast{world, {.drift_ppm = 500}};
  const NodeClock slow{world, {.drift_ppm = -500}};
  const auto begin = std::array{right.now().mono, fast.now().mono, slow.now().mono};
  world.run_until(at(1'000s));
  EXPECT_EQ(right.now().mono - begin[0], Nanos{1'000s});
  EXPECT_EQ(fast.now().mono - begin[1], Nanos{1'000s + 500ms});
  EXPECT_EQ(slow.now().mono - begin[2], Nanos{1'000s - 500ms});
  EXPECT_EQ(fast.wall_error(), Nanos{500ms});
}

TEST(NodeClocks, BeginAnywhere) {
  World world{1};
  world.run_until(at(10s));
  // Also one that is made later shows what it would show by now.
  const NodeClock clock{world, {.mono = MonoTime{77h}, .wall = kWorldBegins - 3h}};
  EXPECT_EQ(clock.now().mono, MonoTime{77h + 10s});
  EXPECT_EQ(clock.wall(), kWorldBegins - 3h + 10s);
  EXPECT_EQ(clock.wall_error(), Nanos{-3h});
}

TEST(NodeClocks, StepTheWallClockAlone) {
  World world{1};
  NodeClock clock{world};
  const Now before = clock.now();
  clock.step_wall(-61s);
  EXPECT_EQ(clock.now().mono, before.mono);
  EXPECT_EQ(clock.wall(), before.wall() - 61s);
}

// Whatever happens to the speed, and also within one nanosecond of it.
TEST(NodeClocks, NeverLetTheMonotonicClockGoBack) {
  World world{3};
  Stream stream = world.random("test");
  NodeClock clock{world};
  MonoTime latest = clock.now().mono;
  for (int i = 0; i < 10'000; ++i) {
    if (stream.below(3) == 0) clock.set_drift(stream.between(-999'999, 1'000'000));
    if (stream.below(3) == 0) clock.step_wall(Nanos{stream.between(-1'000'000, 1'000'000)});
    world.run_for(Nanos{stream.between(0, 3)});
    ASSERT_GE(clock.now().mono, latest);
    latest = clock.now().mono;
  }
  EXPECT_THROW(clock.set_drift(-1'000'000), std::logic_error);
}

// The first instant at which the clock shows a time: not one nanosecond earlier.
TEST(NodeClocks, KnowWhenTheyWillShowATime) {
  World world{3};
  Stream stream = world.random("test");
  for (int i = 0; i < 1'000; ++i) {
    NodeClock clock{world,
                    {.mono = MonoTime{Nanos{stream.between(1, 1'000'000)}},
                     .drift_ppm = stream.between(-900'000, 900'000)}};
    const MonoTime wanted = clock.now().mono + Nanos{stream.between(1, 1'000'000'000)};
    const WorldTime when = clock.when(wanted);
    world.run_until(when - Nanos{1});
    ASSERT_LT(clock.now().mono, wanted);
    world.run_until(when);
    ASSERT_GE(clock.now().mono, wanted);
    ASSERT_EQ(clock.when(wanted), world.now());
  }
}

// ---- processes --------------------------------------------------------------------------------

class Processes : public ::testing::Test {
 protected:
  World world_{1};
  Process process_{world_, "node", {.drift_ppm = 100'000}};
  std::vector<int> ran_;

  auto push(int number) {
    return [this, number] { ran_.push_back(number); };
  }
};

TEST_F(Processes, WaitOnTheirOwnClocks) {
  process_.after(1'100ms, push(1));
  world_.run_until(at(1s - Nanos{1}));
  EXPECT_TRUE(ran_.empty());
  world_.run_until(at(1s));
  EXPECT_EQ(ran_.size(), 1U);
}

TEST_F(Processes, DoLaterWhatCameDueDuringAPause) {
  process_.after(300ms, push(3));
  process_.after(100ms, push(1));
  process_.after(200ms, push(2));
  const Process::Timer cancelled = process_.after(250ms, push(9));
  process_.after(9s, push(4));
  process_.pause();
  world_.run_until(at(5s));
  EXPECT_TRUE(ran_.empty());
  EXPECT_TRUE(process_.cancel(cancelled));
  process_.resume();
  world_.run_for(Nanos{0});
  EXPECT_EQ(ran_, (std::vector{1, 2, 3}));
  world_.run_all();
  EXPECT_EQ(ran_, (std::vector{1, 2, 3, 4}));
}

// What runs first after a pause may pause again.
TEST_F(Processes, PauseAgainBeforeAllIsDone) {
  process_.after(1ms, [this] {
    ran_.push_back(1);
    process_.pause();
  });
  process_.after(2ms, push(2));
  process_.pause();
  world_.run_for(1s);
  process_.resume();
  world_.run_for(1s);
  EXPECT_EQ(ran_, std::vector{1});
  process_.resume();
  world_.run_for(1s);
  EXPECT_EQ(ran_, (std::vector{1, 2}));
}

TEST_F(Processes, ForgetEverythingInACrash) {
  const Process::Timer before = process_.after(1s, push(1));
  process_.pause();
  process_.after(0s, push(2));
  world_.run_for(10ms);
  process_.crash();
  EXPECT_FALSE(process_.is_alive());
  process_.after(1ms, push(3));
  process_.restart();
  EXPECT_TRUE(process_.is_running());
  EXPECT_EQ(process_.incarnation(), 2U);
  process_.after(1ms, push(4));
  EXPECT_FALSE(process_.cancel(before));
  world_.run_all();
  EXPECT_EQ(ran_, std::vector{4});
}

}  // namespace
}  // namespace sluice::sim
