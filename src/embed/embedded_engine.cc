// sluice::Engine: the engine's state and its workers, as embedding programs see them.
//
// Edits come from any thread, one at a time; each publishes its new content.
#include "base/published.h"
#include "base/read_file.h"
#include "base/text.h"
#include "config/document.h"
#include "embed/engine_state.h"
#include "engine/key.h"
#include "rules/per_text.h"
#include <sluice/engine.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace sluice {
namespace {

const Clock& system_clock() noexcept {
  static const SystemClock kClock;
  return kClock;
}

embed::EngineConfiguration read(std::string_view text, std::string_view name,
                                config::Diagnostics& diagnostics) {
  embed::EngineConfiguration configuration =
      embed::read_engine_configuration(text, name, diagnostics);
  if (configuration.envoy) {
    diagnostics.error(
        {.message = "rules_from: {envoy: ...} is not for an embedded engine: nothing asks it there",
         .remedy = "write rules, or let `sluice serve` read it"});
  }
  return configuration;
}

// Claims and attributes as a caller gives them.
class Given final : public identity::Attributes {
 public:
  explicit Given(std::span<const HeaderView> all) noexcept : all_(all) {}
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept override {
    const auto found = std::ranges::find(all_, name, &HeaderView::name);
    return found == all_.end() ? std::string_view{} : found->value;
  }

 private:
  std::span<const HeaderView> all_;
};

std::string_view domain_of(const Caller& caller) noexcept {
  return caller.domain.empty() ? rules::kDefaultDomain : caller.domain;
}

// All clients without the value, and without an address, would share a counter.
std::optional<Diagnostic> missing_value(const rules::RuleSet& rules, rules::RuleNumber number,
                                        const RequestView& request,
                                        const identity::Identity& client) {
  const rules::Rule& rule = rules.rules()[number];
  if (rule.on_missing != rules::OnMissing::ip) return std::nullopt;
  const std::size_t mark = std::min(request.target.find('?'), request.target.size());
  const rules::Asked asked{
      .request = request,
      .domain = rule.domain,
      .host = {},
      .path = request.target.substr(0, mark),
      .query = request.target.substr(std::min(mark + 1, request.target.size())),
      .client = client};
  for (const rules::Per& per : rule.per) {
    engine::ValueScratch scratch;
    const bool is_address = per.kind == rules::Per::Kind::ip;
    const rules::MatchedPath path = rules.path(asked, {.rule = number});
    if (!is_address && !engine::value_of(per, asked, path, scratch).empty()) continue;
    return Diagnostic{
        .message = fmt::format("rule '{}' counts per {}, which the caller does not have", rule.name,
                               rules::per_text(per)),
        .remedy = is_address ? "give an address" : "give it, or an address to count instead"};
  }
  return std::nullopt;
}

}  // namespace

// ---- engine -----------------------------------------------------------------------------------

struct Engine::Inside {
  Inside(std::unique_ptr<embed::EngineState> opened, unsigned count)
      : state(std::move(opened)), workers(count) {
    publish();
  }

  // Publishes the content of a successful edit; its result tells success.
  template <class Edit>
  auto edit(Edit&& change) {
    const std::lock_guard guard{editing};
    auto result = std::forward<Edit>(change)(*state);
    if (result) publish();
    return result;
  }
  void publish() {
    published.publish(std::make_shared<const embed::EngineContent>(state->content()));
  }

  mutable std::mutex editing;  // guards the state's edits
  const std::unique_ptr<embed::EngineState> state;
  Published<embed::EngineContent> published;
  const unsigned workers;
};

Engine::Engine(std::unique_ptr<Inside> inside) noexcept : inside_(std::move(inside)) {}
Engine::~Engine() = default;

Parsed<std::unique_ptr<Engine>> Engine::from_text(std::string_view text, std::string_view name,
                                                  const EngineOptions& options) {
  config::Diagnostics diagnostics;
  const embed::EngineConfiguration configuration = read(text, name, diagnostics);
  std::unique_ptr<embed::EngineState> state;
  if (diagnostics.ok()) {
    const Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
    state = embed::EngineState::open(configuration, clock, diagnostics);
  }
  if (state == nullptr) return tl::unexpected(embed::all_of(diagnostics));
  const unsigned workers =
      options.workers > 0 ? options.workers : std::max(1U, std::thread::hardware_concurrency());
  return std::unique_ptr<Engine>{new Engine{std::make_unique<Inside>(std::move(state), workers)}};
}

Parsed<std::unique_ptr<Engine>> Engine::from_file(const std::string& file,
                                                  const EngineOptions& options) {
  const Parsed<std::string> text = read_trusted_file(file, config::DocumentOptions{}.bytes_max);
  if (!text) return tl::unexpected(text.error());
  return from_text(*text, file, options);
}

