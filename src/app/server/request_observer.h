// Called when a request of one front end has ended: counts it under the front end's name, and hands
// it to the worker's log. Reports failures of servers to the operator.
//
// One thread. Nothing is allocated after construction, and counting takes no lock.
#pragma once

#include "app/server/ejection_log.h"
#include "app/server/log_line.h"
#include "app/server/log_throttle.h"
#include "app/server/request_log.h"
#include "frontend/metrics/request_meters.h"
#include "frontend/observer.h"

#include <functional>
#include <string>

namespace sluice::app {

class RequestObserver final : public frontend::Observer {
 public:
  // Reports to the operator, from any thread.
  struct Operator {
    Say say;
    std::function<void(std::string)> warn;  // each line once only
    // As LogThrottle names servers.
    std::function<void(Ejection)> ejected;
    std::function<void(std::string server)> recovered;
  };
  // Log and meters outlive it.
  RequestObserver(RequestLog& log, const frontend::RequestMeters& meters, metrics::Shard shard,
                  Operator who);
  RequestObserver(const RequestObserver&) = delete;
  RequestObserver& operator=(const RequestObserver&) = delete;
  ~RequestObserver() override = default;

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

 private:
  RequestLog& log_;
  const frontend::RequestMeters& meters_;
  const metrics::Shard shard_;
  Operator who_;
  LogThrottle throttle_;
  bool has_warned_ = false;
};

}  // namespace sluice::app
