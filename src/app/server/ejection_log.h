// Tells the operator about servers that are ejected, and that have recovered.
//
// Every worker ejects by itself; only the first report is logged. Some servers never recover: a
// reload replaces their upstream, or their name has other addresses, and the same server starts as
// new. A logged ejection is therefore remembered for as long as it lasts, and the next one is
// logged. One thread.
#pragma once

#include "app/server/log_line.h"
#include <sluice/time.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace sluice::app {

struct Ejection {
  std::string upstream;
  std::string server;  // its upstream and its address
  std::string text;    // what happened
  Nanos lasts{0};
};

class EjectionLog {
 public:
  explicit EjectionLog(Say say) : say_(std::move(say)) {}

  void ejected(const Ejection& one, MonoTime now) {
    // Addresses removed from a name never recover.
    if (ejected_.size() >= kKept) ejected_.clear();
    Told& told = ejected_[one.server];
    if (now < told.until) return;
    told = {.upstream = one.upstream, .until = now + one.lasts};
    say_(LogLevel::warning, fmt::format("{}: {}", one.server, one.text));
  }
  void recovered(const std::string& server) {
    if (ejected_.erase(server) > 0) say_(LogLevel::info, fmt::format("{}: recovered", server));
  }
  // After a reload: servers of these upstreams are no longer ejected.
  void forget(std::span<const std::string> upstreams) {
    std::erase_if(ejected_, [&](const auto& one) {
      return std::ranges::find(upstreams, one.second.upstream) != upstreams.end();
    });
  }

 private:
  static constexpr std::size_t kKept = 1000;
  struct Told {
    std::string upstream;
    MonoTime until = MonoTime::min();
  };

  Say say_;
  std::map<std::string, Told> ejected_;  // by server
};

}  // namespace sluice::app
