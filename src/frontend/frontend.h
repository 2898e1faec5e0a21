// A front end: one protocol that a server listens with. The server knows front ends by this header
// alone, and src/app/config/frontends.cc lists them.
//
//   FrontendKind     what a file may say about it, and how that is read. Constant
//   Frontend         once per server: opens the files that its section names, makes its workers
//   FrontendWorker   its part of one thread: accepts connections, drains, reports
//
// From a file to its requests:
//
//   kind.read()          the section becomes a FrontendConfig; every mistake is reported
//   frontend.load()      its files are opened
//   frontend.accepted()  the whole file is right: the result is its part of the snapshot
//   frontend.opened()    once, with the sockets that were opened or inherited
//   on_worker()          once per worker, or on_thread() once per server
//   worker.use()         with every snapshot, between two turns of the loop
//   worker.accept()      with every connection
//   worker.drain()       when the server stops: its listeners are closed by then
//   worker.report()      when the operator looks
//
// Virtual calls are made per connection, per reload and per report, none per request.
#pragma once

#include "config/diagnostics.h"
#include "config/grammar.h"
#include "config/named_files.h"
#include "engine/decider.h"
#include "engine/envoy_decider.h"
#include "frontend/access_log/log_secrets.h"
#include "frontend/frontend_config.h"
#include "frontend/observer.h"
#include "frontend/server_view.h"
#include "frontend/status_report.h"
#include "metrics/registry.h"
#include "net/acceptor.h"
#include "net/endpoint.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/ticket_keys.h"
#include "rules/rule.h"
#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::frontend {

// ---- one thread -------------------------------------------------------------------------------

// A listening socket, as connections come through it.
struct Entrance {
  // A socket that the service manager opened under the front end's name, and that no key names.
  static constexpr std::size_t kUnlisted = std::numeric_limits<std::size_t>::max();

  std::uint16_t port = 0;            // 0: none, a Unix socket
  std::size_t listener = kUnlisted;  // its index in FrontendConfig::listen at the start
};

// A front end's report on one worker.
struct FrontendReport {
  std::uint64_t connections = 0;
  std::uint64_t connections_rejected = 0;  // so far
  std::uint64_t evicted = 0;               // idle connections, so far
  std::uint64_t spares = 0;                // buffers and the like, kept for the next requests
  std::uint64_t in_flight = 0;
  std::uint64_t queued = 0;
  std::uint64_t headers_dropped = 0;
  std::vector<UpstreamStatus> upstreams;  // under the configuration in force
};

// Runs on the thread of the loop that it was made with.
class FrontendWorker {
 public:
  FrontendWorker() = default;
  FrontendWorker(const FrontendWorker&) = delete;
  FrontendWorker& operator=(const FrontendWorker&) = delete;
  virtual ~FrontendWorker() = default;

  virtual void accept(net::Accepted accepted, const Entrance& entrance) = 0;
  // New requests use this configuration; requests in flight keep theirs. The engine has the rules
  // of the same snapshot.
  virtual void use(const std::shared_ptr<const FrontendConfig>& config) = 0;
  // Closes an idle connection to free a descriptor; false if there is none.
  virtual bool evict_idle() { return false; }

  // For workers only: a front end with its own thread serves until the server stops, so that
  // operators see how it stops.

  // No more connections come. Open ones close after their requests in flight. May be called again.
  virtual void drain() {}
  // Open connections. A worker is drained when drain() was called and none is left.
  [[nodiscard]] virtual std::size_t connections() const noexcept { return 0; }
  [[nodiscard]] virtual FrontendReport report() const { return {}; }
};

// ---- one server -------------------------------------------------------------------------------

enum class Placement : std::uint8_t {
  workers,     // a part of it on every worker: it serves requests
  own_thread,  // requests and it do not delay each other: it serves operators
};

// What load() opens files with.
struct LoadParts {
  const config::NamedFiles& files;                 // where each was named
  std::shared_ptr<const net::TicketKeys> tickets;  // of TLS sessions; null: none are resumed
};

// All of them outlive the worker that is made with them.
struct WorkerParts {
  net::EventLoop& loop;
  net::Resolver& resolver;
  engine::Decider& decider;
  engine::EnvoyDecider& envoy;
  Observer& observer;
};
struct ThreadParts {
  net::EventLoop& loop;
  ServerView& view;
};

// A socket opened for a front end.
struct OpenedSocket {
  net::Endpoint endpoint;
  std::string text;  // for messages: its address, and the name of an inherited one
};

