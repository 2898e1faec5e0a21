// Descriptors through the trees of envoyproxy/ratelimit that a configuration names.
#include "app/config/configuration.h"
#include "base/text.h"
#include "cli/explain/explain.h"
#include "cli/explain/explained_request.h"
#include "cli/terminal.h"
#include "embed/offline_envoy.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace sluice::cli {
namespace {

using engine::EnvoyCode;
using engine::EnvoyStatus;

constexpr std::string_view kDescriptorsCommand = "explain";

using Entries = std::vector<DescriptorEntry>;

Parsed<std::vector<Entries>> parse_descriptors(const ExplainOptions& options) {
  std::vector<Entries> all;
  for (const std::vector<std::string>& words : options.descriptors) {
    Parsed<Entries> entries = parse_entries(words);
    if (!entries) return tl::unexpected(std::move(entries.error()));
    all.push_back(*std::move(entries));
  }
  if (all.size() > engine::kEnvoyDescriptorsMax) {
    return mistake(fmt::format("{} descriptors are too many", all.size()),
                   fmt::format("give at most {}", engine::kEnvoyDescriptorsMax));
  }
  return all;
}

std::string_view code_text(EnvoyCode code) { return code == EnvoyCode::ok ? "ok" : "over_limit"; }

// ---- for people -------------------------------------------------------------------------------

std::string entries_text(const Entries& entries) {
  std::string text;
  for (const auto& [key, value] : entries) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

std::string status_limit_text(const EnvoyStatus& status) {
  if (!status.current_limit) {
    return status.limit_remaining == engine::kEnvoyUnlimited ? "unlimited" : "nothing limits it";
  }
  const auto& [amount, unit, name] = *status.current_limit;
  return fmt::format("{} of {} per {} left{}, reset in {}s", status.limit_remaining, amount,
                     rules::to_string(unit), name.empty() ? "" : fmt::format(" ({})", name),
                     status.duration_until_reset.count());
}

std::string coloured(EnvoyCode code, const Output& output) {
  return fmt::format("{}{}{}", output.style(code == EnvoyCode::ok ? kGreen : kRed), code_text(code),
                     output.style(kPlain));
}

void tell(std::string_view domain, std::span<const Entries> descriptors,
          const engine::EnvoyResponse& response, Output& output) {
  output.write(fmt::format("domain    {}\ndescriptors\n", domain));
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const EnvoyStatus& status = response.statuses()[i];
    output.write(fmt::format("  {}: {}, {}\n", entries_text(descriptors[i]),
                             coloured(status.code, output), status_limit_text(status)));
  }
  output.write(fmt::format("decision  {}\n", coloured(response.overall_code(), output)));
}

// ---- for programs -----------------------------------------------------------------------------

std::string json_of(const Entries& entries) {
  std::string text;
  for (const auto& [key, value] : entries) {
    text += fmt::format(R"({}{{"key":{},"value":{}}})", text.empty() ? "" : ",", json_string(key),
                        json_string(value));
  }
  return text;
}

std::string json_of(const std::optional<engine::EnvoyCurrentLimit>& limit) {
  if (!limit) return "null";
  return fmt::format(R"({{"requests_per_unit":{},"unit":{},"name":{}}})", limit->requests_per_unit,
                     json_string(rules::to_string(limit->unit)), json_string(limit->name));
}

void tell_json(std::string_view domain, std::span<const Entries> descriptors,
               const engine::EnvoyResponse& response, Output& output) {
  std::string statuses;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const EnvoyStatus& status = response.statuses()[i];
    statuses += fmt::format(
        R"({}{{"entries":[{}],"code":{},"current_limit":{},"limit_remaining":{},)"
        R"("duration_until_reset_s":{}}})",
        statuses.empty() ? "" : ",", json_of(descriptors[i]), json_string(code_text(status.code)),
        json_of(status.current_limit), status.limit_remaining, status.duration_until_reset.count());
  }
  output.write(fmt::format(R"({{"domain":{},"overall_code":{},"statuses":[{}]}})"
                           "\n",
                           json_string(domain), json_string(code_text(response.overall_code())),
                           statuses));
}

// ---- the result -------------------------------------------------------------------------------

// Asked as often as the options say; the last answer is told.
Result<void> ask(engine::EnvoyDecider& worker, std::span<const Entries> descriptors,
                 const ExplainOptions& options, Now now, engine::EnvoyOp& op) {
  std::vector<engine::EnvoyDescriptor> asked;
  for (const Entries& entries : descriptors) {
    asked.push_back({.entries = entries, .limit = {}, .hits_addend = {}});
  }
  for (std::uint32_t i = 0; i < options.repeat && op.result; ++i) {
    (void)worker.should_rate_limit(  // at once: the table is of this process
        op, {.domain = options.domain, .descriptors = asked, .hits_addend = 1}, now);
  }
  return op.result;
}

}  // namespace

ExitCode explain_descriptors(const ExplainOptions& options,
                             const app::Configuration& configuration) {
  const Parsed<std::vector<Entries>> descriptors = parse_descriptors(options);
  if (!descriptors) {
    complain(kDescriptorsCommand, descriptors.error().text());
    return ExitCode::usage;
  }
  if (!configuration.envoy) {
    complain(kDescriptorsCommand,
             fmt::format("{} has no trees of descriptors; add rules_from: {{envoy: DIR}}, or give "
                         "a request beside the descriptor to ask its rules",
                         options.config));
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  auto trees = embed::load_envoy(*configuration.envoy, diagnostics);
  if (trees == nullptr) {
    fmt::print(stderr, "{}", diagnostics.text());
    return ExitCode::failure;
  }
  const SystemClock clock;
  const Now now = clock.now();
  auto offline = embed::OfflineEnvoy::start(std::move(trees), configuration.envoy->modes,
                                            configuration.state.memory, now);
  if (!offline) {
    complain(kDescriptorsCommand, offline.error().text());
    return ExitCode::failure;
  }
  auto op = std::make_unique<engine::EnvoyOp>();
  const Result<void> answered = ask((*offline)->worker(), *descriptors, options, now, *op);
  if (!answered) {
    complain(kDescriptorsCommand, answered.error().where);
    return ExitCode::failure;
  }
  Output output;
  if (options.json) {
    tell_json(options.domain, *descriptors, op->response, output);
  } else {
    tell(options.domain, *descriptors, op->response, output);
  }
  const bool passes = op->response.overall_code() == EnvoyCode::ok;
  return output.finish(kDescriptorsCommand, passes ? ExitCode::ok : ExitCode::negative);
}

}  // namespace sluice::cli
