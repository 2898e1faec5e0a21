// A worker's record of finished requests: counts decisions by rule, and writes each request's line
// of the access log. Shared by the worker's front ends, so that bounds on lines are the worker's.
//
// One thread. Nothing is allocated after construction, and counting takes no lock.
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
  // Requests cut off at shutdown are logged as well, if the log is read.
  ~RequestLog();

  // Sets where to count decisions, what to log of requests and where to. Earlier lines go to the
  // previous file, as far as it takes them. The snapshot outlives its use.
  void use(const ServerSnapshot& snapshot);

  void ended(const frontend::AccessRecord& record, Now now) noexcept {
    if (counters_ != nullptr && record.op != nullptr) counters_->count(shard_, *record.op);
    if (sink_.file != nullptr) log_->log(record, now.mono);
  }

  // Writes the pending lines. False: some wait for the reader; try again.
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
  std::optional<frontend::AccessLog> log_;  // nothing: never enabled
  std::string_view pending_;                // lines from the log
};

}  // namespace sluice::app
