#include "cli/replay/rules_replay.h"

#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/decision_json.h"
#include "cli/replay/log_gaps.h"
#include "cli/replay/log_lines.h"
#include "cli/replay/order_watch.h"
#include "cli/replay/rules_run.h"
#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::string_view kRulesReplayCommand = "replay";
constexpr std::uint64_t kChangesDefault = 20;  // for people; programs get them all

// ---- telling ----------------------------------------------------------------------------------

std::string verdict_json(const LoggedRequest& logged, const RulesVerdict& verdict) {
  return fmt::format(R"({{"time":{},"allowed":{},"reason":{},"rule":{},{}}})"
                     "\n",
                     json_string(format_rfc3339(logged.at)), verdict.passes(),
                     json_string(verdict.reason),
                     verdict.rule.empty() ? "null" : json_string(verdict.rule),
                     decision_members(verdict.decision));
}

std::string summary(const RulesRun& run, const Output& output) {
  const RulesSum& sum = run.sum();
  std::string text =
      fmt::format("{}, {} allowed, {} rejected\n\n", counted(sum.requests, "request"), sum.allowed,
                  sum.requests - sum.allowed);
  using Side = Table::Side;
  Table table{{{"rule", Side::left},
               {"requests", Side::right},
               {"exceeded", Side::right},
               {"rejected", Side::right},
               {"blocked", Side::right},
               {"", Side::left}}};
  for (const rules::Rule& rule : run.rules()) {
    const RuleSum of = run.sum_of(rule);
    const bool shadow = rule.action.kind == rules::Action::Kind::shadow;
    table.add({rule.name, std::to_string(of.requests), std::to_string(of.objected),
               std::to_string(of.rejected), std::to_string(of.blocked), shadow ? "shadow" : ""});
  }
  text += table.text(output);
  const auto unmatched = sum.reasons.find("unmatched");
  if (unmatched != sum.reasons.end()) {
    text +=
        fmt::format("\n{} matched by no rule.\n",
                    unmatched->second == 1 ? "1 request was"
                                           : fmt::format("{} requests were", unmatched->second));
  }
  return text;
}

// ---- what the log does not tell -----------------------------------------------------------------

std::string gap_text(const LogGap& gap) {
  return gap.is_hidden ? fmt::format("{} is hidden, and {} needs its value", gap.field, gap.rule)
                       : fmt::format("no line has {}, which {} asks for", gap.field, gap.rule);
}

std::string gaps_text(const std::vector<LogGap>& gaps, std::string_view file) {
  if (gaps.empty()) return {};
  std::string text = fmt::format(
      "\nThe log lacks what these rules of {} need; they were decided as if no request had it:\n",
      file);
  for (const LogGap& gap : gaps) text += fmt::format("  {}\n", gap_text(gap));
  return text;
}

std::string gaps_json(const std::vector<LogGap>& gaps) {
  std::string text;
  for (const LogGap& gap : gaps) {
    text += fmt::format(R"({}{{"rule":{},"field":{},"hidden":{}}})", text.empty() ? "" : ",",
                        json_string(gap.rule), json_string(gap.field), gap.is_hidden);
  }
  return fmt::format("[{}]", text);
}

// ---- changes ------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 3> kActions{"pass", "reject", "drop"};

std::string_view action_of(const RulesVerdict& verdict) noexcept {
  return kActions[static_cast<std::size_t>(verdict.action)];
}

// Whether a client would notice, or an operator who looks up why. Of two that pass, it does not
// matter which rule was the tightest.
bool is_same(const RulesVerdict& a, const RulesVerdict& b) noexcept {
  if (a.passes() && b.passes()) return true;
  return a.action == b.action && a.status == b.status && a.reason == b.reason && a.rule == b.rule;
}

std::string change_text(const LoggedRequest& logged, const RulesVerdict& before,
                        const RulesVerdict& after) {
  const auto told = [](const RulesVerdict& verdict) {
    if (verdict.passes()) return std::string{"allowed"};
    const std::string how = verdict.action == engine::Action::drop ? std::string{"dropped"}
                                                                   : std::to_string(verdict.status);
    return fmt::format("{} {} by {}", how, verdict.reason,
                       verdict.rule.empty() ? "no rule" : verdict.rule);
  };
  return fmt::format("  {} {} {} {}: {} -> {}\n", format_rfc3339(logged.at), logged.ip.text(),
                     logged.method, logged.target, told(before), told(after));
}

