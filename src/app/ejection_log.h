// What the operator hears of servers that are ejected, and of those that are back.
//
// Every worker finds out by itself; the operator hears of it once, from the first that does. One
// thread.
#pragma once

#include "app/log_line.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace sluice::app {

class EjectionLog {
 public:
  explicit EjectionLog(Say say) : say_(std::move(say)) {}

  // `server`: of which upstream it is, and at which address.
  void ejected(const std::string& server, const std::string& text) {
    // Addresses that a name no longer has never come back.
    if (ejected_.size() >= kKept) ejected_.clear();
    if (ejected_.insert(server).second)
      say_(LogLevel::warning, fmt::format("{}: {}", server, text));
  }
  void recovered(const std::string& server) {
    if (ejected_.erase(server) > 0) say_(LogLevel::info, fmt::format("{}: recovered", server));
  }

 private:
  static constexpr std::size_t kKept = 1000;

  Say say_;
  std::set<std::string> ejected_;
};

}  // namespace sluice::app
