#include "cli/replay/rules_replay.h"

#include "app/configuration.h"
#include "app/offline_engine.h"
#include "base/line_reader.h"
#include "base/read_file.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/decision_json.h"
#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "replay";
constexpr std::size_t kFileBytesMax = 16U << 20U;
constexpr std::size_t kTableBytes = 256U << 20U;
constexpr std::size_t kChangesShown = 20;

// How often a rule had a say, and what it said.
struct RuleSum {
  std::uint64_t requests = 0;
  std::uint64_t objected = 0;  // one of its limits was full
  std::uint64_t refused = 0;   // and it was the one that answered
  std::uint64_t blocked = 0;
};

struct Sum {
  std::uint64_t requests = 0;
  std::uint64_t passed = 0;
  std::map<std::string, std::uint64_t> reasons;
};

// A configuration at work: one table, one worker, virtual time.
class Run {
 public:
  [[nodiscard]] static Parsed<std::unique_ptr<Run>> start(const std::string& file, Now now);

  struct Verdict {
    bool passes = true;
    std::string_view reason;
    std::string_view rule;
    Decision decision;
  };
  Verdict decide(const LoggedRequest& logged, Now now);

  [[nodiscard]] const Sum& sum() const noexcept { return sum_; }
  [[nodiscard]] const rules::RuleList& rules() const noexcept {
    return engine_->configuration().rules;
  }
  [[nodiscard]] RuleSum sum_of(const rules::Rule& rule) const {
    const auto found = by_rule_.find(rule.name);
    return found == by_rule_.end() ? RuleSum{} : found->second;
  }

 private:
  // A request whose response comes later.
  struct UnderWay {
    MonoTime until;
    std::uint16_t status;
    std::unique_ptr<engine::Op> op;
    bool operator>(const UnderWay& other) const noexcept { return until > other.until; }
  };

  void settle_until(MonoTime now);
  void settle(engine::Op& op, std::uint16_t status, Now now);
  void count(const engine::Op& op);

  std::unique_ptr<app::OfflineEngine> engine_;
  std::vector<std::unique_ptr<engine::Op>> spare_;
  std::priority_queue<UnderWay, std::vector<UnderWay>, std::greater<>> under_way_;
  Sum sum_;
  std::map<std::string, RuleSum, std::less<>> by_rule_;
};

