// What a worker does when a request has ended: counts it, and writes its line of the access log.
//
// One thread. Nothing is allocated after it was made, and counting takes no lock.
#pragma once

#include "app/server/ejection_log.h"
#include "app/server/log_line.h"
#include "app/server/log_throttle.h"
#include "app/server/snapshot.h"
#include "frontend/access_log/access_log.h"
#include "frontend/metrics/decision_counters.h"
#include "frontend/metrics/request_meters.h"
#include "frontend/observer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::app {

class RequestObserver final : public frontend::Observer {
 public:
  // What the operator hears of, from any thread.
  struct Operator {
    Say say;
    std::function<void(std::string)> warn;  // the same line once only
    // Servers as complaints name them.
    std::function<void(Ejection)> ejected;
    std::function<void(std::string server)> recovered;
  };
  // The meters outlive it.
  RequestObserver(const frontend::RequestMeters& meters, metrics::Shard shard, Operator who);
  RequestObserver(const RequestObserver&) = delete;
  RequestObserver& operator=(const RequestObserver&) = delete;
  // What was cut at the very end has its line as well, if somebody reads it.
  ~RequestObserver() override;

  // Where decisions are counted, what is logged of requests and where to. What was logged so far
  // goes to the file before, as far as that takes it. The snapshot outlives its use.
  void use(const ServerSnapshot& snapshot);

  void ended(const frontend::AccessRecord& record, Now now) noexcept override;
  void decided(Nanos took) noexcept override { meters_.decided(shard_, took); }
  void server_failed(const frontend::ServerFailure& failure, Now now) noexcept override {
    throttle_.add(failure, now.mono);
  }
  void server_ejected(const frontend::ServerEjection& ejection) noexcept override;
  void server_recovered(const frontend::ServerPlace& place) noexcept override {
    who_.recovered(text_of(place));
  }
  void ignored_forwarding() noexcept override;

  // Writes the lines that there are. False: some wait for a reader, to be tried again.
  bool flush() noexcept;
  [[nodiscard]] const frontend::AccessLog* log() const noexcept { return log_ ? &*log_ : nullptr; }

 private:
  [[nodiscard]] std::shared_ptr<const frontend::AccessFormat> format() const;
  void log_to(const AccessLogSink& log);
  void lose_pending() noexcept;

  const frontend::RequestMeters& meters_;
  const metrics::Shard shard_;
  const frontend::DecisionCounters* counters_ = nullptr;  // null: decisions are not counted
  std::shared_ptr<const frontend::AccessFormat::Options> logged_;
  AccessLogSink sink_;                      // without a file: the log is off
  std::optional<frontend::AccessLog> log_;  // nothing: it was never on
  std::string_view pending_;                // of what the log gave out
  Operator who_;
  LogThrottle throttle_;
  bool has_warned_ = false;
};

}  // namespace sluice::app
