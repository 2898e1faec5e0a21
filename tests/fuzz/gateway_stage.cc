#include "gateway_stage.h"

#include "fuzz.h"
#include "net/tls_client.h"
#include "rules/parse_rules.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::fuzz {
namespace {

using namespace std::chrono_literals;

// Of every kind one: all that makes a gateway hold, refuse, drop, count later or give back.
constexpr std::string_view kRules = R"(
rules:
  - {name: each, per: ip, limit: {rate: 30/10s, burst: 30}}
  - {name: paced, match: {path: /queue/**}, limit: {rate: 1/1s, algorithm: leaky_bucket},
     action: {queue: {max_delay: 3s, max_queued: 2}}}
  - {name: punished, match: {path: /block/**}, per: ip, limit: 1/10s, block: {duration: 20s},
     action: {reject: {status: 403, body: go away}}}
  - {name: failures, match: {path: /login}, per: ip, limit: {rate: 1/10s, algorithm: sliding_log},
     count: {status: [401, 403]}}
  - {name: successes, match: {path: /after}, limit: 2/10s, count: {status: [200], when: after}}
  - {name: calls, match: {path: /call}, limit: 2/10s, count: {grpc_status: [16]}}
  - {name: at-once, match: {path: /few/**}, limit: {max_concurrent: 2, slot_ttl: 30s}}
  - {name: dropped, match: {path: /drop}, limit: 1/10s, action: drop}
  - {name: watched, match: {path: /queue/**}, limit: 1/10s, action: shadow}
  - {name: strict, match: {path: /closed}, limit: 9/10s, on_failure: closed}
  - {name: lenient, match: {path: /open}, limit: 9/10s, on_failure: open}
)";

net::Listener listen(const std::string& path) {
  return net::listen_on(net::Endpoint::parse("unix:" + path).value()).value();
}

std::shared_ptr<const engine::Snapshot> make_rules(store::Limits& limits, Now now) {
  config::Diagnostics diagnostics;
  rules::RuleList list = rules::parse_rules_text(kRules, "fuzz", diagnostics);
  if (!diagnostics.ok()) std::fputs(diagnostics.text().c_str(), stderr);
  expect(diagnostics.ok(), "the target's own rules can be read");
  return engine::Snapshot::make(std::move(list), limits, now).value();
}

std::shared_ptr<const identity::Identifier> make_identifier() {
  identity::IdentifierConfig config;
  config.address.source = identity::AddressSource::x_forwarded_for;
  config.address.trusted_proxies = {IpRange::parse("10.0.0.0/8").value()};
  return identity::Identifier::create(std::move(config)).value();
}

gateway::ServerOptions server(const std::string& path, std::uint32_t weight = 1) {
  return {.endpoint = net::Endpoint::parse("unix:" + path).value(), .weight = weight};
}

gateway::RouteOptions route(std::string_view path, std::size_t upstream) {
  return {.hosts = {}, .path = rules::PathTemplate::parse(path).value(), .upstream = upstream};
}

std::shared_ptr<const frontend::Answers> make_answers() {
  return std::make_shared<const frontend::Answers>(frontend::RateHeaders::create({}).value());
}

}  // namespace

// ---- the store --------------------------------------------------------------------------------

// As a shared store that cannot be reached: every other group is open meanwhile.
void FickleStore::fail(store::Call& call) noexcept {
  call.admitted = true;
  for (store::Group& group : call.all_groups()) {
    const bool is_open = (++failed_ % 2) == 0;
    group.verdict = is_open ? store::GroupVerdict::open : store::GroupVerdict::closed;
    group.source = is_open ? store::Source::open : store::Source::closed;
    call.admitted &= is_open;
  }
}

void FickleStore::answer(bool fails, Now now) noexcept {
  while (!waiting_.empty()) {
    store::Call& call = *waiting_.front();
    waiting_.pop_front();
    if (fails) {
      fail(call);
    } else {
      (void)StoreBehind::decide_all(call, now);
    }
    call.completed(call);
  }
}

store::Completion FickleStore::decide_all(store::Call& call, Now now) noexcept {
  if (!answers_later || call.completed == nullptr) return StoreBehind::decide_all(call, now);
  waiting_.push_back(&call);
  return store::Completion::later;
}

void FickleStore::cancel(store::Call& call, Now /*now*/) noexcept {
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), &call), waiting_.end());
}

