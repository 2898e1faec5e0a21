// What a worker keeps of requests that have ended: decisions are counted by rule, and each request
// has its line of the access log. Shared by the front ends of the worker, so that bounds on lines
// are those of the worker.
//
// One thread. Nothing is allocated after it was made, and counting takes no lock.
#pragma once

#include "app/server/snapshot.h"
#include "frontend/access_log/access_log.h"
#include "frontend/access_log/access_record.h"
#include "frontend/metrics/decision_counters.h"
#include "metrics/registry.h"
#include <sluice/time.h>

#include <memory>
#include <optional>
#include <string_view>

namespace sluice::app {

class RequestLog {
 public:
  explicit RequestLog(metrics::Shard shard) noexcept : shard_(shard) {}
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;
  // What was cut at the very end has its line as well, if somebody reads it.
  ~RequestLog();

  // Where decisions are counted, what is logged of requests and where to. What was logged so far
  // goes to the file before, as far as that takes it. The snapshot outlives its use.
  void use(const ServerSnapshot& snapshot);

  void ended(const frontend::AccessRecord& record, Now now) noexcept {
    if (counters_ != nullptr && record.op != nullptr) counters_->count(shard_, *record.op);
    if (sink_.file != nullptr) log_->log(record, now.mono);
  }

  // Writes the lines that there are. False: some wait for a reader, to be tried again.
  bool flush() noexcept;
  [[nodiscard]] const frontend::AccessLog* log() const noexcept { return log_ ? &*log_ : nullptr; }

 private:
  [[nodiscard]] std::shared_ptr<const frontend::AccessFormat> format() const;
  void log_to(const AccessLogSink& log);
  void lose_pending() noexcept;

  const metrics::Shard shard_;
  const frontend::DecisionCounters* counters_ = nullptr;  // null: decisions are not counted
  std::shared_ptr<const frontend::AccessFormat::Options> logged_;
  AccessLogSink sink_;                      // without a file: the log is off
  std::optional<frontend::AccessLog> log_;  // nothing: it was never on
  std::string_view pending_;                // of what the log gave out
};

}  // namespace sluice::app
