// Lines of a log on their way to whoever writes them.
//
// Two buffers of fixed size: lines are added to one while the other is being written. When the
// writer is slower than the lines come, new ones are dropped and counted; nobody ever waits. One
// thread, but for the view that flush() gave, which another may read until the next flush().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::frontend {

class AccessLogBuffer {
 public:
  explicit AccessLogBuffer(std::size_t bytes) : filling_(bytes), flushed_(bytes) {}

  // False: there was no room, and it was dropped.
  bool append(std::string_view line) noexcept;

  // What came since the last time, to be written in full before the next.
  [[nodiscard]] std::string_view flush() noexcept;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Time to flush, rather than to wait for more.
  [[nodiscard]] bool is_half_full() const noexcept { return 2 * size_ >= filling_.size(); }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  std::vector<char> filling_;
  std::vector<char> flushed_;
  std::size_t size_ = 0;  // of filling_
  std::uint64_t dropped_ = 0;
};

}  // namespace sluice::frontend
