// Buffers of one size that are used again and again.
//
// Large, since memory that is not touched costs nothing: of a buffer for a small request only the
// first page is ever there. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::gateway {

class BufferPool {
 public:
  static constexpr std::size_t kBytes = 32768;
  using Buffer = std::unique_ptr<char[]>;

  [[nodiscard]] Buffer take() {
    if (free_.empty()) return Buffer{new char[kBytes]};
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(Buffer buffer) {
    if (buffer != nullptr && free_.size() < kKept) free_.push_back(std::move(buffer));
  }

 private:
  // Of a flood that is over. A request in flight has two: enough for two thousand of them.
  static constexpr std::size_t kKept = 4096;

  std::vector<Buffer> free_;
};

}  // namespace sluice::gateway
