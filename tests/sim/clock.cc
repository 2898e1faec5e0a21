#include "sim/clock.h"

#include <sluice/int128.h>

#include <algorithm>
#include <stdexcept>

namespace sluice::sim {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

NodeClock::NodeClock(const World& world, const Start& start)
    : world_(world),
      mono_base_(start.mono),
      wall_offset_(start.wall.time_since_epoch() - start.mono.time_since_epoch()) {
  set_drift(start.drift_ppm);
  base_ = WorldTime{};
  mono_base_ = start.mono;
}

MonoTime NodeClock::mono_at(WorldTime time) const noexcept {
  const Int128 passed = (time - base_).count();
  return mono_base_ + Nanos{static_cast<std::int64_t>(passed * (kMillion + drift_ppm_) / kMillion)};
}

Now NodeClock::now() const noexcept {
  return {.mono = mono_at(world_.now()), .wall_offset = wall_offset_};
}

void NodeClock::set_drift(std::int64_t ppm) {
  if (ppm <= -kMillion) throw std::logic_error{"a clock that does not run forwards"};
  // Rounded down, so that a reading never goes back here.
  mono_base_ = mono_at(world_.now());
  base_ = world_.now();
  drift_ppm_ = ppm;
}

Nanos NodeClock::wall_error() const noexcept {
  return wall() - (kWorldBegins + world_.now().time_since_epoch());
}

WorldTime NodeClock::when(MonoTime mono) const noexcept {
  if (mono <= mono_base_) return world_.now();
  const Int128 ahead = (mono - mono_base_).count();
  const Int128 speed = kMillion + drift_ppm_;
  const WorldTime time =
      base_ + Nanos{static_cast<std::int64_t>((ahead * kMillion + speed - 1) / speed)};
  return std::max(time, world_.now());
}

}  // namespace sluice::sim
