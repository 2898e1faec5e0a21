#include "cli/explain/explain.h"

#include "app/configuration.h"
#include "app/offline_engine.h"
#include "base/duration.h"
#include "base/read_file.h"
#include "base/text.h"
#include "cli/decision_json.h"
#include "cli/rule_text.h"
#include "cli/terminal.h"
#include "identity/host.h"
#include "identity/path.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "explain";
constexpr std::size_t kFileBytesMax = 16U << 20U;

// What was asked on the command line, taken apart.
struct Request {
  std::string method = "GET";
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<HeaderView> header_views;
  IpAddress ip;
  std::string host;
  std::string domain;

  [[nodiscard]] RequestView view() const {
    return {.method = method,
            .host = host,
            .target = target,
            .headers = header_views,
            .peer = ip,
            .tls_subject = {},
            .domain = domain,
            .descriptor = {}};
  }
};

Parsed<Request> parse_request(const ExplainOptions& options) {
  Request request;
  request.host = options.host;
  request.domain = options.domain;
  const std::size_t blank = options.request.find(' ');
  if (blank == std::string::npos) {
    request.target = options.request;
  } else {
    request.method = options.request.substr(0, blank);
    request.target = options.request.substr(blank + 1);
  }
  if (!request.target.starts_with('/')) {
    return mistake(fmt::format("{} is no request", sluice::quoted(options.request)),
                   "write a method and a path, as in 'GET /v1/users'");
  }
  for (const std::string& header : options.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0) {
      return mistake(fmt::format("{} is no header", sluice::quoted(header)), "write 'name: value'");
    }
    std::string value = header.substr(colon + 1);
    value.erase(0, value.find_first_not_of(" \t"));
    request.headers.emplace_back(header.substr(0, colon), std::move(value));
  }
  for (const auto& [name, value] : request.headers) request.header_views.push_back({name, value});
  const auto ip = IpAddress::parse(options.ip);
  if (!ip) {
    return mistake(fmt::format("{} is no address", sluice::quoted(options.ip)),
                   "write 192.0.2.1, or 2001:db8::1");
  }
  request.ip = *ip;
  return request;
}

// One rule's part in the decision.
struct RuleStory {
  const rules::Rule* rule = nullptr;
  std::string_view mismatch;  // empty: it matched
  bool lost = false;          // a more specific rule of its group won
  std::vector<const engine::LimitOutcome*> limits;
};

struct Story {
  std::string path;
  std::string query;
  std::string host;
  identity::Identity client;
  std::string address;
  std::vector<RuleStory> rules;
};

std::string_view proof_text(identity::Proof proof) {
  switch (proof) {
    case identity::Proof::none: return "anonymous";
    case identity::Proof::good: return "proven";
    case identity::Proof::unknown: return "unknown key";
    case identity::Proof::invalid: return "invalid token";
    case identity::Proof::limited: return "too many failures";
  }
  return {};
}

std::string decision_text(const Decision& decision) {
  if (decision.verdict == Verdict::never) {
    return fmt::format("costs more than the {} there ever are", decision.limit);
  }
  std::string text = fmt::format("{} of {} left", decision.remaining, decision.limit);
  if (decision.reset_after > Nanos{0}) {
    text += fmt::format(", all again in {}", approximate_duration(decision.reset_after));
  }
  if (decision.retry_after) {
    text += fmt::format(", next in {}", approximate_duration(*decision.retry_after));
  }
  if (decision.delay > Nanos{0}) {
    text += fmt::format(", held for {}", approximate_duration(decision.delay));
  }
  return text;
}

// ---- for people -------------------------------------------------------------------------------

std::string client_text(const Story& story) {
  std::string text = fmt::format("{}, {}", story.address, proof_text(story.client.proof));
  const auto add = [&text](std::string_view name, std::string_view value) {
    if (!value.empty()) text += fmt::format(", {} {}", name, value);
  };
  add("user", story.client.user);
  add("api_key", story.client.api_key);
  add("tenant", story.client.tenant);
  add("tier", story.client.tier);
  add("country", story.client.country);
  if (story.client.asn != 0) add("asn", std::to_string(story.client.asn));
  if (!story.client.why.empty()) text += fmt::format(" ({})", story.client.why);
  return text;
}

