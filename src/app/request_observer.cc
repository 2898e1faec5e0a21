#include "app/request_observer.h"

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <utility>

namespace sluice::app {

FileDescriptor open_log(const std::string& file) noexcept {
  constexpr int kHow = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  return FileDescriptor{file == "-" ? ::dup(STDOUT_FILENO) : ::open(file.c_str(), kHow, 0640)};
}

RequestObserver::RequestObserver(const AccessLogConfig& log, const frontend::RequestMeters& meters,
                                 metrics::Shard shard, Operator who)
    : meters_(meters),
      shard_(shard),
      form_(log.json ? frontend::LogForm::json : frontend::LogForm::text),
      complaints_(std::move(who.say)),
      warn_(std::move(who.warn)) {
  if (log.file.empty()) return;
  file_ = open_log(log.file);
  frontend::AccessFormat::Options usual;
  usual.form = form_;
  log_.emplace(std::make_shared<const frontend::AccessFormat>(std::move(usual)),
               frontend::AccessLog::Options{.refusals_per_second = log.refusals_per_second});
}

// The form stays what it was at the start: a file has one.
void RequestObserver::use(const EngineRoom::Content& content) {
  counters_ = content.counters.get();
  if (!log_ || content.logged == logged_) return;
  logged_ = content.logged;
  frontend::AccessFormat::Options options = *logged_;
  options.form = form_;
  log_->use(std::make_shared<const frontend::AccessFormat>(std::move(options)));
}

void RequestObserver::ended(const frontend::AccessRecord& record, Now now) noexcept {
  meters_.ended(shard_, record);
  if (counters_ != nullptr && record.op != nullptr) counters_->count(shard_, *record.op);
  if (log_) log_->log(record, now.mono);
}

void RequestObserver::ignored_forwarding() noexcept {
  const auto warn = std::exchange(warn_, nullptr);
  if (warn == nullptr) return;
  warn(
      "requests say for whom they were forwarded, but come from no trusted proxy, so all of them "
      "count as the proxy's own; if it is yours, name it in clients.trusted_proxies");
}

void RequestObserver::log_to(FileDescriptor file) noexcept {
  if (!log_) return;
  flush();
  file_ = std::move(file);
}

void RequestObserver::flush() noexcept {
  if (!log_ || log_->empty()) return;
  std::string_view lines = log_->flush();
  while (!lines.empty()) {
    const ssize_t written = ::write(file_.get(), lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    // A log that cannot be written must not stop the service: what is left is lost, and counted.
    if (written <= 0) return log_->lost(lines);
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace sluice::app