Parsed<std::unique_ptr<Run>> Run::start(const std::string& file, Now now) {
  const Parsed<std::string> text = sluice::read_file(file, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  config::Diagnostics diagnostics;
  app::Configuration configuration = app::read_configuration(*text, file, diagnostics);
  if (!diagnostics.ok()) {
    return mistake(fmt::format("{} has mistakes\n{}", file, diagnostics.text()),
                   "'sluice check' says the same");
  }
  auto engine = app::OfflineEngine::start(std::move(configuration), kTableBytes, now);
  if (!engine) return tl::unexpected(std::move(engine.error()));
  auto run = std::make_unique<Run>();
  run->engine_ = *std::move(engine);
  return run;
}

void Run::settle(engine::Op& op, std::uint16_t status, Now now) {
  const engine::ResponseView response{.status = status, .grpc_status = {}, .headers = {}};
  engine_->worker().settle(op, status != 0 ? &response : nullptr, now);
}

void Run::settle_until(MonoTime now) {
  while (!under_way_.empty() && under_way_.top().until <= now) {
    // The queue hands out constant elements; this one is about to go.
    auto& first =
        const_cast<UnderWay&>(under_way_.top());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    settle(*first.op, first.status, {.mono = first.until, .wall_offset = Nanos{0}});
    spare_.push_back(std::move(first.op));
    under_way_.pop();
  }
}

void Run::count(const engine::Op& op) {
  ++sum_.requests;
  const bool passes = op.action == engine::Action::pass;
  if (passes) ++sum_.passed;
  ++sum_.reasons[std::string{engine::to_string(op.reason)}];
  const rules::Rule* last = nullptr;
  for (const engine::LimitOutcome& outcome : op.limits()) {
    RuleSum& rule = by_rule_[outcome.rule->name];
    if (outcome.rule != last) ++rule.requests;
    last = outcome.rule;
    if (!outcome.decision.allowed()) ++rule.objected;
  }
  if (passes || op.rule == nullptr) return;
  RuleSum& rule = by_rule_[op.rule->name];
  if (op.reason == engine::Reason::blocked) {
    ++rule.requests;
    ++rule.blocked;
  } else {
    ++rule.refused;
  }
}

Run::Verdict Run::decide(const LoggedRequest& logged, Now now) {
  settle_until(now.mono);
  std::vector<HeaderView> headers;
  for (const auto& [name, value] : logged.headers) headers.push_back({name, value});
  const RequestView request{.method = logged.method,
                            .host = logged.host,
                            .target = logged.target,
                            .headers = headers,
                            .peer = logged.ip,
                            .tls_subject = {},
                            .domain = {},
                            .descriptor = {}};
  identity::Identity client;
  client.address = logged.ip;
  client.user = logged.user;
  client.api_key = logged.api_key;
  client.tenant = logged.tenant;
  client.tier = logged.tier;
  client.country = logged.country;
  client.asn = logged.asn;
  const bool known = !logged.user.empty() || !logged.api_key.empty();
  client.proof = known ? identity::Proof::good : identity::Proof::none;

  if (spare_.empty()) spare_.push_back(std::make_unique<engine::Op>());
  std::unique_ptr<engine::Op> op = std::move(spare_.back());
  spare_.pop_back();
  (void)engine_->worker().decide(*op, request, client, now);
  count(*op);
  const Verdict verdict{.passes = op->action == engine::Action::pass,
                        .reason = engine::to_string(op->reason),
                        .rule = op->rule != nullptr ? std::string_view{op->rule->name} : "",
                        .decision = op->decision};
  if (verdict.passes && logged.duration > Nanos{0}) {
    under_way_.push(
        {.until = now.mono + logged.duration, .status = logged.status, .op = std::move(op)});
  } else {
    settle(*op, verdict.passes ? logged.status : 0, now);
    spare_.push_back(std::move(op));
  }
  return verdict;
}

// ---- telling ----------------------------------------------------------------------------------

std::string verdict_json(const LoggedRequest& logged, const Run::Verdict& verdict) {
  return fmt::format(R"({{"time":{},"allowed":{},"reason":{},"rule":{},{}}})"
                     "\n",
                     json_string(format_rfc3339(logged.at)), verdict.passes,
                     json_string(verdict.reason),
                     verdict.rule.empty() ? "null" : json_string(verdict.rule),
                     decision_members(verdict.decision));
}

std::string summary(const Run& run, const Output& output) {
  const Sum& sum = run.sum();
  std::string text = fmt::format("{} requests, {} passed, {} refused\n\n", sum.requests, sum.passed,
                                 sum.requests - sum.passed);
  using Side = Table::Side;
  Table table{{{"rule", Side::left},
               {"requests", Side::right},
               {"full", Side::right},
               {"refused", Side::right},
               {"blocked", Side::right},
               {"", Side::left}}};
  for (const rules::Rule& rule : run.rules().rules) {
    const RuleSum of = run.sum_of(rule);
    const bool shadow = rule.over.kind == rules::Over::Kind::shadow;
    table.add({rule.name, std::to_string(of.requests), std::to_string(of.objected),
               std::to_string(of.refused), std::to_string(of.blocked), shadow ? "shadow" : ""});
  }
  text += table.text(output);
  const auto unmatched = sum.reasons.find("unmatched");
  if (unmatched != sum.reasons.end()) {
    text +=
        fmt::format("\n{} concerned by no rule.\n",
                    unmatched->second == 1 ? "1 request was"
                                           : fmt::format("{} requests were", unmatched->second));
  }
  return text;
}

std::string change_text(const LoggedRequest& logged, const Run::Verdict& before,
                        const Run::Verdict& after) {
  const auto told = [](const Run::Verdict& verdict) {
    return verdict.passes ? std::string{"passes"}
                          : fmt::format("{} by {}", verdict.reason,
                                        verdict.rule.empty() ? "no rule" : verdict.rule);
  };
  return fmt::format("  {} {} {} {}: {} -> {}\n", format_rfc3339(logged.at), logged.ip.text(),
                     logged.method, logged.target, told(before), told(after));
}

// ---- reading ----------------------------------------------------------------------------------

// One log, line by line; lines that are blank are skipped, and those of what was no request: the
// gateway refused it before any rule was asked.
class LogReader {
 public:
  static Parsed<LogReader> open(const RulesReplayOptions& options) {
    Parsed<LineReader> lines = LineReader::open(options.trace);
    if (!lines) return tl::unexpected(std::move(lines.error()));
    return LogReader{*std::move(lines), options.format};
  }

  Parsed<std::optional<LoggedRequest>> next() {
    while (true) {
      Parsed<std::optional<std::string_view>> line = lines_.next();
      if (!line) return tl::unexpected(std::move(line.error()));
      if (!*line) return std::nullopt;
      if ((*line)->find_first_not_of(" \t") == std::string_view::npos) continue;
      if (!format_) format_ = guess_format(**line);
      Parsed<LoggedRequest> request =
          *format_ == LogFormat::json ? parse_json_line(**line) : parse_combined(**line);
      if (!request) {
        return mistake(
            fmt::format("{}:{}: {}", lines_.name(), lines_.line_number(), request.error().message),
            request.error().remedy);
      }
      if (!request->is_request) {
        ++malformed_;
        continue;
      }
      return *std::move(request);
    }
  }
  [[nodiscard]] std::uint64_t malformed() const noexcept { return malformed_; }

 private:
  LogReader(LineReader lines, std::optional<LogFormat> format)
      : lines_(std::move(lines)), format_(format) {}

  LineReader lines_;
  std::optional<LogFormat> format_;
  std::uint64_t malformed_ = 0;
};

ExitCode fail(const Diagnostic& mistake) {
  complain(kCommand, mistake.text());
  return ExitCode::failure;
}

Now at(WallTime time) noexcept {
  return {.mono = MonoTime{time.time_since_epoch()}, .wall_offset = Nanos{0}};
}

}  // namespace

