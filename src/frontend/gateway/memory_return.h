// When freed memory is worth returning to the system.
//
// The allocator keeps memory that is freed below a block still in use. Returning it walks over all
// free memory and takes milliseconds on the worker's loop: so it waits until much is freed, and is
// rare. Pure; one thread.
#pragma once

#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace sluice::gateway {

class MemoryReturn {
 public:
  // Buffers of 32 KiB and the like: some 20 MiB of touched memory.
  static constexpr std::size_t kWorthReturning = 1024;
  static constexpr Nanos kEvery{std::chrono::minutes{1}};

  // Counts freed objects.
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
  std::size_t freed_ = 0;         // since the last return
  std::optional<MonoTime> last_;  // nothing: never
};

}  // namespace sluice::gateway
