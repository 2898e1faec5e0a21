#include "cli/load/http/reach.h"

#include "net/event_loop.h"
#include "net/lookup.h"
#include "net/stream.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>

namespace sluice::cli {
namespace {

// One attempt to connect, in a loop of its own.
class Attempt {
 public:
  explicit Attempt(net::EventLoop& loop) noexcept
      : loop_(loop), stream_(net::Callback<>::to<&Attempt::go_on>(*this)) {}

  // Nothing if the connection stands, else why it does not.
  [[nodiscard]] std::optional<std::string> make(const net::SocketAddress& address,
                                                const HttpPlan& plan) {
    const net::IoResult begun = stream_.connect(loop_, address);
    if (begun.is_failed()) return begun.why.text();
    if (plan.tls != nullptr && !stream_.start_tls(*plan.tls, plan.target.name())) {
      return "TLS cannot be started";
    }
    go_on();
    const MonoTime patience = loop_.now().mono + plan.timeout;
    while (result_.is_blocked() && loop_.now().mono < patience) loop_.turn(plan.timeout);
    if (result_.is_done()) return std::nullopt;
    if (result_.is_blocked()) return "no connection within the timeout";
    return result_.is_closed() ? "the connection was closed at once" : result_.why.text();
  }

 private:
  void go_on() { result_ = stream_.establish(); }

  net::EventLoop& loop_;
  net::Stream stream_;
  net::IoResult result_ = net::IoResult::would_block();
};

Parsed<net::Addresses> addresses_of(const net::Endpoint& endpoint) {
  if (endpoint.kind == net::Endpoint::Kind::name) return net::look_up(endpoint.name);
  return net::Addresses{endpoint.address};
}

std::string remedy_for(const HttpPlan& plan) {
  return plan.target.is_tls
             ? "is a server of https running there, with a certificate of a CA of --ca-file or "
               "the system?"
             : "is the server running there?";
}

}  // namespace

Parsed<net::SocketAddress> reach(const HttpPlan& plan, const Clock& clock) {
  const net::Endpoint& endpoint = plan.target.endpoint;
  const Parsed<net::Addresses> addresses = addresses_of(endpoint);
  if (!addresses) return tl::unexpected(addresses.error());
  auto loop = net::EventLoop::create(clock);
  if (!loop) return tl::unexpected(loop.error());
  std::string reason;
  for (const IpAddress& one : *addresses) {
    const auto address = net::SocketAddress::of(one, endpoint.port);
    const std::optional<std::string> failure = Attempt{**loop}.make(address, plan);
    if (!failure) return address;
    reason = *failure;
  }
  return mistake(fmt::format("cannot connect to {}: {}", endpoint.text(), reason),
                 remedy_for(plan));
}

}  // namespace sluice::cli
