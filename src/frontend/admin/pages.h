// What the admin listener shows.
#pragma once

#include "frontend/admin/routes.h"
#include "frontend/admin/status_report.h"
#include "metrics/exposition.h"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::admin {

// One thing that has to hold before requests should be sent here.
struct Check {
  std::string_view name;
  bool holds = false;
};

// The server, as the pages see it. Called by the thread of the admin listener.
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

// The view outlives the routes, and these do not move.
void add_pages(Routes& routes, ServerView& view);

}  // namespace sluice::admin
