#include "rules/source/debounce.h"

#include "support/property.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <vector>

namespace sluice::rules {
namespace {

using namespace std::chrono_literals;

constexpr MonoTime kStart{1h};

TEST(Debounce, NothingIsDueBeforeAnythingHappened) {
  Debounce debounce{{}};
  EXPECT_TRUE(debounce.due() == Debounce::kNever);
  EXPECT_FALSE(debounce.take(kStart));
}

TEST(Debounce, ActsOnceWhenTheBurstIsOver) {
  Debounce debounce{{.quiet = 50ms, .at_most = 1s}};
  debounce.event(kStart);
  debounce.event(kStart + 40ms);
  EXPECT_FALSE(debounce.take(kStart + 89ms)) << "40 + 50 ms have not passed";
  EXPECT_TRUE(debounce.take(kStart + 90ms));
  EXPECT_FALSE(debounce.take(kStart + 2s)) << "nothing happened since";
}

TEST(Debounce, ABurstThatNeverEndsIsActedOnAtTheLimit) {
  Debounce debounce{{.quiet = 50ms, .at_most = 1s}};
  for (Nanos at{0}; at < 1s; at += 10ms) {
    debounce.event(kStart + at);
    ASSERT_FALSE(debounce.take(kStart + at)) << at.count();
  }
  EXPECT_TRUE(debounce.take(kStart + 1s));
}

// A writer may pause for longer than the quiet time; it closes its file when all is written.
TEST(Debounce, WaitsWhileAFileIsOpenForWriting) {
  Debounce debounce{{.quiet = 50ms, .at_most = 1s, .open_quiet = 5s, .open_at_most = 30s}};
  debounce.event(kStart, true);
  EXPECT_FALSE(debounce.take(kStart + 4s));
  debounce.event(kStart + 4s, true);
  EXPECT_FALSE(debounce.take(kStart + 8s));
  debounce.event(kStart + 8s, false);
  EXPECT_FALSE(debounce.take(kStart + 8s + 49ms));
  EXPECT_TRUE(debounce.take(kStart + 8s + 50ms)) << "it is closed";
}

TEST(Debounce, AFileThatIsNeverClosedIsActedOnAtTheLimit) {
  Debounce debounce{{.quiet = 50ms, .at_most = 1s, .open_quiet = 5s, .open_at_most = 30s}};
  debounce.event(kStart, true);
  EXPECT_FALSE(debounce.take(kStart + 5s - 1ns));
  EXPECT_TRUE(debounce.take(kStart + 5s)) << "nothing was written for a while";
  for (Nanos at{0}; at < 30s; at += 1s) {
    debounce.event(kStart + 1h + at, true);
    ASSERT_FALSE(debounce.take(kStart + 1h + at)) << at.count();
  }
  EXPECT_TRUE(debounce.take(kStart + 1h + 30s));
}

// Every event is followed by an action, not sooner than the quiet time after the last event before
// it unless the limit is reached, and never later than the limit.
TEST(Debounce, EveryEventIsActedOnInTime) {
  testing::check_property(100, [](std::vector<std::uint8_t> gaps_ms) {
    Debounce debounce{{.quiet = 50ms, .at_most = 200ms}};
    MonoTime now = kStart;
    MonoTime first{};
    bool pending = false;
    for (const std::uint8_t gap : gaps_ms) {
      const MonoTime event = now + Nanos{gap * 1'000'000LL};
      if (const MonoTime due = debounce.due(); due <= event) {
        RC_ASSERT(due <= first + 200ms);
        RC_ASSERT(due == now + 50ms || due == first + 200ms);
        RC_ASSERT(debounce.take(due));
        pending = false;
      }
      RC_ASSERT(!debounce.take(event));
      debounce.event(event);
      if (!pending) first = event;
      pending = true;
      now = event;
    }
    RC_ASSERT(gaps_ms.empty() || debounce.due() != Debounce::kNever);
  });
}

}  // namespace
}  // namespace sluice::rules
