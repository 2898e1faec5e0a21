// The clocks of one node: they run at a speed of their own and begin anywhere.
//
// The monotonic clock drifts and never steps. The wall clock is the monotonic one and an offset,
// which steps when an operator or a time service sets it.
#pragma once

#include "sim/world.h"
#include <sluice/clock.h>
#include <sluice/time.h>

#include <cstdint>

namespace sluice::sim {

// 2026-01-01T00:00:00Z: what a clock shows that is right, when the world begins.
inline constexpr WallTime kWorldBegins{std::chrono::seconds{1'767'225'600}};

// One thread. The world outlives it.
class NodeClock final : public Clock {
 public:
  struct Start {
    MonoTime mono{Nanos{1}};  // when the world begins; a machine counts from when it was booted
    WallTime wall = kWorldBegins;
    std::int64_t drift_ppm = 0;  // above -1'000'000; positive is too fast
  };

  explicit NodeClock(const World& world) : NodeClock(world, Start{}) {}
  // Shows what it would show if it had run since the world began.
  NodeClock(const World& world, const Start& start);

  [[nodiscard]] Now now() const noexcept override;
  [[nodiscard]] WallTime wall() const noexcept { return now().wall(); }

  // From now on.
  void set_drift(std::int64_t ppm);
  // Forwards or backwards; the monotonic clock does not notice.
  void step_wall(Nanos by) noexcept { wall_offset_ += by; }
  // How far the wall clock is ahead of the right time.
  [[nodiscard]] Nanos wall_error() const noexcept;

  // The first instant at which the monotonic clock shows this or more, if its drift stays; never
  // one that has passed.
  [[nodiscard]] WorldTime when(MonoTime mono) const noexcept;

 private:
  [[nodiscard]] MonoTime mono_at(WorldTime time) const noexcept;

  const World& world_;
  WorldTime base_{};  // where the drift began to count
  MonoTime mono_base_;
  Nanos wall_offset_;
  std::int64_t drift_ppm_ = 0;
};

}  // namespace sluice::sim
