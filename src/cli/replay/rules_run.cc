#include "cli/replay/rules_run.h"

#include "app/config/configuration.h"
#include "base/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::size_t kRulesFileBytesMax = 16U << 20U;
constexpr std::size_t kTableBytes = 256U << 20U;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Claims that a log says were verified.
class LoggedClaims final : public identity::Attributes {
 public:
  explicit LoggedClaims(const Pairs& claims) noexcept : claims_(claims) {}

  [[nodiscard]] std::string_view find(std::string_view name) const noexcept override {
    const auto found = std::ranges::find(claims_, name, &Pairs::value_type::first);
    return found == claims_.end() ? std::string_view{} : std::string_view{found->second};
  }

 private:
  const Pairs& claims_;
};

std::vector<HeaderView> views_of(const Pairs& headers) {
  std::vector<HeaderView> views;
  for (const auto& [name, value] : headers) views.push_back({name, value});
  return views;
}

// A Cookie line as a client would have sent it.
std::string cookie_line(const Pairs& cookies) {
  std::string line;
  for (const auto& [name, value] : cookies) {
    line += fmt::format("{}{}={}", line.empty() ? "" : "; ", name, value);
  }
  return line;
}

identity::Identity client_of(const LoggedRequest& logged, const LoggedClaims& claims) {
  identity::Identity client;
  client.address = logged.ip;
  client.user = logged.user;
  client.api_key = logged.api_key;
  client.tenant = logged.tenant;
  client.tier = logged.tier;
  client.country = logged.country;
  client.asn = logged.asn;
  client.through_trusted = logged.through_trusted;
  if (!logged.claims.empty()) client.claims = &claims;
  const bool known = !logged.user.empty() || !logged.api_key.empty() || !logged.claims.empty();
  client.proof = known ? identity::Proof::good : identity::Proof::none;
  return client;
}

}  // namespace

Parsed<std::unique_ptr<RulesRun>> RulesRun::start(const std::string& file, Now now) {
  const Parsed<std::string> text = sluice::read_file(file, kRulesFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  config::Diagnostics diagnostics;
  const app::Configuration configuration = app::read_configuration(*text, file, diagnostics);
  if (!diagnostics.ok()) {
    return mistake(fmt::format("{} has mistakes\n{}", file, diagnostics.text()),
                   "'sluice check' says the same");
  }
  const std::size_t memory = std::max(configuration.state.memory, kTableBytes);
  auto engine = embed::OfflineEngine::start(configuration, memory, now);
  if (!engine) return tl::unexpected(std::move(engine.error()));
  auto run = std::make_unique<RulesRun>();
  run->engine_ = *std::move(engine);
  return run;
}

RuleSum RulesRun::sum_of(const rules::Rule& rule) const {
  const auto found = by_rule_.find(&rule);
  return found == by_rule_.end() ? RuleSum{} : found->second.sum;
}

void RulesRun::settle(engine::Op& op, const Response& response, Now now) {
  const std::vector<HeaderView> headers = views_of(response.headers);
  const engine::ResponseView view{
      .status = response.status, .grpc_status = response.grpc_status, .headers = headers};
  engine_->worker().settle(op, response.status != 0 ? &view : nullptr, now);
}

void RulesRun::settle_until(MonoTime now) {
  while (!under_way_.empty() && under_way_.top().until <= now) {
    // The queue hands out constant elements; this one is about to go.
    auto& first =
        const_cast<UnderWay&>(under_way_.top());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    settle(*first.op, first.response, {.mono = first.until, .wall_offset = Nanos{0}});
    spare_.push_back(std::move(first.op));
    under_way_.pop();
  }
}

RulesRun::Counted& RulesRun::counted(const rules::Rule& rule) {
  Counted& one = by_rule_[&rule];
  if (std::exchange(one.request, sum_.requests) != sum_.requests) ++one.sum.requests;
  return one;
}

void RulesRun::count(const engine::Op& op) {
  ++sum_.requests;
  const bool passes = op.action == engine::Action::pass;
  if (passes) ++sum_.allowed;
  ++sum_.reasons[std::string{engine::to_string(op.reason)}];
  for (const engine::LimitOutcome& outcome : op.limits()) {
    Counted& rule = counted(*outcome.rule);
    if (outcome.decision.allowed()) continue;
    if (std::exchange(rule.objection, sum_.requests) != sum_.requests) ++rule.sum.objected;
  }
  if (passes || op.rule == nullptr) return;
  Counted& rule = counted(*op.rule);
  ++(op.reason == engine::Reason::blocked ? rule.sum.blocked : rule.sum.rejected);
}

RulesVerdict RulesRun::decide(const LoggedRequest& logged, Now now) {
  settle_until(now.mono);
  std::vector<HeaderView> headers = views_of(logged.headers);
  const std::string cookies = cookie_line(logged.cookies);
  if (!cookies.empty()) headers.push_back({.name = "cookie", .value = cookies});
  std::vector<DescriptorEntry> descriptor;
  for (const auto& [key, value] : logged.descriptor) descriptor.push_back({key, value});
  const RequestView request{.method = logged.method,
                            .host = logged.host,
                            .target = logged.target,
                            .headers = headers,
                            .peer = logged.ip,
                            .tls_subject = {},
                            .domain = logged.domain,
                            .descriptor = descriptor};
  const LoggedClaims claims{logged.claims};

  if (spare_.empty()) spare_.push_back(std::make_unique<engine::Op>());
  std::unique_ptr<engine::Op> op = std::move(spare_.back());
  spare_.pop_back();
  (void)engine_->worker().decide(*op, request, client_of(logged, claims), now);
  count(*op);
  const RulesVerdict verdict{
      .action = op->action,
      .status = op->action == engine::Action::reject ? op->status : std::uint16_t{0},
      .reason = engine::to_string(op->reason),
      .rule = op->rule != nullptr ? std::string_view{op->rule->name} : "",
      .decision = op->decision};
  Response response{.status = logged.status,
                    .grpc_status = logged.grpc_status,
                    .headers = logged.response_headers};
  if (verdict.passes() && logged.duration > Nanos{0}) {
    under_way_.push({.until = now.mono + logged.duration,
                     .response = std::move(response),
                     .op = std::move(op)});
  } else {
    settle(*op, verdict.passes() ? response : Response{}, now);
    spare_.push_back(std::move(op));
  }
  return verdict;
}

}  // namespace sluice::cli
