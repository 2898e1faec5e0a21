// Lines of a log on their way to the writer.
//
// Two buffers of fixed size: lines are added to one while the other is written. If the writer is
// too slow, new lines are dropped and counted; no thread ever waits. One thread, except for the
// view from flush(), which another may read until the next flush().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::frontend {

class AccessLogBuffer {
 public:
  explicit AccessLogBuffer(std::size_t bytes) : filling_(bytes), flushed_(bytes) {}

  // False: there was no room, and the line was dropped.
  bool append(std::string_view line) noexcept;

  // The lines since the last flush, to be written in full before the next.
  [[nodiscard]] std::string_view flush() noexcept;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Flush now, rather than wait for more.
  [[nodiscard]] bool is_half_full() const noexcept { return 2 * size_ >= filling_.size(); }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  std::vector<char> filling_;
  std::vector<char> flushed_;
  std::size_t size_ = 0;  // of filling_
  std::uint64_t dropped_ = 0;
};

}  // namespace sluice::frontend
