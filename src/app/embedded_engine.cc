// sluice::Engine: the room and its workers, as embedding programs see them.
#include "app/engine_room.h"
#include "base/read_file.h"
#include "base/text.h"
#include "config/document.h"
#include <sluice/engine.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice {
namespace {

const Clock& system_clock() noexcept {
  static const SystemClock kClock;
  return kClock;
}

Diagnostic all_of(const config::Diagnostics& diagnostics) {
  std::string text = diagnostics.text();
  while (text.ends_with('\n')) text.pop_back();
  return {.message = std::move(text), .remedy = {}};
}

}  // namespace

// ---- engine -----------------------------------------------------------------------------------

struct Engine::Inside {
  std::unique_ptr<app::EngineRoom> room;
};

Engine::Engine(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
Engine::~Engine() = default;

Parsed<std::unique_ptr<Engine>> Engine::from_text(std::string_view text, std::string_view name,
                                                  const EngineOptions& options) {
  config::Diagnostics diagnostics;
  const app::Configuration configuration = app::read_configuration(text, name, diagnostics);
  std::unique_ptr<app::EngineRoom> room;
  if (diagnostics.ok()) {
    const Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
    room = app::EngineRoom::open(configuration, clock, diagnostics);
  }
  if (room == nullptr) return tl::unexpected(all_of(diagnostics));
  return std::unique_ptr<Engine>{
      new Engine{std::make_unique<Inside>(Inside{.room = std::move(room)})}};
}

Parsed<std::unique_ptr<Engine>> Engine::from_file(const std::string& file,
                                                  const EngineOptions& options) {
  const Parsed<std::string> text = read_trusted_file(file, config::DocumentOptions{}.bytes_max);
  if (!text) return tl::unexpected(text.error());
  return from_text(*text, file, options);
}

Parsed<void> Engine::load_text(std::string_view text, std::string_view name) {
  config::Diagnostics diagnostics;
  const app::Configuration configuration = app::read_configuration(text, name, diagnostics);
  if (!diagnostics.ok() || !inside_->room->replace(configuration, diagnostics)) {
    return tl::unexpected(all_of(diagnostics));
  }
  return {};
}

Parsed<void> Engine::load_file(const std::string& file) {
  const Parsed<std::string> text = read_trusted_file(file, config::DocumentOptions{}.bytes_max);
  if (!text) return tl::unexpected(text.error());
  return load_text(*text, file);
}

Parsed<void> Engine::list(const ListedClient& client) {
  Parsed<engine::Subject> subject = engine::Subject::parse(client.subject);
  if (!subject) return tl::unexpected(std::move(subject.error()));
  engine::ListEntry entry{
      .subject = *std::move(subject), .until = client.until, .note = client.note};
  if (client.kind == ListedClient::Kind::allow) return inside_->room->allow(std::move(entry));
  if (client.kind == ListedClient::Kind::deny) return inside_->room->deny(std::move(entry));
  const Parsed<std::uint32_t> permille = engine::parse_factor(client.factor);
  if (!permille) return tl::unexpected(permille.error());
  return inside_->room->multiply({.subject = std::move(entry.subject),
                                  .permille = *permille,
                                  .until = entry.until,
                                  .note = std::move(entry.note)});
}

bool Engine::unlist(ListedClient::Kind kind, std::string_view subject) {
  const Parsed<engine::Subject> parsed = engine::Subject::parse(subject);
  if (!parsed) return false;
  switch (kind) {
    case ListedClient::Kind::allow: return inside_->room->remove_allowed(*parsed);
    case ListedClient::Kind::deny: return inside_->room->remove_denied(*parsed);
    case ListedClient::Kind::override: return inside_->room->remove_override(*parsed);
  }
  return false;
}

std::vector<ListedClient> Engine::listed() const {
  const app::ExceptionsConfig all = inside_->room->exceptions();
  std::vector<ListedClient> listed;
  const auto add_list = [&](ListedClient::Kind kind, const std::vector<engine::ListEntry>& list) {
    for (const engine::ListEntry& one : list) {
      listed.push_back({.kind = kind,
                        .subject = one.subject.written(),
                        .factor = {},
                        .until = one.until,
                        .note = one.note});
    }
  };
  add_list(ListedClient::Kind::allow, all.allow);
  add_list(ListedClient::Kind::deny, all.deny);
  for (const engine::Override& one : all.overrides) {
    listed.push_back({.kind = ListedClient::Kind::override,
                      .subject = one.subject.written(),
                      .factor = engine::format_factor(one.permille),
                      .until = one.until,
                      .note = one.note});
  }
  return listed;
}

std::vector<BlockedClient> Engine::blocked() const {
  std::vector<BlockedClient> all;
  for (engine::BlockEntry& entry : inside_->room->blocks()) {
    all.push_back({.id = entry.block,
                   .rule = std::move(entry.rule),
                   .who = std::move(entry.label),
                   .since = entry.since,
                   .until = entry.until});
  }
  return all;
}

bool Engine::unblock(std::uint64_t id) { return inside_->room->unblock(id); }

// ---- workers ----------------------------------------------------------------------------------

struct EngineWorker::Inside {
  app::EngineRoom& room;
  app::RoomWorker worker;
  std::vector<std::unique_ptr<Admission::Held>> idle;  // to be used again

  [[nodiscard]] std::unique_ptr<Admission::Held> take();
};

struct Admission::Held {
  engine::Op op;
  EngineWorker::Inside* of = nullptr;
};

std::unique_ptr<Admission::Held> EngineWorker::Inside::take() {
  worker.refresh();
  if (idle.empty()) {
    auto held = std::make_unique<Admission::Held>();
    held->of = this;
    return held;
  }
  std::unique_ptr<Admission::Held> held = std::move(idle.back());
  idle.pop_back();
  return held;
}

EngineWorker::EngineWorker(Engine& engine)
    : inside_(new Inside{.room = *engine.inside_->room,
                         .worker = app::RoomWorker{*engine.inside_->room, 1},
                         .idle = {}}) {}
EngineWorker::~EngineWorker() = default;

Admission EngineWorker::decide(const RequestView& request) {
  return decide(request, inside_->room.clock().now());
}

Admission EngineWorker::decide(const RequestView& request, Now now) {
  Admission admission;
  admission.held_ = inside_->take();
  (void)inside_->worker.worker().decide(admission.held_->op, request, now);
  return admission;
}

void EngineWorker::decide(std::span<const RequestView> requests, std::span<Admission> admissions,
                          Now now) {
  constexpr std::size_t kAtOnce = 16;
  for (std::size_t first = 0; first < requests.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, requests.size() - first);
    std::array<engine::Op*, kAtOnce> ops;
    for (std::size_t i = 0; i < count; ++i) {
      Admission& admission = admissions[first + i];
      admission = Admission{};
      admission.held_ = inside_->take();
      ops[i] = &admission.held_->op;
    }
    inside_->worker.worker().decide_batch(std::span{ops}.first(count),
                                          requests.subspan(first, count), now);
  }
}

