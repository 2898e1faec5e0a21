// One thread of the load generator: its share of the schedule on its share of the connections.
//
// Open loop: request n is due at an instant that was fixed before the run. It goes out then, or as
// soon as a connection is free, and its latency counts from that instant. Waiting requests are not
// kept in a queue: they are the numbers between the last sent and the last due. A request that has
// waited for longer than the timeout is given up, as its client would.
//
// Closed loop: whenever a connection is free, the next request is due.
//
// One thread, except for `stop` and `live`.
#pragma once

#include "base/random.h"
#include "cli/load/http/alarm.h"
#include "cli/load/http/load_connection.h"
#include "cli/load/http/plan.h"
#include "cli/load/http/tally.h"
#include "net/event_loop.h"
#include "net/intrusive_list.h"
#include <sluice/clock.h>
#include <sluice/diagnostic.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::cli {

class LoadDriver {
 public:
  // The plan and the clock outlive it. Of `plan.threads` drivers this is the one of that number.
  [[nodiscard]] static Parsed<std::unique_ptr<LoadDriver>> create(const HttpPlan& plan,
                                                                  const net::SocketAddress& address,
                                                                  std::size_t number,
                                                                  const Clock& clock);
  LoadDriver(const LoadDriver&) = delete;
  LoadDriver& operator=(const LoadDriver&) = delete;
  ~LoadDriver() = default;

  // Ahead of the run, so that connecting is not measured; no longer than the timeout.
  void connect_all();
  // Until every request has ended, or `stop` is called.
  void run(MonoTime begin);

  // Thread-safe. What is in flight then stays unfinished.
  void stop();

  struct Live {
    std::uint64_t admitted = 0;
    std::uint64_t rejected = 0;
    std::uint64_t other = 0;
  };
  // Thread-safe; as of a moment ago.
  [[nodiscard]] Live live() const noexcept;

  // When `run` has returned.
  [[nodiscard]] const Tally& tally() const noexcept { return tally_; }

 private:
  LoadDriver(const HttpPlan& plan, const net::SocketAddress& address, std::size_t number,
             const Clock& clock, std::unique_ptr<net::EventLoop> loop);

  [[nodiscard]] MonoTime now() const noexcept { return clock_.now().mono; }
  void pump();
  void pump_schedule();
  void pump_closed();
  void send(LoadConnection& connection, MonoTime due, MonoTime now);
  void take_next() noexcept;
  void find_end();
  void on_head(const net::ResponseHead& head);
  void on_end(LoadConnection& connection, Ending ending);
  void set_free(LoadConnection& connection, MonoTime now);
  void leave_unfinished();

  const HttpPlan& plan_;
  const Clock& clock_;
  std::unique_ptr<net::EventLoop> loop_;
  LoadBench bench_;
  Tally tally_;
  Random random_;
  Alarm alarm_;
  net::Task pump_;
  net::Timer pause_;  // of closed loops, after a failure

  MonoTime begin_;
  std::uint64_t next_;            // request to be sent next
  MonoTime next_due_;             // of open loops
  const std::uint64_t requests_;  // of all drivers
  std::size_t in_flight_ = 0;

  net::List<LoadConnection> free_;  // the one that has been for longest first
  std::vector<std::unique_ptr<LoadConnection>> connections_;

  // Written by the thread of the loop alone.
  std::atomic<std::uint64_t> live_admitted_{0};
  std::atomic<std::uint64_t> live_rejected_{0};
  std::atomic<std::uint64_t> live_other_{0};
};

}  // namespace sluice::cli
