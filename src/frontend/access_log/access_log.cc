#include "frontend/access_log/access_log.h"

#include <chrono>
#include <utility>

namespace sluice::frontend {

std::optional<std::uint64_t> RefusalSampler::ask(MonoTime now) noexcept {
  const std::int64_t second =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (second > second_) {
    second_ = second;
    written_ = 0;
  }
  if (written_ >= per_second_) {
    ++suppressed_;
    return std::nullopt;
  }
  ++written_;
  return suppressed_ - std::exchange(told_, suppressed_);
}

AccessLog::AccessLog(std::shared_ptr<const AccessFormat> format, const Options& options)
    : format_(std::move(format)),
      sampler_(options.max_rejected_per_second),
      buffer_(options.buffer_bytes),
      line_(kLogLineBytesMax) {}

void AccessLog::log(const AccessRecord& record, MonoTime now) noexcept {
  std::uint64_t suppressed = 0;
  if (is_refusal(record)) {
    const std::optional<std::uint64_t> asked = sampler_.ask(now);
    if (!asked) return;
    suppressed = *asked;
  }
  const std::string_view line = format_->write(line_, record, suppressed);
  if (line.empty()) {
    ++too_long_;
  } else if (buffer_.append(line)) {
    ++written_;
  }
}

}  // namespace sluice::frontend