std::optional<Admission> EngineWorker::decide(std::string_view rule, const Caller& caller) {
  std::unique_ptr<Admission::Held> held = inside_->take();
  const rules::RuleSet& rules = inside_->worker.content().snapshot->rules();
  const std::optional<rules::RuleNumber> number = rules.find(rule);
  if (!number) {
    inside_->idle.push_back(std::move(held));
    return std::nullopt;
  }
  const RequestView request{.method = {},
                            .host = {},
                            .target = {},
                            .headers = {},
                            .peer = caller.address,
                            .tls_subject = {},
                            .domain = {},
                            .descriptor = caller.descriptor};
  const identity::Identity client{.address = caller.address,
                                  .user = caller.user,
                                  .api_key = caller.api_key,
                                  .tenant = caller.tenant,
                                  .tier = caller.tier,
                                  .proof = identity::Proof::good};
  (void)inside_->worker.worker().decide_by(*number, held->op, request, client,
                                           inside_->room.clock().now());
  Admission admission;
  admission.held_ = std::move(held);
  return admission;
}

bool EngineWorker::is_rate_limited(std::string_view rule, const Caller& caller) {
  const std::optional<Admission> admission = decide(rule, caller);
  return admission && !admission->allowed();
}

// ---- admissions -------------------------------------------------------------------------------

namespace {
const Decision kNoDecision;
}

Admission::Admission() noexcept = default;
Admission::Admission(Admission&& other) noexcept : held_(std::move(other.held_)) {}

Admission& Admission::operator=(Admission&& other) noexcept {
  std::swap(held_, other.held_);
  return *this;
}

Admission::~Admission() {
  if (held_ == nullptr) return;
  EngineWorker::Inside& of = *held_->of;
  of.worker.worker().settle(held_->op, nullptr, of.room.clock().now());
  of.idle.push_back(std::move(held_));
}

bool Admission::allowed() const noexcept {
  return held_ == nullptr || held_->op.action == engine::Action::pass;
}
std::uint16_t Admission::status() const noexcept {
  return held_ == nullptr ? 200 : held_->op.status;
}
bool Admission::drops() const noexcept {
  return held_ != nullptr && held_->op.action == engine::Action::drop;
}
std::string_view Admission::reason() const noexcept {
  return held_ == nullptr ? std::string_view{} : to_string(held_->op.reason);
}
std::string_view Admission::rule() const noexcept {
  const bool bound = held_ != nullptr && held_->op.rule != nullptr;
  return bound ? std::string_view{held_->op.rule->name} : std::string_view{};
}
const Decision& Admission::decision() const noexcept {
  return held_ == nullptr ? kNoDecision : held_->op.decision;
}

void Admission::released() {
  if (held_ != nullptr) held_->of->worker.worker().released(held_->op);
}

void Admission::abandon() {
  if (held_ == nullptr) return;
  held_->of->worker.worker().abandon(held_->op, held_->of->room.clock().now());
}

void Admission::renew() {
  if (held_ == nullptr) return;
  held_->of->worker.worker().renew(held_->op, held_->of->room.clock().now());
}

void Admission::correct_cost(core::Cost actual) {
  if (held_ == nullptr) return;
  held_->of->worker.worker().correct_cost(held_->op, actual, held_->of->room.clock().now());
}

void Admission::report(const Response& response) {
  if (held_ == nullptr) return;
  const engine::ResponseView view{
      .status = response.status, .grpc_status = response.grpc_status, .headers = response.headers};
  held_->of->worker.worker().settle(held_->op, &view, held_->of->room.clock().now());
}

}  // namespace sluice