Parsed<void> Engine::load_text(std::string_view text, std::string_view name) {
  config::Diagnostics diagnostics;
  const embed::EngineConfiguration configuration = read(text, name, diagnostics);
  const bool replaced = diagnostics.ok() && inside_->edit([&](embed::EngineState& state) {
    return state.replace(configuration, diagnostics);
  });
  if (!replaced) return tl::unexpected(embed::all_of(diagnostics));
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
      .subject = *std::move(subject), .expires = client.expires, .note = client.note};
  if (client.kind == ListedClient::Kind::allow) {
    return inside_->edit([&](embed::EngineState& state) { return state.allow(std::move(entry)); });
  }
  if (client.kind == ListedClient::Kind::deny) {
    return inside_->edit([&](embed::EngineState& state) { return state.deny(std::move(entry)); });
  }
  const Parsed<std::uint32_t> permille = engine::parse_multiplier(client.multiplier);
  if (!permille) return tl::unexpected(permille.error());
  return inside_->edit([&](embed::EngineState& state) {
    return state.multiply({.subject = std::move(entry.subject),
                           .permille = *permille,
                           .expires = entry.expires,
                           .note = std::move(entry.note)});
  });
}

bool Engine::unlist(ListedClient::Kind kind, std::string_view subject) {
  const Parsed<engine::Subject> parsed = engine::Subject::parse(subject);
  if (!parsed) return false;
  return inside_->edit([&](embed::EngineState& state) {
    switch (kind) {
      case ListedClient::Kind::allow: return state.remove_allowed(*parsed);
      case ListedClient::Kind::deny: return state.remove_denied(*parsed);
      case ListedClient::Kind::override: return state.remove_override(*parsed);
    }
    return false;
  });
}

std::vector<ListedClient> Engine::listed() const {
  const embed::ExceptionsConfig all = [this] {
    const std::lock_guard guard{inside_->editing};
    return inside_->state->exceptions();
  }();
  std::vector<ListedClient> listed;
  const auto add_list = [&](ListedClient::Kind kind, const std::vector<engine::ListEntry>& list) {
    for (const engine::ListEntry& one : list) {
      listed.push_back({.kind = kind,
                        .subject = one.subject.written(),
                        .multiplier = {},
                        .expires = one.expires,
                        .note = one.note});
    }
  };
  add_list(ListedClient::Kind::allow, all.allow);
  add_list(ListedClient::Kind::deny, all.deny);
  for (const engine::Override& one : all.overrides) {
    listed.push_back({.kind = ListedClient::Kind::override,
                      .subject = one.subject.written(),
                      .multiplier = format_thousandths(one.permille),
                      .expires = one.expires,
                      .note = one.note});
  }
  return listed;
}

std::vector<BlockedClient> Engine::blocked() const {
  std::vector<BlockedClient> all;
  for (engine::BlockEntry& entry : inside_->state->blocks()) {
    all.push_back({.id = entry.block,
                   .rule = std::move(entry.rule),
                   .who = std::move(entry.label),
                   .since = entry.since,
                   .until = entry.until});
  }
  return all;
}

bool Engine::unblock(std::uint64_t id) { return inside_->state->unblock(id); }

// ---- workers ----------------------------------------------------------------------------------

struct EngineWorker::Inside {
  explicit Inside(Engine::Inside& of)
      : clock(of.state->clock()), published(of.published), worker(*of.state, of.workers) {
    refresh();
  }

  // Uses the newest content. Cheap if there is no new one.
  void refresh() {
    const std::uint64_t version = published.version();
    if (version == seen) [[likely]]
      return;
    seen = version;
    content = published.get();
    worker.use(*content);
  }
  // For a decision by the content in force now.
  [[nodiscard]] std::unique_ptr<Admission::Held> take() {
    refresh();
    return spare();
  }
  [[nodiscard]] std::unique_ptr<Admission::Held> spare();
  [[nodiscard]] std::optional<rules::RuleNumber> find(std::string_view rule,
                                                      const Caller& caller) const;
  // By the content as it is: a number is valid for the rules that it was found in, so nothing is
  // refreshed between the two.
  [[nodiscard]] Parsed<Admission> decide(std::string_view rule, const Caller& caller);

  const Clock& clock;
  const Published<embed::EngineContent>& published;
  embed::WorkerEngine worker;
  std::uint64_t seen = 0;
  std::shared_ptr<const embed::EngineContent> content;
  std::vector<std::unique_ptr<Admission::Held>> idle;  // for reuse
};

struct Admission::Held {
  engine::Op op;
  EngineWorker::Inside* of = nullptr;
  // Set when the op is over, as its rules may go. The memory of the string is reused.
  std::string rule;
  bool is_over = false;

