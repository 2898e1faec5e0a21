// What a worker does when a request has ended: counts it, and writes its line of the access log.
//
// One thread. Nothing is allocated after it was made, and counting takes no lock.
#pragma once

#include "app/complaints.h"
#include "app/engine_room.h"
#include "app/log_file.h"
#include "app/log_line.h"
#include "app/serve_configuration.h"
#include "frontend/access_log.h"
#include "frontend/decision_counters.h"
#include "frontend/gateway/gateway.h"
#include "frontend/request_meters.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::app {

// Where lines go, and in which form; the file is null where there is no such log.
struct AccessLogSink {
  AccessLogConfig config;
  std::shared_ptr<LogFile> file;
};
[[nodiscard]] Parsed<AccessLogSink> open_access_log(const AccessLogConfig& config);

class RequestObserver final : public gateway::Observer {
 public:
  // What the operator hears of, from any thread.
  struct Operator {
    Say say;
    std::function<void(std::string)> warn;  // the same line once only
    // A server, as complaints name it, and what became of it.
    std::function<void(std::string server, std::string text)> ejected;
    std::function<void(std::string server)> recovered;
  };
  // The meters outlive it.
  RequestObserver(AccessLogSink log, const frontend::RequestMeters& meters, metrics::Shard shard,
                  Operator who);
  RequestObserver(const RequestObserver&) = delete;
  RequestObserver& operator=(const RequestObserver&) = delete;
  // What was cut at the very end has its line as well, if somebody reads it.
  ~RequestObserver() override;

  // What goes with the rules in force: who counts decisions, and what is logged of requests. Cheap
  // when nothing has changed.
  void use(const EngineRoom::Content& content);
  // What was logged so far goes to the file before, as far as that takes it.
  void log_to(AccessLogSink log);

  void ended(const frontend::AccessRecord& record, Now now) noexcept override;
  void decided(Nanos took) noexcept override { meters_.decided(shard_, took); }
  void server_failed(const gateway::ServerFailure& failure, Now now) noexcept override {
    complaints_.add(failure, now.mono);
  }
  void server_ejected(const gateway::ServerPlace& place,
                      const gateway::UpstreamOptions& of) noexcept override;
  void server_recovered(const gateway::ServerPlace& place) noexcept override {
    who_.recovered(text_of(place));
  }
  void ignored_forwarding() noexcept override;

  // Writes the lines that there are. False: some wait for a reader, to be tried again.
  bool flush() noexcept;
  [[nodiscard]] const frontend::AccessLog* log() const noexcept { return log_ ? &*log_ : nullptr; }

 private:
  [[nodiscard]] std::shared_ptr<const frontend::AccessFormat> format() const;
  void lose_pending() noexcept;

  const frontend::RequestMeters& meters_;
  const metrics::Shard shard_;
  const frontend::DecisionCounters* counters_ = nullptr;  // null: decisions are not counted
  frontend::LogForm form_ = frontend::LogForm::text;
  std::shared_ptr<const frontend::AccessFormat::Options> logged_;
  std::shared_ptr<LogFile> file_;           // null: the log is off
  std::optional<frontend::AccessLog> log_;  // nothing: it was never on
  std::string_view pending_;                // of what the log gave out
  Operator who_;
  Complaints complaints_;
  bool has_warned_ = false;
};

}  // namespace sluice::app
