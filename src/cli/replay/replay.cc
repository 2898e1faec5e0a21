#include "cli/replay/replay.h"

#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/decision_json.h"
#include "cli/file.h"
#include "cli/replay/comparison.h"
#include "cli/replay/order_watch.h"
#include "cli/replay/picture.h"
#include "cli/replay/replayer.h"
#include "cli/replay/trace.h"
#include "cli/terminal.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "replay";
constexpr std::size_t kRowsDefault = 40;

ExitCode fail(ExitCode code, const Diagnostic& mistake) {
  complain(kCommand, mistake.text());
  return code;
}

// Epoch seconds or milliseconds, read as nanoseconds, all fall into the first hour of 1970.
void note_other_units(const TraceReader& trace, WallTime first) {
  if (!trace.whole_number_first()) return;
  const std::int64_t number = first.time_since_epoch().count();
  const auto names_this_age = [&](std::int64_t unit) {  // 2008 to 2065
    return number >= 1'200'000'000 * unit && number < 3'000'000'000 * unit;
  };
  const std::string_view unit = names_this_age(1) ? "seconds" : "milliseconds";
  if (!names_this_age(1) && !names_this_age(1000)) return;
  complain(kCommand, fmt::format("note: whole numbers are nanoseconds, and {} is {}; if "
                                 "these are {}, append {} zeros",
                                 number, format_rfc3339(first), unit, unit == "seconds" ? 9 : 6));
}

void report(const OrderWatch& order, const TraceReader& trace) {
  if (order.first()) note_other_units(trace, *order.first());
  order.note(order.largest_step() > core::kClockStep
                 ? "a step back of more than a minute is read as a clock that was set: bounds hold "
                   "before and after it, not across it"
                 : "time that goes back grants nothing");
}

std::string decision_json(const Decision& decision) {
  return fmt::format("{{\"allowed\":{},{}}}\n", decision.allowed(), decision_members(decision));
}

// The exercise brings its own rate, and means the log.
LimitFallback fallback_for(const TraceReader& trace) {
  if (!trace.exercise()) return {};
  return {.limit = fmt::format("{}/1h", trace.exercise()->per_hour),
          .algorithm = Algorithm::sliding_log};
}

// Prints a decision per request as they come; `next` yields them like TraceReader::next.
template <class Next>
ExitCode print_decisions(Next next, const TraceReader& trace, const core::CompiledLimit& limit,
                         bool json) {
  Output out;
  Replayer replayer{limit};
  OrderWatch order;
  while (!out.failed()) {
    const Parsed<std::optional<TraceRequest>> request = next();
    if (!request) {
      out.flush();
      return fail(ExitCode::failure, request.error());
    }
    if (!*request) break;
    order.see((*request)->at);
    const Decision decision = replayer.decide(**request);
    out.write(json ? decision_json(decision) : decision.allowed() ? "true\n" : "false\n");
  }
  report(order, trace);
  return out.finish(kCommand, ExitCode::ok);
}

std::string most_text(const Lane& lane, std::uint64_t number) {
  return lane.window > Nanos{0} ? fmt::format("{}", number) : "-";
}

// One row per request, one column per algorithm.
std::string decisions_table(const Comparison& comparison, std::size_t rows, const Output& out) {
  std::vector<Table::Column> columns{
      {.title = "time"}, {.title = "key"}, {.title = "cost", .side = Table::Side::right}};
  for (std::size_t i = 0; i < comparison.lanes.size(); ++i) {
    columns.push_back({.title = fmt::format("{:>2}", i + 1)});
  }
  Table table{std::move(columns)};
  const std::size_t total = comparison.requests.size();
  const std::size_t shown = rows == 0 ? total : std::min(rows, total);
  for (std::size_t i = 0; i < shown; ++i) {
    const TraceRequest& request = comparison.requests[i];
    std::vector<std::string> row{format_rfc3339(request.at),
                                 request.key.empty() ? "-" : request.key,
                                 fmt::format("{}", request.cost)};
    for (const Lane& lane : comparison.lanes) {
      row.emplace_back(lane.admissions[i].allowed ? " +" : " .");
    }
    table.add(std::move(row));
  }
  std::string text = table.text(out);
  if (shown < total) {
    text +=
        fmt::format("... and {} (--rows 0 shows all)\n", counted(total - shown, "more request"));
  }
  return text;
}

std::string summary_table(const Comparison& comparison, const Output& out) {
  using enum Table::Side;
  Table table{{{.title = " #", .side = right},
               {.title = "algorithm"},
               {.title = "admitted", .side = right},
               {.title = "rejected", .side = right},
               {.title = "most in one period", .side = right},
               {.title = "never more than", .side = right}}};
  for (std::size_t i = 0; i < comparison.lanes.size(); ++i) {
    const Lane& lane = comparison.lanes[i];
    table.add({fmt::format("{}", i + 1), lane.name, fmt::format("{}", lane.admitted),
               fmt::format("{}", lane.rejected), most_text(lane, lane.most_in_window),
               most_text(lane, lane.promised)});
  }
  return table.text(out);
}

void print_table(const Comparison& comparison, const ComparedField& field, const Limit& limit,
                 std::size_t rows, Output& out) {
  out.write(fmt::format("{} over {} (+ admitted, . rejected)\n\n", core::rate_text(limit),
                        counted(comparison.requests.size(), "request")));
  out.write(decisions_table(comparison, rows, out));
  out.write("\n");
  out.write(summary_table(comparison, out));
  if (!field.left_out.empty()) out.write("\n");
  for (const std::string& reason : field.left_out) {
    out.write(fmt::format("{}left out: {}{}\n", out.style(kDim), reason, out.style(kPlain)));
  }
}

