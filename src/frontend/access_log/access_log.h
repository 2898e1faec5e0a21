// A worker's access log: which requests are logged, in which format, and the lines to be written.
//
// An attack must not flood the log: at most a fixed number of rejections per second is written, and
// the next line written says how many were not. One thread. After construction nothing allocates,
// and nothing blocks.
#pragma once

#include "frontend/access_log/access_log_buffer.h"
#include "frontend/access_log/access_record.h"
#include <sluice/time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::frontend {

// At most so many in each second of a monotonic clock.
class RefusalSampler {
 public:
  explicit RefusalSampler(std::uint32_t per_second) noexcept : per_second_(per_second) {}

  // Nothing: do not write this one. Else how many were suppressed since the last written one.
  [[nodiscard]] std::optional<std::uint64_t> ask(MonoTime now) noexcept;

  [[nodiscard]] std::uint64_t suppressed() const noexcept { return suppressed_; }  // in total
  void use(std::uint32_t per_second) noexcept { per_second_ = per_second; }

 private:
  std::uint32_t per_second_;
  std::int64_t second_ = -1;
  std::uint32_t written_ = 0;  // in this second
  std::uint64_t suppressed_ = 0;
  std::uint64_t told_ = 0;  // of those, already logged
};

class AccessLog {
 public:
  struct Options {
    std::uint32_t max_rejected_per_second = 100;
    std::size_t buffer_bytes = 256U << 10U;  // each of two
  };

  AccessLog(std::shared_ptr<const AccessFormat> format, const Options& options);

  // For requests from now on.
  void use(std::shared_ptr<const AccessFormat> format) noexcept { format_ = std::move(format); }
  void write_refusals(std::uint32_t per_second) noexcept { sampler_.use(per_second); }

  // At the end of a request, before its op is settled.
  void log(const AccessRecord& record, MonoTime now) noexcept;

  // The lines to write; see AccessLogBuffer.
  [[nodiscard]] std::string_view flush() noexcept { return buffer_.flush(); }
  [[nodiscard]] bool empty() const noexcept { return buffer_.empty(); }
  [[nodiscard]] bool is_half_full() const noexcept { return buffer_.is_half_full(); }

  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t suppressed() const noexcept { return sampler_.suppressed(); }
  [[nodiscard]] std::uint64_t dropped() const noexcept {
    return too_long_ + buffer_.dropped() + lost_;
  }

  // Lines from flush() that could not be written.
  void lost(std::string_view lines) noexcept {
    const auto count = static_cast<std::uint64_t>(std::ranges::count(lines, '\n'));
    lost_ += count;
    written_ -= count;
  }

 private:
  std::shared_ptr<const AccessFormat> format_;
  RefusalSampler sampler_;
  AccessLogBuffer buffer_;
  std::vector<char> line_;
  std::uint64_t written_ = 0;
  std::uint64_t too_long_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace sluice::frontend