std::string change_json(const LoggedRequest& logged, const RulesVerdict& before,
                        const RulesVerdict& after) {
  const auto told = [](const RulesVerdict& verdict) {
    return fmt::format(
        R"({{"action":{},"status":{},"reason":{},"rule":{},{}}})", json_string(action_of(verdict)),
        verdict.status == 0 ? "null" : std::to_string(verdict.status), json_string(verdict.reason),
        verdict.rule.empty() ? "null" : json_string(verdict.rule),
        decision_members(verdict.decision));
  };
  return fmt::format(R"({{"time":{},"ip":{},"method":{},"target":{},"before":{},"after":{}}})"
                     "\n",
                     json_string(format_rfc3339(logged.at)), json_string(logged.ip.text()),
                     json_string(logged.method), json_string(logged.target), told(before),
                     told(after));
}

std::string sum_json(const RulesSum& sum) {
  return fmt::format(R"({{"allowed":{},"rejected":{}}})", sum.allowed, sum.requests - sum.allowed);
}

// ---- reading ----------------------------------------------------------------------------------

// One log, line by line; blank lines are skipped, and malformed requests, which the gateway
// rejected before any rule. So is an incomplete last line: a log that is being written has one now
// and then. Lines that cannot be read are skipped and counted, unless that is to be an error; a log
// without any line that can be read is one in any case.
class LogReader {
 public:
  static Parsed<LogReader> open(const RulesReplayOptions& options) {
    Parsed<LineReader> lines = open_log_lines(options.trace);
    if (!lines) return tl::unexpected(std::move(lines.error()));
    return LogReader{*std::move(lines), options};
  }

  Parsed<std::optional<LoggedRequest>> next() {
    while (true) {
      Parsed<std::optional<std::string_view>> line = lines_.next();
      if (!line) return tl::unexpected(std::move(line.error()));
      if (!*line) return end();
      if ((*line)->find_first_not_of(" \t") == std::string_view::npos) continue;
      const LogFormat format = format_.value_or(guess_format(**line));
      Parsed<LoggedRequest> request =
          format == LogFormat::json ? parse_json_line(**line) : parse_combined(**line);
      if (!request && lines_.is_cut_off() && lines_.line_number() > 1) {
        cut_off_ = true;
        return end();
      }
      if (!request) {
        Diagnostic wrong{
            fmt::format("{}:{}: {}", lines_.name(), lines_.line_number(), request.error().message),
            std::move(request.error().remedy)};
        if (is_strict_) return tl::unexpected(std::move(wrong));
        if (skipped_++ == 0) first_skipped_ = std::move(wrong);
        continue;
      }
      format_ = format;  // of the first line that can be read
      is_readable_ = true;
      if (!request->is_request) {
        ++malformed_;
        continue;
      }
      return *std::move(request);
    }
  }
  [[nodiscard]] std::uint64_t malformed() const noexcept { return malformed_; }
  [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_; }

  // On standard error, if some lines could not be read, or the last one is incomplete.
  void note_skipped() const {
    if (skipped_ > 0) {
      complain(kRulesReplayCommand,
               fmt::format("note: {} could not be read and {} left out (--strict ends "
                           "there instead), the first: {}",
                           counted(skipped_, "line"), skipped_ == 1 ? "is" : "are",
                           first_skipped_.message));
    }
    if (!cut_off_) return;
    complain(kRulesReplayCommand,
             fmt::format("note: {}:{}: the last line is not whole, and is left out", lines_.name(),
                         lines_.line_number()));
  }

 private:
  LogReader(LineReader lines, const RulesReplayOptions& options)
      : lines_(std::move(lines)), format_(options.format), is_strict_(options.strict) {}

  [[nodiscard]] Parsed<std::optional<LoggedRequest>> end() const {
    if (skipped_ > 0 && !is_readable_) return tl::unexpected(first_skipped_);
    return std::nullopt;
  }

  LineReader lines_;
  std::optional<LogFormat> format_;
  bool is_strict_;
  bool is_readable_ = false;  // some line was
  std::uint64_t malformed_ = 0;
  std::uint64_t skipped_ = 0;
  Diagnostic first_skipped_;
  bool cut_off_ = false;
};

ExitCode fail(const Diagnostic& mistake) {
  complain(kRulesReplayCommand, mistake.text());
  return ExitCode::failure;
}

Now at(WallTime time) noexcept {
  return {.mono = MonoTime{time.time_since_epoch()}, .wall_offset = Nanos{0}};
}

// A configuration, and what the log cannot tell it.
struct Side {
  std::string file;
  std::unique_ptr<RulesRun> run;
  LogGaps gaps;

  static Parsed<Side> start(const std::string& file, Now now) {
    Parsed<std::unique_ptr<RulesRun>> run = RulesRun::start(file, now);
    if (!run) return tl::unexpected(std::move(run.error()));
    LogGaps gaps{(*run)->rules()};
    return Side{.file = file, .run = *std::move(run), .gaps = std::move(gaps)};
  }
  RulesVerdict decide(const LoggedRequest& request, WallTime now) {
    gaps.look_at(request);
    return run->decide(request, at(now));
  }
};