std::string rule_text(const RuleStory& story, const Output& output) {
  if (!story.mismatch.empty()) {
    return fmt::format("  {}-{} {}: {} does not match\n", output.style(kDim), output.style(kPlain),
                       story.rule->name, story.mismatch);
  }
  if (story.lost) {
    return fmt::format("  - {}: another rule of group '{}' is more specific\n", story.rule->name,
                       story.rule->group);
  }
  const bool shadow = story.rule->over.kind == rules::Over::Kind::shadow;
  std::string text =
      fmt::format("  {}+{} {} per {}{}\n", output.style(kGreen), output.style(kPlain),
                  story.rule->name, per_text(*story.rule), shadow ? ", shadow: it only tells" : "");
  for (const engine::LimitOutcome* one : story.limits) {
    text += fmt::format("      {}: {}{}\n", limit_text(*one->limit),
                        one->decision.allowed() ? "" : "full, ", decision_text(one->decision));
  }
  return text;
}

std::string verdict_text(const engine::Op& op, const Output& output) {
  const bool passes = op.action == engine::Action::pass;
  std::string text = fmt::format("{}{}{}", output.style(passes ? kGreen : kRed),
                                 passes                              ? "passes"
                                 : op.action == engine::Action::drop ? "dropped"
                                                                     : "rejected",
                                 output.style(kPlain));
  if (op.action == engine::Action::reject) text += fmt::format(" with {}", op.status);
  text += fmt::format(": {}", engine::to_string(op.reason));
  if (op.rule == nullptr) return text;
  if (passes) {
    return text + fmt::format(", tightest is {}, {}", op.rule->name, decision_text(op.decision));
  }
  if (op.reason == engine::Reason::blocked) {
    return text + fmt::format(" by {} for another {}", op.rule->name,
                              approximate_duration(op.decision.reset_after));
  }
  return text + fmt::format(" by {}, {}", op.rule->name, decision_text(op.decision));
}

void tell(const Request& request, const Story& story, const engine::Op& op, Output& output) {
  output.write(fmt::format("request   {} {}\n", request.method, request.target));
  output.write(fmt::format("path      {}\n", story.path));
  output.write(fmt::format("host      {}\n", story.host));
  output.write(fmt::format("client    {}\n", client_text(story)));
  output.write("rules\n");
  for (const RuleStory& rule : story.rules) output.write(rule_text(rule, output));
  output.write(fmt::format("decision  {}\n", verdict_text(op, output)));
}

// ---- for programs -----------------------------------------------------------------------------

std::string json_of(const Decision& decision) {
  return fmt::format(R"({{"allowed":{},{}}})", decision.allowed(), decision_members(decision));
}

std::string json_of(const RuleStory& story) {
  std::string limits;
  for (const engine::LimitOutcome* one : story.limits) {
    limits += fmt::format(R"({}{{"limit":{},"decision":{}}})", limits.empty() ? "" : ",",
                          json_string(limit_text(*one->limit)), json_of(one->decision));
  }
  return fmt::format(R"({{"name":{},"matched":{},"mismatch":{},"lost_in_group":{},"limits":[{}]}})",
                     json_string(story.rule->name), story.mismatch.empty(),
                     story.mismatch.empty() ? "null" : json_string(story.mismatch), story.lost,
                     limits);
}

void tell_json(const Request& request, const Story& story, const engine::Op& op, Output& output) {
  const auto or_null = [](std::string_view text) {
    return text.empty() ? std::string{"null"} : json_string(text);
  };
  std::string rules;
  for (const RuleStory& rule : story.rules) {
    rules += (rules.empty() ? "" : ",") + json_of(rule);
  }
  constexpr std::array<std::string_view, 3> kActions{"pass", "reject", "drop"};
  output.write(fmt::format(
      R"({{"request":{{"method":{},"target":{},"path":{},"host":{}}},)"
      R"("client":{{"address":{},"proof":{},"user":{},"api_key":{},"tenant":{},"tier":{},)"
      R"("country":{},"asn":{}}},)"
      R"("rules":[{}],"action":{},"reason":{},"status":{},"rule":{},"decision":{}}})"
      "\n",
      json_string(request.method), json_string(request.target), json_string(story.path),
      json_string(story.host), json_string(story.address),
      json_string(proof_text(story.client.proof)), or_null(story.client.user),
      or_null(story.client.api_key), or_null(story.client.tenant), or_null(story.client.tier),
      or_null(story.client.country),
      story.client.asn != 0 ? std::to_string(story.client.asn) : "null", rules,
      json_string(kActions[static_cast<std::size_t>(op.action)]),
      json_string(engine::to_string(op.reason)), op.status,
      op.rule != nullptr ? json_string(op.rule->name) : "null", json_of(op.decision)));
}

