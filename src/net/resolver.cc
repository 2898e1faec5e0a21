#include "net/resolver.h"

#include "base/text.h"

#include <optional>
#include <utility>

namespace sluice::net {

void Lookup::cancel() noexcept {
  if (ticket_ != nullptr) ticket_->lookup = nullptr;
  ticket_.reset();
}

Resolver::Resolver(ResolverOptions options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { work(stop); }) {}

Resolver::~Resolver() {
  thread_.request_stop();
  thread_.join();
}

void Resolver::resolve(const std::string& name, EventLoop& loop, Lookup& lookup) {
  lookup.cancel();
  if (const std::optional<IpAddress> literal = IpAddress::parse(name)) {
    return lookup.on_answer_(std::make_shared<const Addresses>(Addresses{*literal}));
  }
  // Not under the mutex: whoever is called may ask again.
  const std::optional<Resolution> answer = answer_or_wait(name, loop, lookup);
  if (answer) lookup.on_answer_(*answer);
}

std::optional<Resolution> Resolver::answer_or_wait(const std::string& name, EventLoop& loop,
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

void Resolver::enqueue(const std::string& name, Entry& entry, MonoTime now) {
  const bool known = entry.addresses != nullptr || entry.failure;
  if (entry.queued || (known && now < entry.next)) return;
  entry.queued = true;
  entry.next = now;  // settled from here on
  queue_.push_back(name);
  wanted_.notify_one();
}

void Resolver::work(const std::stop_token& stop) {
  while (true) {
    std::string name;
    {
      std::unique_lock lock{mutex_};
      if (!wanted_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      name = std::move(queue_.front());
      queue_.pop_front();
    }
    settle(name, options_.look_up(name));
    if (stop.stop_requested()) return;
  }
}

// Tickets are read and written by the threads of their loops alone; here they only travel.
void Resolver::settle(const std::string& name, const Parsed<Addresses>& found) {
  const std::lock_guard lock{mutex_};
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

std::uint64_t Resolver::failures() const {
  const std::lock_guard lock{mutex_};
  return failures_;
}

}  // namespace sluice::net