ExitCode replay_rules(const RulesReplayOptions& options) {
  Parsed<LogReader> log = LogReader::open(options);
  if (!log) return fail(log.error());
  Parsed<std::optional<LoggedRequest>> logged = log->next();
  if (!logged) return fail(logged.error());
  const Now begin = at(*logged ? (*logged)->at : WallTime{});
  Parsed<std::unique_ptr<Run>> run = Run::start(options.rules, begin);
  if (!run) return fail(run.error());
  std::unique_ptr<Run> other;
  if (!options.diff.empty()) {
    Parsed<std::unique_ptr<Run>> started = Run::start(options.diff, begin);
    if (!started) return fail(started.error());
    other = *std::move(started);
  }

  Output output;
  std::uint64_t changed = 0;
  std::string changes;
  // Logs are written when a request ends, so times may go back a little: time does not.
  WallTime latest{};
  while (logged && *logged && !output.failed()) {
    const LoggedRequest& request = **logged;
    latest = std::max(latest, request.at);
    const Run::Verdict verdict = (*run)->decide(request, at(latest));
    if (options.json) output.write(verdict_json(request, verdict));
    if (other) {
      const Run::Verdict changed_to = other->decide(request, at(latest));
      if (verdict.passes != changed_to.passes) {
        if (++changed <= kChangesShown) changes += change_text(request, verdict, changed_to);
      }
    }
    logged = log->next();
  }
  if (!logged) {
    output.flush();
    return fail(logged.error());
  }
  if (!options.json) output.write(summary(**run, output));
  if (!options.json && log->malformed() > 0) {
    output.write(fmt::format("\nLeft out what was no request: {}.\n", log->malformed()));
  }
  if (other && !options.json) {
    output.write(fmt::format("\nWith {}: {} passed, {} refused; {} requests change their answer\n",
                             options.diff, other->sum().passed,
                             other->sum().requests - other->sum().passed, changed));
    output.write(changes);
    if (changed > kChangesShown)
      output.write(fmt::format("  and {} more\n", changed - kChangesShown));
  }
  return output.finish(kCommand, other && changed > 0 ? ExitCode::negative : ExitCode::ok);
}

}  // namespace sluice::cli
