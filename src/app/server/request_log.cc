#include "app/server/request_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

namespace sluice::app {
namespace {

// Time for readers at shutdown, for all workers together.
constexpr Nanos kLastLines{std::chrono::seconds{1}};

}  // namespace

Parsed<AccessLogSink> open_access_log(const AccessLogConfig& config, const AccessLogSink& before) {
  if (config.file.empty()) return AccessLogSink{.config = config, .file = nullptr};
  if (before.file != nullptr && before.file->is_open_at(config.file)) {
    return AccessLogSink{.config = config, .file = before.file};
  }
  std::shared_ptr<LogFile> file = LogFile::open(config.file);
  if (file != nullptr) return AccessLogSink{.config = config, .file = std::move(file)};
  const int why = errno;
  const char* const words = why == ENXIO ? "no process reads from it" : std::strerror(why);
  return mistake(fmt::format("cannot open {}: {}", config.file, words),
                 why == ENXIO ? "start the reader first"
                              : "name a file in a folder that exists and may be written");
}

// The rest of a partly written line has to be written, too, after all others.
RequestLog::~RequestLog() {
  if (sink_.file == nullptr) return;
  bool is_all = false;
  do {
    is_all = flush();
    const LogFile::Written written = sink_.file->write_within(pending_, kLastLines);
    pending_.remove_prefix(written.bytes);
  } while (!is_all && pending_.empty());
  lose_pending();
}

void RequestLog::use(const ServerSnapshot& snapshot) {
  counters_ = snapshot.counters.get();
  const bool has_other_fields = snapshot.logged != logged_;
  logged_ = snapshot.logged;
  if (snapshot.access_log != sink_) {
    log_to(snapshot.access_log);
  } else if (has_other_fields && log_) {
    log_->use(format());
  }
}

// The fields follow the rules, the form follows the file.
std::shared_ptr<const frontend::AccessFormat> RequestLog::format() const {
  frontend::AccessFormat::Options options;
  if (logged_ != nullptr) options = *logged_;
  options.form = sink_.config.json ? frontend::LogForm::json : frontend::LogForm::text;
  return std::make_shared<const frontend::AccessFormat>(std::move(options));
}

void RequestLog::log_to(const AccessLogSink& log) {
  flush();
  sink_ = log;
  if (sink_.file == nullptr) return lose_pending();
  const std::uint32_t refusals = sink_.config.max_rejected_per_second;
  if (!log_) {
    log_.emplace(format(), frontend::AccessLog::Options{.max_rejected_per_second = refusals});
    return;
  }
  log_->use(format());
  log_->write_refusals(refusals);
}

bool RequestLog::flush() noexcept {
  if (sink_.file == nullptr) return true;
  while (true) {
    if (pending_.empty()) {
      if (log_->empty()) return true;
      pending_ = log_->flush();
    }
    const LogFile::Written written = sink_.file->write(pending_);
    pending_.remove_prefix(written.bytes);
    if (pending_.empty()) continue;
    if (!written.failed) return false;
    lose_pending();
  }
}

// A log that cannot be written must not stop the service: its lines are lost, and counted.
void RequestLog::lose_pending() noexcept {
  if (!pending_.empty()) log_->lost(std::exchange(pending_, {}));
}

}  // namespace sluice::app
