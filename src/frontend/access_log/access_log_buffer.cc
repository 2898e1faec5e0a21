#include "frontend/access_log/access_log_buffer.h"

#include <cstring>
#include <utility>

namespace sluice::frontend {

bool AccessLogBuffer::append(std::string_view line) noexcept {
  if (filling_.size() - size_ < line.size()) {
    ++dropped_;
    return false;
  }
  if (!line.empty()) std::memcpy(filling_.data() + size_, line.data(), line.size());
  size_ += line.size();
  return true;
}

std::string_view AccessLogBuffer::flush() noexcept {
  std::swap(filling_, flushed_);
  return {flushed_.data(), std::exchange(size_, 0)};
}

}  // namespace sluice::frontend
