#include "net/resolver.h"

#include "base/text.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::net {

void Lookup::cancel() noexcept {
  if (ticket_ != nullptr) ticket_->lookup = nullptr;
  ticket_.reset();
}

// Requested and known names. Shared by the resolver and its thread; the last one frees it.
class Resolver::Desk {
 public:
  explicit Desk(ResolverOptions options) : options_(std::move(options)) {}

  // In the thread of the loop. Nothing: it will be told.
  [[nodiscard]] std::optional<Resolution> answer_or_wait(const std::string& name, EventLoop& loop,
                                                         Lookup& lookup);
  [[nodiscard]] std::uint64_t failures() const;

  // Until it is closed. No lookup is completed from then on.
  void work();
  void close();

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

  void enqueue(const std::string& name, Entry& entry, MonoTime now);
  [[nodiscard]] std::optional<std::string> next();  // nothing: it is closed
  void settle(const std::string& name, const Parsed<Addresses>& found);

  const ResolverOptions options_;

  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable wanted_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;
  std::uint64_t failures_ = 0;
  bool is_closed_ = false;
};

std::optional<Resolution> Resolver::Desk::answer_or_wait(const std::string& name, EventLoop& loop,
                                                         Lookup& lookup) {
  const std::lock_guard lock{mutex_};
  if (!entries_.contains(name) && entries_.size() >= options_.names_max) {
    return mistake("too many different names of hosts: " + quoted(name),
                   "at most " + std::to_string(options_.names_max) + " are remembered");
  }
  Entry& entry = entries_[name];
  enqueue(name, entry, loop.now().mono);
  if (entry.addresses != nullptr) return entry.addresses;
  if (!entry.queued) return tl::unexpected(*entry.failure);
  lookup.ticket_ = std::make_shared<Lookup::Ticket>(Lookup::Ticket{&lookup});
  entry.waiting.push_back({.loop = &loop, .ticket = lookup.ticket_});
  return std::nullopt;
}

void Resolver::Desk::enqueue(const std::string& name, Entry& entry, MonoTime now) {
  const bool known = entry.addresses != nullptr || entry.failure;
  if (entry.queued || (known && now < entry.next)) return;
  entry.queued = true;
  entry.next = now;  // settled from here on
  queue_.push_back(name);
  wanted_.notify_one();
}

void Resolver::Desk::work() {
  while (const std::optional<std::string> name = next()) settle(*name, options_.look_up(*name));
}

std::optional<std::string> Resolver::Desk::next() {
  std::unique_lock lock{mutex_};
  wanted_.wait(lock, [this] { return is_closed_ || !queue_.empty(); });
  if (is_closed_) return std::nullopt;
  std::string name = std::move(queue_.front());
  queue_.pop_front();
  return name;
}

// Tickets are read and written by the threads of their loops alone; here they only travel.
void Resolver::Desk::settle(const std::string& name, const Parsed<Addresses>& found) {
  const std::lock_guard lock{mutex_};
  if (is_closed_) return;  // the loops may be gone
  Entry& entry = entries_[name];
  entry.queued = false;
  entry.next += found ? options_.refresh : options_.retry;
  entry.failure = found ? std::nullopt : std::optional{found.error()};
  if (found) entry.addresses = std::make_shared<const Addresses>(*found);
  if (!found) ++failures_;
  const Resolution answer = found ? Resolution{entry.addresses} : tl::unexpected(found.error());
  for (Waiting& waiting : std::exchange(entry.waiting, {})) {
    waiting.loop->post([ticket = std::move(waiting.ticket), answer] {
      Lookup* const lookup = std::exchange(ticket->lookup, nullptr);
      if (lookup == nullptr) return;
      lookup->ticket_.reset();
      lookup->on_answer_(answer);
    });
  }
}

void Resolver::Desk::close() {
  const std::lock_guard lock{mutex_};
  is_closed_ = true;
  wanted_.notify_one();
}

std::uint64_t Resolver::Desk::failures() const {
  const std::lock_guard lock{mutex_};
  return failures_;
}

Resolver::Resolver(ResolverOptions options) : desk_(std::make_shared<Desk>(std::move(options))) {
  std::thread{[desk = desk_] { desk->work(); }}.detach();
}

Resolver::~Resolver() { desk_->close(); }

void Resolver::resolve(const std::string& name, EventLoop& loop, Lookup& lookup) {
  lookup.cancel();
  if (const std::optional<IpAddress> literal = IpAddress::parse(name)) {
    return lookup.on_answer_(std::make_shared<const Addresses>(Addresses{*literal}));
  }
  // Not under the mutex: the callback may start another lookup.
  const std::optional<Resolution> answer = desk_->answer_or_wait(name, loop, lookup);
  if (answer) lookup.on_answer_(*answer);
}

std::uint64_t Resolver::failures() const { return desk_->failures(); }

}  // namespace sluice::net
