// A server at one moment, for people and programs. Plain data.
#pragma once

#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::frontend {

// In display order.
using NamedCounts = std::vector<std::pair<std::string, std::uint64_t>>;

struct ListenerStatus {
  std::string name;      // as in the configuration
  std::string endpoint;  // with the real port
};

struct ReloadStatus {
  WallTime at;
  bool succeeded = true;
};

// Rules that come from a file of their own.
struct RulesFileStatus {
  std::string source;
  std::string version;  // of the rules in force
  std::optional<WallTime> loaded_at;
  bool of_last_run = false;     // the rules in force were saved by an earlier run
  std::string error;            // why the file's content is not in force; empty: it is
  std::string last_good_error;  // why a start without the file would find none; empty: it would
  std::string watch_problem;    // why changes may be noticed late; empty: they are not
};

struct ServerStatus {
  std::string address;
  std::size_t ejected_by = 0;         // how many workers; each ejects by itself
  std::size_t addresses = 1;          // of its name, by the worker that knows most
  std::size_t addresses_ejected = 0;  // by every worker, at least so many
  std::uint64_t in_use = 0;           // connections with a request in flight
  std::uint64_t idle = 0;
  std::uint64_t failures = 0;  // since the configuration in force was read
};

struct UpstreamStatus {
  std::string name;
  std::vector<ServerStatus> servers;
};

// Keys that the counter table had no room for, and the cells that they share.
struct TableFullStatus {
  bool now = false;  // within the last minute
  std::uint64_t approximated = 0;
  std::uint64_t allowed = 0;  // untracked
  std::uint64_t rejected = 0;
  std::uint64_t refunds_lost = 0;  // units of cost
  std::uint64_t blocks_dropped = 0;
  std::uint64_t block_rejections_lost = 0;  // that did not count towards a block
  std::uint64_t cells = 0;                  // in use
  std::uint64_t cells_max = 0;
};

struct StatusReport {
  std::string version;
  std::string state;  // starting, serving, draining
  WallTime started_at;
  Nanos uptime{0};
  std::size_t workers = 0;

  std::string file;  // empty: the demonstration
  WallTime read_at;
  std::size_t rules = 0;
  std::optional<ReloadStatus> last_reload;
  std::optional<RulesFileStatus> rules_file;  // nothing: rules are in the file itself

  std::vector<ListenerStatus> listeners;
  std::uint64_t connections = 0;
  std::uint64_t connections_evicted = 0;   // idle, to make room, so far
  std::uint64_t connections_rejected = 0;  // so far
  std::uint64_t requests_in_flight = 0;
  std::uint64_t requests_queued = 0;
  NamedCounts requests;    // by class of the status
  NamedCounts decisions;   // by word, of all rules together
  NamedCounts rejections;  // by reason
  std::vector<UpstreamStatus> upstreams;

  std::uint64_t keys = 0;
  std::uint64_t keys_max = 0;
  std::uint64_t evictions = 0;
  TableFullStatus table_full;
  std::uint64_t blocks = 0;  // in force
};

// Whether any worker forwards requests to it.
[[nodiscard]] constexpr bool is_healthy(const ServerStatus& server, std::size_t workers) noexcept {
  return server.ejected_by < workers;
}

}  // namespace sluice::frontend