// ---- the story --------------------------------------------------------------------------------

// What the worker went through, told again slowly.
Story story_of(const app::OfflineEngine& engine, const identity::Identifier& identifier,
               const Request& request, const engine::Op& op, Now now,
               identity::IdentifierScratch& scratch) {
  Story story;
  const RequestView view = request.view();
  std::array<char, identity::kPathScratchBytes> path;
  std::array<char, identity::kHostScratchBytes> host;
  story.host = identity::normalise_host(view.host, host).value_or("");
  const bool ignores_case = engine.snapshot().rules().ignore_case().holds_for(story.host);
  const identity::Target target =
      identity::normalise_target(view.target, {.ignore_case = ignores_case}, path);
  story.path = target.ok() ? std::string{target.route()}
                           : fmt::format("cannot be told: {}", to_string(target.fault));
  story.query = target.query;
  story.client = identifier.identify(view, now, scratch);
  story.address = story.client.address.text();
  if (!target.ok()) return story;

  const rules::RuleSet& rules = engine.snapshot().rules();
  const rules::Asked asked{.request = view,
                           .domain = view.domain,
                           .host = story.host,
                           .path = target.route(),
                           .query = target.query,
                           .client = story.client};
  std::vector<bool> won(rules.rules().size());
  for (const rules::Phase phase : {rules::Phase::before_auth, rules::Phase::after_auth}) {
    auto matches = std::make_unique<rules::Matches>();
    rules.match(asked, phase, *matches);
    for (const rules::Matched& one : matches->span()) won[one.rule] = true;
  }
  for (rules::RuleNumber number = 0; number < rules.rules().size(); ++number) {
    const rules::Rule& rule = engine.snapshot().rules().rules()[number];
    RuleStory& one = story.rules.emplace_back(
        RuleStory{.rule = &rule, .mismatch = rules.mismatch(number, asked), .limits = {}});
    one.lost = one.mismatch.empty() && !won[number];
    for (const engine::LimitOutcome& outcome : op.limits()) {
      if (outcome.rule == &rule) one.limits.push_back(&outcome);
    }
  }
  return story;
}

ExitCode explain_request(const ExplainOptions& options, const app::Configuration& configuration) {
  const Parsed<Request> request = parse_request(options);
  if (!request) {
    complain(kCommand, request.error().text());
    return ExitCode::usage;
  }
  config::Diagnostics diagnostics;
  const SystemClock clock;
  const Now now = clock.now();
  const auto identifier = app::load_clients(configuration.clients, diagnostics);
  if (identifier == nullptr) {
    fmt::print(stderr, "{}", diagnostics.text());
    return ExitCode::failure;
  }
  auto engine = app::OfflineEngine::start(configuration, store::Mapping::kMemoryMin, now);
  if (!engine) {
    complain(kCommand, engine.error().text());
    return ExitCode::failure;
  }
  engine::Worker& worker = (*engine)->worker();
  worker.use(identifier, configuration.clients.policy);

  auto op = std::make_unique<engine::Op>();
  for (std::uint32_t i = 0; i < options.repeat; ++i) {
    (void)worker.decide(*op, request->view(), now);
    if (i + 1 < options.repeat) worker.settle(*op, nullptr, now);
  }
  identity::IdentifierScratch scratch;
  const Story story = story_of(**engine, *identifier, *request, *op, now, scratch);
  Output output;
  if (options.json) {
    tell_json(*request, story, *op, output);
  } else {
    tell(*request, story, *op, output);
  }
  const bool passes = op->action == engine::Action::pass;
  return output.finish(kCommand, passes ? ExitCode::ok : ExitCode::negative);
}

}  // namespace

ExitCode explain(const ExplainOptions& options) {
  const Parsed<std::string> text = sluice::read_file(options.config, kFileBytesMax);
  if (!text) {
    complain(kCommand, text.error().text());
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  const app::Configuration configuration =
      app::read_configuration(*text, options.config, diagnostics);
  if (!diagnostics.ok()) {
    fmt::print(stderr, "{}", diagnostics.text());
    return ExitCode::failure;
  }
  if (!options.descriptors.empty()) return explain_descriptors(options, configuration);
  return explain_request(options, configuration);
}

}  // namespace sluice::cli
