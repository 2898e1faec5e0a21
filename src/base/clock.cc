#include <sluice/clock.h>

#include <ctime>

namespace sluice {
namespace {

Nanos read(clockid_t id) noexcept {
  timespec time{};
  clock_gettime(id, &time);
  return std::chrono::seconds{time.tv_sec} + Nanos{time.tv_nsec};
}

}  // namespace

Now SystemClock::now() const noexcept {
  const Nanos mono = read(CLOCK_MONOTONIC);
  return {.mono = MonoTime{mono}, .wall_offset = read(CLOCK_REALTIME) - mono};
}

}  // namespace sluice
