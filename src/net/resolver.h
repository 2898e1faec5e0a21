// Addresses of hosts, looked up beside the loops.
//
// The system's lookup blocks, so one thread of our own does nothing else, and answers are posted to
// the loop that asked. Addresses are remembered: whoever asks again gets them at once, and when
// they are older than the refresh interval they are looked up anew behind the answer. When that
// fails, the last good ones stay. So a name is waited for at most once, and a name server that is
// down hurts nobody who is known. That a name is unknown is remembered as well, for a shorter time.
//
// Thread-safe, except that a Lookup belongs to the thread of its loop. Loops that ask outlive the
// resolver. Its end waits for the lookup that is under way.
#pragma once

#include "net/event_loop.h"
#include "net/lookup.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace sluice::net {

using Resolution = Parsed<std::shared_ptr<const Addresses>>;  // never empty

// One question and its answer; no answer comes once it is gone.
class Lookup {
 public:
  explicit Lookup(Callback<const Resolution&> on_answer) noexcept : on_answer_(on_answer) {}
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup() { cancel(); }

  void cancel() noexcept;
  [[nodiscard]] bool is_waiting() const noexcept { return ticket_ != nullptr; }

 private:
  friend class Resolver;
  // Shared with the answer on its way, which finds out whether anybody still waits.
  struct Ticket {
    Lookup* lookup = nullptr;
  };

  Callback<const Resolution&> on_answer_;
  std::shared_ptr<Ticket> ticket_;
};

struct ResolverOptions {
  Nanos refresh{std::chrono::seconds{30}};
  Nanos retry{std::chrono::seconds{1}};  // after a failure
  std::size_t names_max = 1024;          // beyond these, names are refused
  // Called by the resolver's thread. Tests have their own.
  std::function<Parsed<Addresses>(const std::string&)> look_up = net::look_up;
};

class Resolver {
 public:
  explicit Resolver(ResolverOptions options = {});
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  // In the thread of the loop. Addresses as text, and names of which something is remembered, are
  // answered from inside this call, others later, by the loop.
  void resolve(const std::string& name, EventLoop& loop, Lookup& lookup);

  [[nodiscard]] std::uint64_t failures() const;

 private:
  struct Waiting {
    EventLoop* loop = nullptr;
    std::shared_ptr<Lookup::Ticket> ticket;
  };
  struct Entry {
    std::shared_ptr<const Addresses> addresses;  // null: never found yet
    std::optional<Diagnostic> failure;           // of the last lookup
    MonoTime next;                               // not to be looked up before
    bool queued = false;
    std::vector<Waiting> waiting;
  };

  [[nodiscard]] std::optional<Resolution> answer_or_wait(const std::string& name, EventLoop& loop,
                                                         Lookup& lookup);
  void enqueue(const std::string& name, Entry& entry, MonoTime now);
  void work(const std::stop_token& stop);
  void settle(const std::string& name, const Parsed<Addresses>& found);

  const ResolverOptions options_;

  mutable std::mutex mutex_;  // guards everything up to the thread
  std::condition_variable_any wanted_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;
  std::uint64_t failures_ = 0;

  std::jthread thread_;
};

}  // namespace sluice::net
