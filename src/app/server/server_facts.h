// The state of the server as a whole: written by the control thread, read by the admin listener's.
// Thread-safe.
#pragma once

#include "frontend/status_report.h"
#include "metrics/registry.h"
#include <sluice/time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

enum class Phase : std::uint8_t { starting, serving, draining };
[[nodiscard]] std::string_view to_string(Phase phase) noexcept;

class ServerFacts {
 public:
  struct Build {
    std::string version;
    std::string file;  // of the configuration; empty: no file to reload
  };
  struct Configuration {
    std::size_t rules = 0;
    WallTime read_at;
    std::optional<frontend::ReloadStatus> last_reload;
  };

  // No worker counts with `shard`.
  ServerFacts(Build build, metrics::Registry& registry, metrics::Shard shard);

  // ---- from the control thread -----------------------------------------------------------------

  void begin(std::size_t rules, Now now);  // the first configuration is in force
  void enter(Phase phase) noexcept { phase_.store(phase, std::memory_order_release); }
  void took_over(std::size_t rules, WallTime now);
  void kept_the_old(WallTime now);
  void took_rules(std::size_t rules);  // from their own file; any thread

  // Set before reads.
  std::vector<frontend::ListenerStatus> listeners;

  // ---- from any thread -------------------------------------------------------------------------

  [[nodiscard]] Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  [[nodiscard]] Configuration configuration() const;
  [[nodiscard]] const Build& build() const noexcept { return build_; }
  [[nodiscard]] Now began() const noexcept { return began_; }

 private:
  void show_read(WallTime now) const noexcept;

  const Build build_;
  const metrics::Shard shard_;
  metrics::Counter reloads_;
  metrics::Counter failed_reloads_;
  metrics::Gauge last_reload_;
  Now began_;  // set before reads
  std::atomic<Phase> phase_{Phase::starting};

  mutable std::mutex mutex_;  // guards the following
  Configuration configuration_;
};

}  // namespace sluice::app
