// When memory that was freed is worth returning to the system.
//
// The allocator keeps what is freed below something that is still in use. Returning it walks over
// all that is free and takes milliseconds on the worker's loop: so it waits until much was freed,
// and does it seldom. Pure; one thread.
#pragma once

#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace sluice::gateway {

class MemoryReturn {
 public:
  // Buffers of 32 KiB and the like: some 20 MiB of memory that was touched.
  static constexpr std::size_t kWorthReturning = 1024;
  static constexpr Nanos kEvery{std::chrono::minutes{1}};

  // So many objects more.
  void freed(std::size_t objects) noexcept { freed_ += objects; }
  // Enough was freed, now or a while ago.
  [[nodiscard]] bool is_due_some_time() const noexcept { return freed_ >= kWorthReturning; }
  // Whether to return it now; then nothing is left to return.
  [[nodiscard]] bool take(MonoTime now) noexcept {
    if (!is_due_some_time() || (last_ && now - *last_ < kEvery)) return false;
    freed_ = 0;
    last_ = now;
    return true;
  }

 private:
  std::size_t freed_ = 0;         // since the last time
  std::optional<MonoTime> last_;  // nothing: never
};

}  // namespace sluice::gateway
