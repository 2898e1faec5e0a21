// Addresses of hosts, looked up beside the loops.
//
// The system's lookup blocks, so one thread of our own does nothing else, and posts results to the
// requesting loop. Addresses are cached: later lookups get them at once, and when they are older
// than the refresh interval they are looked up again in the background. If that fails, the last
// addresses stay. So a name is waited for at most once, and a name server that is down does not
// affect cached names. An unknown name is cached as well, for a shorter time.
//
// Thread-safe, except that a Lookup belongs to the thread of its loop. Requesting loops outlive the
// resolver. Its destructor does not wait: a name server that is down must not keep a program from
// ending, and nothing can stop the system's lookup. So the thread ends when that returns, and
// shares ownership of its data.
#pragma once

#include "net/event_loop.h"
#include "net/lookup.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace sluice::net {

using Resolution = Parsed<std::shared_ptr<const Addresses>>;  // never empty

// One lookup and its result; no result arrives once it is destroyed.
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
  // Shared with the pending result, which finds out whether the lookup still exists.
  struct Ticket {
    Lookup* lookup = nullptr;
  };

  Callback<const Resolution&> on_answer_;
  std::shared_ptr<Ticket> ticket_;
};

struct ResolverOptions {
  Nanos refresh{std::chrono::seconds{30}};
  Nanos retry{std::chrono::seconds{1}};  // after a failure
  std::size_t names_max = 1024;          // beyond these, names are rejected
  // Called by the resolver's thread, maybe still when the resolver is gone. Tests have their own.
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
  class Desk;
  std::shared_ptr<Desk> desk_;
};

}  // namespace sluice::net