// Used by the control thread, except for the workers that it makes. It outlives them.
class Frontend {
 public:
  Frontend() = default;
  Frontend(const Frontend&) = delete;
  Frontend& operator=(const Frontend&) = delete;
  virtual ~Frontend() = default;

  // The read configuration and its files. `in_force` is the part of the snapshot before; null at
  // the start. Every mistake is reported. Then the result is not used, so this must have no other
  // effect.
  [[nodiscard]] virtual std::shared_ptr<const FrontendConfig> load(
      const std::shared_ptr<const FrontendConfig>& read, const FrontendConfig* /*in_force*/,
      const LoadParts& /*parts*/, config::Diagnostics& /*diagnostics*/) {
    return read;
  }
  // New rules alone change how paths are read: returns the part in force, with everything that
  // depends on paths taken from the file as read now.
  [[nodiscard]] virtual std::shared_ptr<const FrontendConfig> with_paths(
      const std::shared_ptr<const FrontendConfig>& in_force, const FrontendConfig& /*read*/) {
    return in_force;
  }
  // The next part of the snapshot: what load() or with_paths() returned, now that it comes into
  // force. Only here are metrics registered: they cannot be removed again.
  [[nodiscard]] virtual std::shared_ptr<const FrontendConfig> accepted(
      std::shared_ptr<const FrontendConfig> next, metrics::Registry& /*registry*/) {
    return next;
  }
  // Its sockets are open. An error aborts the start.
  [[nodiscard]] virtual Parsed<void> opened(const FrontendConfig& /*config*/,
                                            std::span<const OpenedSocket> /*sockets*/) {
    return {};
  }
  // Names of the upstreams of `before` whose servers lose their state when `now` replaces it.
  [[nodiscard]] virtual std::vector<std::string> replaced_upstreams(
      const FrontendConfig& /*before*/, const FrontendConfig& /*now*/) const {
    return {};
  }

  // One of the two, by its placement.
  [[nodiscard]] virtual std::unique_ptr<FrontendWorker> on_worker(
      const WorkerParts& /*parts*/, const std::shared_ptr<const FrontendConfig>& /*config*/) {
    return nullptr;
  }
  [[nodiscard]] virtual std::unique_ptr<FrontendWorker> on_thread(
      const ThreadParts& /*parts*/, const std::shared_ptr<const FrontendConfig>& /*config*/) {
    return nullptr;
  }
};

// ---- the file ---------------------------------------------------------------------------------

// What the other sections of the same file say.
struct FileContext {
  std::string folder;  // paths are relative to it
  std::span<const IpRange> trusted_proxies;
  std::vector<std::string> identifying_headers;  // that identify clients, in lower case
  std::string client_ip_header;                  // that trusted proxies write; empty: none
  LogSecrets log_secrets;                        // what logs hide of requests
  const rules::IgnoringHosts& case_insensitive_paths;
  const rules::IgnoringHosts& ignore_path_parameters;
  const rules::SlashesByHost& escaped_slashes;
  unsigned workers_in_force = 0;  // of a running server; 0: as the file says
};

// A file checked against the grammar, from which a front end reads its keys.
struct Written {
  const config::Reader& file;               // the top level
  std::vector<const config::Node*> listen;  // the values of its key under `listen`
  const config::Checked& checked;
  const FileContext& context;
  unsigned workers;           // how many there will be
  config::NamedFiles& files;  // the front end adds the files and addresses that it names
  std::size_t& file_errors;   // reported mistakes that are in the files themselves
};

struct FrontendKind {
  Placement placement = Placement::workers;
  config::Key listen;             // under `listen`: also the front end's name
  std::vector<config::Key> keys;  // of the top level, in the order of the reference
  // Never null; mistakes are reported.
  std::shared_ptr<const FrontendConfig> (*read)(const Written& written,
                                                config::Diagnostics& diagnostics) = nullptr;
  std::unique_ptr<Frontend> (*open)() = nullptr;

  [[nodiscard]] std::string_view name() const noexcept { return listen.name; }
};

// ---- for readers of sections --------------------------------------------------------------------

extern const config::Format kEndpointFormat;  // 127.0.0.1:8080

// A checked address, noted under its key.
[[nodiscard]] net::Endpoint read_endpoint(const config::Node& node, std::string key,
                                          config::NamedFiles& files);

}  // namespace sluice::frontend
