// From headers to a decision, and on to a server.
#include "engine/decider.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"
#include "net/http/known_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace sluice::gateway {
namespace {

// For the choice of a server: the same client always gets the same hash.
std::uint64_t hash_of(const identity::Identity& client) noexcept {
  const std::string_view name = !client.user.empty() ? client.user : client.api_key;
  if (!name.empty()) return std::hash<std::string_view>{}(name);
  const auto& bytes = client.address.bytes;
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

constexpr const char* kNotPassedOn = "this method is not forwarded";

// Whether the proxy of that name has already forwarded the request.
bool has_passed(std::span<const HeaderView> headers, std::string_view name) noexcept {
  return std::ranges::any_of(headers, [name](const HeaderView& header) {
    return net::is_named(header.name, "via") && header.value.find(name) != std::string_view::npos;
  });
}

bool is_usable_id(std::string_view id) noexcept {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace

void LoggedClient::copy(const identity::Identity& client) noexcept {
  address = client.address;
  asn = client.asn;
  country = {};
  client.country.copy(country.data(), country.size());
  const std::array texts{client.user, client.api_key, client.tenant, client.tier};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    sizes[i] = static_cast<std::uint8_t>(texts[i].copy(names.data() + i * kNameBytes, kNameBytes));
  }
}

Connection::Step Connection::begin_request() {
  Exchange& exchange = *exchange_;
  const net::RequestHead& request = head();
  timer_.cancel();
  exchange.routing = gateway_.routing_;  // of the same snapshot as the rules below
  ++gateway_.counts_.requests;
  ++gateway_.in_flight_;
  exchange.in_flight = true;
  keep_alive_ = request.keep_alive && !is_leaving() && requests_ + 1 < options().keepalive_requests;
  const RequestView view{.method = request.method,
                         .host = request.host,
                         .target = request.path_and_query,
                         .headers = request.headers,
                         .peer = peer_.address,
                         .tls_subject = tls_subject_,
                         .domain = {},
                         .descriptor = {}};
  exchange.op.owner = this;
  exchange.op.completed = &Connection::on_decided;
  choose_request_id();
  // Its target has no path, so no rule can match it; and the bytes after it are for a tunnel.
  if (request.method == "CONNECT") {
    keep_alive_ = false;
    return answer(405, kNotPassedOn);
  }
  // The certificate was valid at the handshake and has expired since.
  if (now().wall() >= certificate_until_) [[unlikely]] {
    keep_alive_ = false;
    return answer(403, "the client certificate has expired");
  }
  // Its headers came in parts, and the CAs that verified the certificate have been replaced.
  if (is_outdated()) [[unlikely]] {
    keep_alive_ = false;
    return answer(403, "the CAs of client certificates have changed");
  }
  const auto [completion, resolved] = decide(view);
  exchange.decided = true;

  // Before the decider's next request, which invalidates `resolved`.
  exchange.who.copy(resolved.client);
  exchange.through_trusted = resolved.client.through_trusted;
  // A rejected request needs no server.
  if (completion == store::Completion::later || exchange.op.action == engine::Action::pass) {
    exchange.client_hash = hash_of(resolved.client);
    route(resolved);
  }
  if (completion == store::Completion::now) return after_decision();
  phase_ = Phase::waiting;  // the store keeps the time
  return Step::wait;
}

// If a server may read the path in two ways, both must have the same upstream.
void Connection::route(const engine::ResolvedRequest& request) {
  Exchange& exchange = *exchange_;
  const Router& router = exchange.routing->router;
  const std::optional<std::size_t> upstream = router.find(request.host, request.path);
  exchange.has_two_routes =
      !request.decoded_path.empty() && router.find(request.host, request.decoded_path) != upstream;
  if (upstream) exchange.group = exchange.routing->groups[*upstream].get();
}

// The first request of a worker, and then one in kTimedOneIn, is timed.
engine::Decided Connection::decide(const RequestView& request) {
  engine::Op& op = exchange_->op;
  const bool is_timed = gateway_.counts_.requests % Gateway::kTimedOneIn == 1;
  if (!is_timed) [[likely]]
    return gateway_.worker_.decide(op, request, now());
  const Clock& clock = gateway_.loop_.clock();
  const MonoTime before = clock.now().mono;
  const engine::Decided decided = gateway_.worker_.decide(op, request, now());
  gateway_.observer_.decided(clock.now().mono - before);
  if (gateway_.worker_.ignores_forwarding(request)) gateway_.observer_.ignored_forwarding();
  return decided;
}

void Connection::on_decided(engine::Op& op) noexcept {
  auto& self = *static_cast<Connection*>(op.owner);
  self.run(self.after_decision());
}

Connection::Step Connection::after_decision() {
  const engine::Op& op = exchange_->op;
  if (op.action == engine::Action::drop) return cut();
  if (op.action == engine::Action::reject) return refuse();
  renew_in_time();
  if (op.decision.delay > Nanos{0}) {
    phase_ = Phase::held;
    exchange_->held = true;
    ++gateway_.queued_;
    arm(op.decision.delay);
    return watch_client();
  }
  return pass_on();
}

void Connection::leave_hold() noexcept {
  if (std::exchange(exchange_->held, false)) --gateway_.queued_;
}

Connection::Step Connection::pass_on() {
  const Step checked = check_request();
  if (checked != Step::again || phase_ == Phase::answering) return checked;
  if (!write_request_head()) {
    keep_alive_ = false;
    return answer(431, "the headers are too long to be forwarded");
  }
  // The client sends its body only after this.
  if (head().expects_continue && in_.begin == in_.end && !say_continue()) return cut();
  exchange_->group->passed_on();
  const Nanos timeout = exchange_->group->options().request_timeout;
  if (timeout > Nanos{0}) gateway_.loop_.set(request_timer_, timeout);
  return connect();
}

// Requests that the gateway rejects, whatever the rules decide.
Connection::Step Connection::check_request() {
  const net::RequestHead& request = head();
  const auto refused = [this](std::uint16_t status, const char* why) {
    return answer(status, why);
  };
  if (request.method == "TRACE") return refused(405, kNotPassedOn);
  if (has_passed(request.headers, gateway_.name_)) {
    return refused(508, "the request has come through this gateway before");
  }
  if (!request.upgrade.empty() && equals_ignoring_case(request.upgrade, "websocket")) {
    return refused(501, "protocols are not switched here");
  }
  const std::uint64_t most = options().max_body_size;
  if (most > 0 && request.body.kind == net::BodyFraming::Kind::length &&
      request.body.length > most) {
    return refused(413, "the body is too large");
  }
  if (request.method == "OPTIONS" && max_forwards(request.headers) == 0) return answer_options();
  if (exchange_->has_two_routes) {
    return refused(400, "with and without the escaped slash the path has different routes");
  }
  if (exchange_->group == nullptr) return refused(404, "no matching route");
  return Step::again;
}

void Connection::choose_request_id() {
  Exchange& exchange = *exchange_;
  if (options().trusts_request_ids) {
    for (const HeaderView& header : head().headers) {
      if (!equals_ignoring_case(header.name, "x-request-id") || !is_usable_id(header.value))
        continue;
      exchange.request_id_bytes =
          header.value.copy(exchange.request_id.data(), header.value.size());
      return;
    }
  }
  gateway_.ids_.write_next(exchange.began.wall(),
                           std::span{exchange.request_id}.first<RequestIds::kBytes>());
  exchange.request_id_bytes = RequestIds::kBytes;
}

}  // namespace sluice::gateway
