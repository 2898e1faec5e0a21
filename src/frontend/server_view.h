// The server, as front ends for operators see it. Called by their threads.
#pragma once

#include "frontend/status_report.h"
#include "metrics/exposition.h"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::frontend {

// A condition that must be met before the server should get requests.
struct Check {
  std::string_view name;
  bool holds = false;
};

class ServerView {
 public:
  ServerView() = default;
  ServerView(const ServerView&) = delete;
  ServerView& operator=(const ServerView&) = delete;
  virtual ~ServerView() = default;

  // Returns at once, whatever the workers do.
  [[nodiscard]] virtual std::vector<Check> readiness() const = 0;
  [[nodiscard]] virtual std::string metrics(metrics::Exposition form) = 0;
  [[nodiscard]] virtual StatusReport status() = 0;
};

}  // namespace sluice::frontend
