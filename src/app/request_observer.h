// What a worker does when a request has ended: counts it, and writes its line of the access log.
//
// One thread. Nothing is allocated after it was made, and counting takes no lock.
#pragma once

#include "app/complaints.h"
#include "app/engine_room.h"
#include "app/serve_configuration.h"
#include "base/file_descriptor.h"
#include "frontend/access_log.h"
#include "frontend/decision_counters.h"
#include "frontend/gateway/gateway.h"
#include "frontend/request_meters.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace sluice::app {

// For appending; `-` is standard output. Holds nothing if that fails: errno tells why.
[[nodiscard]] FileDescriptor open_log(const std::string& file) noexcept;

class RequestObserver final : public gateway::Observer {
 public:
  // What the operator hears of, from any thread.
  struct Operator {
    std::function<void(std::string)> say;
    std::function<void(std::string)> warn;  // the same line once only
  };
  // The meters outlive it.
  RequestObserver(const AccessLogConfig& log, const frontend::RequestMeters& meters,
                  metrics::Shard shard, Operator who);
  RequestObserver(const RequestObserver&) = delete;
  RequestObserver& operator=(const RequestObserver&) = delete;
  // What was cut at the very end has its line as well.
  ~RequestObserver() override { flush(); }

  [[nodiscard]] bool can_log() const noexcept { return !log_ || static_cast<bool>(file_); }
  // What goes with the rules in force: who counts decisions, and what is logged of requests. Cheap
  // when nothing has changed.
  void use(const EngineRoom::Content& content);
  // What was logged so far goes to the file before.
  void log_to(FileDescriptor file) noexcept;

  void ended(const frontend::AccessRecord& record, Now now) noexcept override;
  void decided(Nanos took) noexcept override { meters_.decided(shard_, took); }
  void server_failed(const gateway::ServerFailure& failure, Now now) noexcept override {
    complaints_.add(failure, now.mono);
  }
  void ignored_forwarding() noexcept override;

  // Writes the lines that there are.
  void flush() noexcept;
  [[nodiscard]] const frontend::AccessLog* log() const noexcept { return log_ ? &*log_ : nullptr; }

 private:
  const frontend::RequestMeters& meters_;
  const metrics::Shard shard_;
  const frontend::DecisionCounters* counters_ = nullptr;  // null: decisions are not counted
  const frontend::LogForm form_;
  std::shared_ptr<const frontend::AccessFormat::Options> logged_;
  FileDescriptor file_;
  std::optional<frontend::AccessLog> log_;  // nothing: it is off
  Complaints complaints_;
  std::function<void(std::string)> warn_;  // null: it has warned
};

}  // namespace sluice::app