// One log through one configuration, or through two that are compared.
class Replay {
 public:
  Replay(const RulesReplayOptions& options, Side side, std::optional<Side> other)
      : options_(options),
        shown_max_(options.changes.value_or(options.json ? 0 : kChangesDefault)),
        side_(std::move(side)),
        other_(std::move(other)) {}

  // Logs are written when a request ends, so times may go back a little: time does not.
  void decide(const LoggedRequest& request) {
    order_.see(request.at);
    const RulesVerdict verdict = side_.decide(request, order_.latest());
    if (options_.json && !other_) output_.write(verdict_json(request, verdict));
    if (!other_) return;
    const RulesVerdict after = other_->decide(request, order_.latest());
    if (is_same(verdict, after)) return;
    ++changed_;
    if (shown_max_ != 0 && changed_ > shown_max_) return;
    if (options_.json) {
      output_.write(change_json(request, verdict, after));
    } else {
      changes_ += change_text(request, verdict, after);
    }
  }

  [[nodiscard]] bool failed() const noexcept { return output_.failed(); }
  void flush() noexcept { output_.flush(); }

  // Malformed requests, and lines that could not be read.
  struct LeftOut {
    std::uint64_t malformed = 0;
    std::uint64_t skipped = 0;
  };
  ExitCode end(const LeftOut& left_out) {
    order_.note("decided at the time of that line");
    if (options_.json) {
      tell_json(left_out);
    } else {
      tell(left_out.malformed);
    }
    return output_.finish(kRulesReplayCommand, changed_ > 0 ? ExitCode::negative : ExitCode::ok);
  }

 private:
  void tell(std::uint64_t malformed) {
    output_.write(summary(*side_.run, output_));
    if (malformed > 0) {
      output_.write(fmt::format("\nSkipped malformed requests: {}.\n", malformed));
    }
    output_.write(gaps_text(side_.gaps.found(), side_.file));
    if (!other_) return;
    const RulesSum& sum = other_->run->sum();
    output_.write(fmt::format("\nWith {}: {} allowed, {} rejected; {} answer\n", other_->file,
                              sum.allowed, sum.requests - sum.allowed,
                              changed_ == 1 ? "1 request changes its"
                                            : fmt::format("{} requests change their", changed_)));
    output_.write(changes_);
    if (shown_max_ != 0 && changed_ > shown_max_) {
      output_.write(
          fmt::format("  and {} more; --changes 0 lists them all\n", changed_ - shown_max_));
    }
    output_.write(gaps_text(other_->gaps.found(), other_->file));
  }

  // Where there is an object for each request, what else is to be said goes elsewhere.
  void tell_json(const LeftOut& left_out) {
    if (!other_) {
      for (const LogGap& gap : side_.gaps.found()) complain(kRulesReplayCommand, gap_text(gap));
      return;
    }
    output_.write(
        fmt::format(R"({{"summary":{{"requests":{},"changed":{},"malformed":{},"skipped":{},)"
                    R"("before":{},"after":{},)"
                    R"("undecided_before":{},"undecided_after":{}}}}})"
                    "\n",
                    side_.run->sum().requests, changed_, left_out.malformed, left_out.skipped,
                    sum_json(side_.run->sum()), sum_json(other_->run->sum()),
                    gaps_json(side_.gaps.found()), gaps_json(other_->gaps.found())));
  }

  const RulesReplayOptions& options_;
  std::uint64_t shown_max_;  // changed requests; 0: all
  Side side_;
  std::optional<Side> other_;
  Output output_;
  OrderWatch order_;
  std::uint64_t changed_ = 0;
  std::string changes_;
};

}  // namespace

ExitCode replay_rules(const RulesReplayOptions& options) {
  Parsed<LogReader> log = LogReader::open(options);
  if (!log) return fail(log.error());
  Parsed<std::optional<LoggedRequest>> logged = log->next();
  if (!logged) return fail(logged.error());
  const Now begin = at(*logged ? (*logged)->at : WallTime{});
  Parsed<Side> side = Side::start(options.rules, begin);
  if (!side) return fail(side.error());
  std::optional<Side> other;
  if (!options.diff.empty()) {
    Parsed<Side> started = Side::start(options.diff, begin);
    if (!started) return fail(started.error());
    other = *std::move(started);
  }

  Replay replay{options, *std::move(side), std::move(other)};
  while (logged && *logged && !replay.failed()) {
    replay.decide(**logged);
    logged = log->next();
  }
  if (!logged) {
    replay.flush();
    return fail(logged.error());
  }
  log->note_skipped();
  return replay.end({.malformed = log->malformed(), .skipped = log->skipped()});
}

}  // namespace sluice::cli