  void end() {
    if (is_over) return;
    rule = op.rule != nullptr ? std::string_view{op.rule->name} : std::string_view{};
    is_over = true;
  }
};

std::unique_ptr<Admission::Held> EngineWorker::Inside::spare() {
  if (idle.empty()) {
    auto held = std::make_unique<Admission::Held>();
    held->of = this;
    return held;
  }
  std::unique_ptr<Admission::Held> held = std::move(idle.back());
  idle.pop_back();
  held->is_over = false;
  return held;
}

EngineWorker::EngineWorker(Engine& engine) : inside_(new Inside{*engine.inside_}) {}
EngineWorker::~EngineWorker() = default;

Admission EngineWorker::decide(const RequestView& request) {
  return decide(request, inside_->clock.now());
}

Admission EngineWorker::decide(const RequestView& request, Now now) {
  Admission admission;
  admission.held_ = inside_->take();
  (void)inside_->worker.decider().decide(admission.held_->op, request, now);
  inside_->worker.wait_for(admission.held_->op);
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
    inside_->worker.decider().decide_batch(std::span{ops}.first(count),
                                           requests.subspan(first, count), now);
    for (std::size_t i = 0; i < count; ++i) inside_->worker.wait_for(*ops[i]);
  }
}

Parsed<Admission> EngineWorker::decide(std::string_view rule, const Caller& caller) {
  inside_->refresh();
  return inside_->decide(rule, caller);
}

std::optional<rules::RuleNumber> EngineWorker::Inside::find(std::string_view rule,
                                                            const Caller& caller) const {
  return content->snapshot->rules().find(rule, domain_of(caller));
}

Parsed<Admission> EngineWorker::Inside::decide(std::string_view rule, const Caller& caller) {
  const std::optional<rules::RuleNumber> number = find(rule, caller);
  if (!number) {
    return mistake(fmt::format("there is no rule '{}' in the domain '{}'", rule, domain_of(caller)),
                   "name a rule of the file");
  }
  const RequestView request{.method = caller.method,
                            .host = {},
                            .target = caller.target,
                            .headers = caller.headers,
                            .peer = caller.address.value_or(IpAddress{}),
                            .tls_subject = {},
                            .domain = caller.domain,
                            .descriptor = caller.descriptor};
  const Given claims{caller.claims};
  const Given attributes{caller.attributes};
  const identity::Identity client{.address = caller.address.value_or(IpAddress{}),
                                  .user = caller.user,
                                  .api_key = caller.api_key,
                                  .tenant = caller.tenant,
                                  .tier = caller.tier,
                                  .country = caller.country,
                                  .asn = caller.asn,
                                  .proof = identity::Proof::good,
                                  .claims = &claims,
                                  .attributes = &attributes};
  if (!caller.address) {
    if (auto missing = missing_value(content->snapshot->rules(), *number, request, client)) {
      return tl::unexpected(*std::move(missing));
    }
  }
  Admission admission;
  admission.held_ = spare();
  (void)worker.decider().decide_by(*number, admission.held_->op, request, client, clock.now(),
                                   caller.cost);
  worker.wait_for(admission.held_->op);
  return admission;
}

bool EngineWorker::is_rate_limited(std::string_view rule, const Caller& caller) {
  inside_->refresh();
  if (!inside_->find(rule, caller)) return false;
  const Parsed<Admission> admission = inside_->decide(rule, caller);
  if (!admission) throw std::invalid_argument{admission.error().text()};
  return !admission->allowed();
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
  of.worker.decider().settle(held_->op, nullptr, of.clock.now());
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
  if (held_ != nullptr && held_->is_over) return held_->rule;
  const bool bound = held_ != nullptr && held_->op.rule != nullptr;
  return bound ? std::string_view{held_->op.rule->name} : std::string_view{};
}
const Decision& Admission::decision() const noexcept {
  return held_ == nullptr ? kNoDecision : held_->op.decision;
}

void Admission::released() {
  if (held_ != nullptr) held_->of->worker.decider().released(held_->op);
}

void Admission::abandon() {
  if (held_ == nullptr) return;
  held_->end();
  held_->of->worker.decider().abandon(held_->op, held_->of->clock.now());
}

void Admission::renew() {
  if (held_ == nullptr) return;
  held_->of->worker.decider().renew(held_->op, held_->of->clock.now());
}

void Admission::correct_cost(core::Cost actual) {
  if (held_ == nullptr) return;
  held_->of->worker.decider().correct_cost(held_->op, actual, held_->of->clock.now());
}

void Admission::report(const Response& response) {
  if (held_ == nullptr) return;
  const engine::ResponseView view{
      .status = response.status, .grpc_status = response.grpc_status, .headers = response.headers};
  held_->end();
  held_->of->worker.decider().settle(held_->op, &view, held_->of->clock.now());
}

}  // namespace sluice
