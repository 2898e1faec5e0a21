#include "app/request_observer.h"

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
                                 metrics::Shard shard, std::function<void(std::string)> say)
    : meters_(meters), shard_(shard), complaints_(std::move(say)) {
  if (log.file.empty()) return;
  file_ = open_log(log.file);
  log_.emplace(std::make_shared<const frontend::AccessFormat>(frontend::AccessFormat::Options{
                   .form = log.json ? frontend::LogForm::json : frontend::LogForm::text,
                   .headers = {},
                   .secrets = {}}),
               frontend::AccessLog::Options{.refusals_per_second = log.refusals_per_second});
}

void RequestObserver::ended(const frontend::AccessRecord& record, Now now) noexcept {
  meters_.ended(shard_, record);
  if (counters_ != nullptr && record.op != nullptr) counters_->count(shard_, *record.op);
  if (log_) log_->log(record, now.mono);
}

void RequestObserver::log_to(FileDescriptor file) noexcept {
  if (!log_) return;
  flush();
  file_ = std::move(file);
}

void RequestObserver::flush() noexcept {
  if (!log_ || log_->empty()) return;
  // A log that cannot be written must not stop the service.
  const std::string_view lines = log_->flush();
  (void)!::write(file_.get(), lines.data(), lines.size());
}

}  // namespace sluice::app
