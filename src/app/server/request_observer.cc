#include "app/server/request_observer.h"

#include "base/duration.h"
#include "base/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace sluice::app {
namespace {

// What readers have at the end of the server, all workers together.
constexpr Nanos kLastLines{std::chrono::seconds{1}};

}  // namespace

Parsed<AccessLogSink> open_access_log(const AccessLogConfig& config) {
  if (config.file.empty()) return AccessLogSink{.config = config, .file = nullptr};
  std::shared_ptr<LogFile> file = LogFile::open(config.file);
  if (file != nullptr) return AccessLogSink{.config = config, .file = std::move(file)};
  const int why = errno;
  const char* const words = why == ENXIO ? "no process reads from it" : std::strerror(why);
  return mistake(fmt::format("cannot open {}: {}", config.file, words),
                 why == ENXIO ? "start the reader first"
                              : "name a file in a folder that exists and may be written");
}

RequestObserver::RequestObserver(const frontend::RequestMeters& meters, metrics::Shard shard,
                                 Operator who)
    : meters_(meters), shard_(shard), who_(std::move(who)), throttle_(who_.say) {}

// Also the rest of a line that was begun has to go, when all others are with the reader.
RequestObserver::~RequestObserver() {
  if (sink_.file == nullptr) return;
  bool is_all = false;
  do {
    is_all = flush();
    const LogFile::Written written = sink_.file->write_within(pending_, kLastLines);
    pending_.remove_prefix(written.bytes);
  } while (!is_all && pending_.empty());
  lose_pending();
}

void RequestObserver::use(const ServerSnapshot& snapshot) {
  counters_ = snapshot.counters.get();
  const bool has_other_fields = snapshot.logged != logged_;
  logged_ = snapshot.logged;
  if (snapshot.access_log != sink_) {
    log_to(snapshot.access_log);
  } else if (has_other_fields && log_) {
    log_->use(format());
  }
}

// What is logged goes with the rules, the form with the file.
std::shared_ptr<const frontend::AccessFormat> RequestObserver::format() const {
  frontend::AccessFormat::Options options;
  if (logged_ != nullptr) options = *logged_;
  options.form = sink_.config.json ? frontend::LogForm::json : frontend::LogForm::text;
  return std::make_shared<const frontend::AccessFormat>(std::move(options));
}

void RequestObserver::ended(const frontend::AccessRecord& record, Now now) noexcept {
  meters_.ended(shard_, record);
  if (counters_ != nullptr && record.op != nullptr) counters_->count(shard_, *record.op);
  if (sink_.file != nullptr) log_->log(record, now.mono);
}

void RequestObserver::ignored_forwarding() noexcept {
  if (std::exchange(has_warned_, true)) return;
  who_.warn(
      "requests have forwarding headers but come from no trusted proxy, so they count by the "
      "address of the proxy; if it is yours, add it to clients.trusted_proxies");
}

void RequestObserver::server_ejected(const frontend::ServerEjection& ejection) noexcept {
  who_.ejected({.upstream = std::string{ejection.place.upstream},
                .server = text_of(ejection.place),
                .text = fmt::format("ejected for {} after {}", format_duration(ejection.lasts),
                                    counted(ejection.failures, "consecutive failure")),
                .lasts = ejection.lasts});
}

void RequestObserver::log_to(const AccessLogSink& log) {
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

bool RequestObserver::flush() noexcept {
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

// A log that cannot be written must not stop the service: what is left is lost, and counted.
void RequestObserver::lose_pending() noexcept {
  if (!pending_.empty()) log_->lost(std::exchange(pending_, {}));
}

}  // namespace sluice::app
