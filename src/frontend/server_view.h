// The server, as front ends for operators see it. Called by their threads.
#pragma once

#include "frontend/status_report.h"
#include "metrics/exposition.h"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::frontend {

// One thing that has to hold before requests should be sent here.
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

  // Answers at once, whatever the workers do.
  [[nodiscard]] virtual std::vector<Check> readiness() const = 0;
  [[nodiscard]] virtual std::string metrics(metrics::Exposition form) = 0;
  [[nodiscard]] virtual StatusReport status() = 0;
};

}  // namespace sluice::frontend