// ---- the stage --------------------------------------------------------------------------------

Stage::Stage()
    : listeners{listen(folder.file("one")), listen(folder.file("two"))},
      tls(net::TlsClient::load({.verify = false, .ca_file = {}, .certificate = {}}).value()),
      table(
          store::LocalStore::open({.mapping = {.memory = store::Mapping::kMemoryMin}}, clock.now())
              .value()),
      snapshots{make_rules(limits, clock.now()), make_rules(limits, clock.now())} {
  worker.use(make_identifier());
  worker.use(snapshots[0]);
}

// Three upstreams: one with a server that is not there beside the one that is, one that is slow to
// forgive and named otherwise, and one under TLS, where connecting takes a while.
const std::shared_ptr<const gateway::GatewayOptions>& Stage::options(Variant variant) {
  std::shared_ptr<const gateway::GatewayOptions>& known = made[variant.bits];
  if (known != nullptr) return known;
  gateway::GatewayOptions options;
  options.upstreams.resize(3);
  options.upstreams[0].name = "app";
  options.upstreams[0].servers = {server(folder.file("one"), 3), server(folder.file("nobody"))};
  options.upstreams[1].name = "other";
  options.upstreams[1].servers = {server(folder.file("two")), server(folder.file("one"))};
  options.upstreams[1].balance = gateway::Balance::client_hash;
  options.upstreams[1].keepalive_connections = 1;
  options.upstreams[1].request_timeout = 20s;
  options.upstreams[1].host_header = "inner.example";
  options.upstreams[2].name = "secret";
  options.upstreams[2].servers = {server(folder.file("two"))};
  options.upstreams[2].balance = gateway::Balance::least_connections;
  options.upstreams[2].tls = tls;
  options.routes = {route("/few/**", 1), route("/b/**", 1), route("/tls/**", 2), route("/**", 0)};
  options.answers = make_answers();
  options.trusted_proxies = identity::IpRangeSet{
      std::array{IpRange::parse("10.0.0.0/8").value(), IpRange::parse("192.0.2.0/24").value()}};
  options.forwarded_headers = variant.forwarded();
  options.generate_traces = variant.generate_traces();
  options.trusts_request_ids = variant.trusts_ids();
  if (variant.small_bodies()) options.max_body_size = 100;
  if (variant.crowded()) {
    options.keepalive_requests = 3;
    options.max_connections_per_worker = 3;
    options.max_connections_per_ip = 2;
    options.upstreams[0].keepalive_connections = 0;
  }
  return known = std::make_shared<const gateway::GatewayOptions>(std::move(options));
}

void Stage::swap_rules() {
  std::swap(snapshots[0], snapshots[1]);
  worker.use(snapshots[0]);
}

void Stage::expect_at_rest() {
  for (int i = 0; i < 2; ++i) {
    swap_rules();
    const engine::Snapshot& retired = *snapshots[1];
    expect(snapshots[1].use_count() == 1, "no request holds on to rules that are not in use");
    for (rules::RuleNumber rule = 0; rule < retired.rules().rules().size(); ++rule) {
      const auto& held = retired.plan(rule).held;
      expect(held == nullptr || held->load() == 0, "no place in a queue is taken");
    }
  }
  expect_no_lease();
}

// As many as may be in flight can be.
void Stage::expect_no_lease() {
  const RequestView request{.method = "GET",
                            .host = "probe",
                            .target = "/few/",
                            .headers = {},
                            .peer = IpAddress::v4(0xc6336401),
                            .tls_subject = {},
                            .domain = {},
                            .descriptor = {}};
  for (engine::Op& op : probes) {
    (void)worker.decide(op, request, clock.now());
    expect(op.action == engine::Action::pass, "nothing is in flight any more");
  }
  for (engine::Op& op : probes) worker.settle(op, nullptr, clock.now());
}

void Stage::forget() {
  store.answers_later = false;
  clock.advance(60s);  // longer than every window
  loop->turn(Nanos{0});
}

}  // namespace sluice::fuzz