void print_json(const Comparison& comparison, const ComparedField& field, Output& out) {
  for (std::size_t i = 0; i < comparison.requests.size(); ++i) {
    const TraceRequest& request = comparison.requests[i];
    std::string verdicts;
    for (const Lane& lane : comparison.lanes) {
      verdicts += fmt::format("{}{}:{}", verdicts.empty() ? "" : ",", json_string(lane.name),
                              lane.admissions[i].allowed);
    }
    out.write(fmt::format("{{\"time_ns\":{},\"key\":{},\"cost\":{},\"allowed\":{{{}}}}}\n",
                          request.at.time_since_epoch().count(), json_string(request.key),
                          request.cost, verdicts));
  }
  for (const Lane& lane : comparison.lanes) {
    const bool counted = lane.window > Nanos{0};
    out.write(
        fmt::format("{{\"algorithm\":{},\"admitted\":{},\"rejected\":{},\"most_in_one_period\":{},"
                    "\"never_more_than\":{}}}\n",
                    json_string(lane.name), lane.admitted, lane.rejected,
                    counted ? fmt::format("{}", lane.most_in_window) : "null",
                    counted ? fmt::format("{}", lane.promised) : "null"));
  }
  for (const std::string& reason : field.left_out) {
    out.write(fmt::format("{{\"left_out\":{}}}\n", json_string(reason)));
  }
}

ExitCode draw(const ReplayOptions& options, const Comparison& comparison, const Limit& limit) {
  if (!options.svg) return ExitCode::ok;
  const Parsed<void> written = write_file(*options.svg, picture_svg(comparison, limit));
  return written ? ExitCode::ok : fail(ExitCode::failure, written.error());
}

ExitCode replay_compared(const ReplayOptions& options, const TraceReader& trace, const Limit& limit,
                         std::vector<TraceRequest> requests) {
  const bool durations =
      std::ranges::any_of(requests, [](const TraceRequest& r) { return r.duration.has_value(); });
  if (limit.timezone && !limit.unit) {
    return fail(ExitCode::usage,
                {.message = "--timezone only matters to calendar periods",
                 .remedy = "leave it out, or use a period of day, week, month or year"});
  }
  const ComparedField field = all_algorithms(limit, durations);
  if (field.contenders.empty()) {
    return fail(ExitCode::usage, {.message = "--limit: " + field.left_out.front()});
  }
  OrderWatch order;
  for (const TraceRequest& request : requests) order.see(request.at);
  report(order, trace);
  const Comparison comparison = compare(std::move(requests), field.contenders);
  if (const ExitCode code = draw(options, comparison, limit); code != ExitCode::ok) return code;

  Output out;
  if (options.json) {
    print_json(comparison, field, out);
  } else {
    print_table(comparison, field, limit, options.rows.value_or(kRowsDefault), out);
  }
  return out.finish(kCommand, ExitCode::ok);
}

// One algorithm, its decisions and their picture.
ExitCode replay_drawn(const ReplayOptions& options, const TraceReader& trace, const Limit& limit,
                      const core::CompiledLimit& compiled, std::vector<TraceRequest> requests) {
  const Contender alone{std::string{to_string(limit.algorithm)}, limit, compiled};
  const Comparison comparison = compare(std::move(requests), {&alone, 1});
  if (const ExitCode code = draw(options, comparison, limit); code != ExitCode::ok) return code;

  auto request = comparison.requests.begin();
  const auto next = [&]() -> Parsed<std::optional<TraceRequest>> {
    if (request == comparison.requests.end()) return std::nullopt;
    return *request++;
  };
  return print_decisions(next, trace, compiled, options.json);
}

std::optional<Diagnostic> conflicting_options(const ReplayOptions& options) {
  const LimitOptions& limit = options.limit;
  if (options.compare && (limit.algorithm || limit.align || limit.refill)) {
    return Diagnostic{"--compare runs all algorithms and their variants",
                      "leave out --algorithm, --align and --refill, or --compare"};
  }
  std::error_code ignored;
  if (options.svg && std::filesystem::equivalent(options.trace, *options.svg, ignored)) {
    return Diagnostic{"--svg would overwrite the trace", "choose another file"};
  }
  if (options.rows && !options.compare) {
    return Diagnostic{"--rows is for the table of --compare", "leave it out, or add --compare"};
  }
  return std::nullopt;
}

}  // namespace

ExitCode replay(const ReplayOptions& options) {
  if (const auto conflict = conflicting_options(options)) return fail(ExitCode::usage, *conflict);
  if (options.trace == "-" && ::isatty(STDIN_FILENO) == 1) {
    complain(kCommand, "reading the trace from standard input; end it with Ctrl-D");
  }
  Parsed<TraceReader> trace = TraceReader::open(options.trace);
  if (!trace) return fail(ExitCode::failure, trace.error());

  const Parsed<Limit> limit = parse_limit_options(options.limit, fallback_for(*trace));
  if (!limit) return fail(ExitCode::usage, limit.error());
  if (options.compare) {
    Parsed<std::vector<TraceRequest>> requests = read_all(*trace);
    if (!requests) return fail(ExitCode::failure, requests.error());
    return replay_compared(options, *trace, *limit, *std::move(requests));
  }

  const Parsed<core::CompiledLimit> compiled = compile_limit(*limit);
  if (!compiled) return fail(ExitCode::usage, compiled.error());
  if (options.svg) {
    Parsed<std::vector<TraceRequest>> requests = read_all(*trace);
    if (!requests) return fail(ExitCode::failure, requests.error());
    return replay_drawn(options, *trace, *limit, *compiled, *std::move(requests));
  }
  return print_decisions([&] { return trace->next(); }, *trace, *compiled, options.json);
}

}  // namespace sluice::cli
