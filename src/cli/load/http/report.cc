#include "cli/load/http/report.h"

#include "base/duration.h"
#include "base/text.h"
#include "cli/load/http/findings.h"
#include "net/http/status_text.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

namespace sluice::cli {
namespace {

using enum Table::Side;

std::string_view words_for(LoadError error) noexcept {
  switch (error) {
    case LoadError::connect: return "could not connect";
    case LoadError::timeout: return "timed out";
    case LoadError::closed: return "closed early";
    case LoadError::bad_response: return "bad response";
  }
  return "";
}

// ---- what came of the requests ------------------------------------------------------------------

class OutcomeTable {
 public:
  explicit OutcomeTable(const HttpRun& run) : run_(run) {}

  void add(std::string_view name, std::uint64_t count, Nanos time) {
    const double share = run_.tally.offered == 0 ? 0
                                                 : 100.0 * static_cast<double>(count) /
                                                       static_cast<double>(run_.tally.offered);
    table_.add({std::string{name}, fmt::format("{}", count),
                fmt::format("{:.1f}", per_second(static_cast<double>(count), time)),
                fmt::format("{:.1f}%", share)});
  }
  void add_if_any(std::string_view name, std::uint64_t count) {
    if (count > 0) add(name, count, run_.elapsed);
  }
  [[nodiscard]] std::string text(const Output& style) const { return table_.text(style); }

 private:
  const HttpRun& run_;
  Table table_{{{.title = "outcome"},
                {.title = "requests", .side = right},
                {.title = "per second", .side = right},
                {.title = "share", .side = right}}};
};

std::string outcomes(const HttpRun& run, const Output& style) {
  const Tally& tally = run.tally;
  OutcomeTable table{run};
  table.add("offered", tally.offered, run.offered_for);
  table.add("admitted", tally.admitted(), run.elapsed);
  table.add("rejected", tally.rejected(), run.elapsed);
  for (std::size_t i = 0; i < tally.by_status.size(); ++i) {
    const auto status = static_cast<std::uint16_t>(i);
    if (class_of(status) != AnswerClass::other) continue;
    table.add_if_any(fmt::format("{} {}", status, net::reason_phrase(status)),
                     tally.by_status[status]);
  }
  for (const LoadError error : kLoadErrors) {
    table.add_if_any(words_for(error), tally.by_error[static_cast<std::size_t>(error)]);
  }
  table.add_if_any("not sent", tally.not_sent);
  table.add_if_any("unfinished", tally.unfinished);
  return table.text(style);
}

// ---- how long it took ---------------------------------------------------------------------------

constexpr std::array kShares{0.50, 0.90, 0.99, 0.999};

void add_latency(Table& table, std::string_view what, std::string_view from,
                 const Histogram& histogram) {
  if (histogram.count() == 0) return;
  std::vector<std::string> row{std::string{what}, std::string{from}};
  for (const double share : kShares) {
    row.push_back(approximate_duration(histogram.percentile(share)));
  }
  row.push_back(approximate_duration(histogram.max()));
  table.add(std::move(row));
}

std::string latencies(const HttpPlan& plan, const Tally& tally, const Output& style) {
  Table table{{{.title = "latency"},
               {.title = "from"},
               {.title = "p50", .side = right},
               {.title = "p90", .side = right},
               {.title = "p99", .side = right},
               {.title = "p99.9", .side = right},
               {.title = "max", .side = right}}};
  if (plan.schedule) {
    add_latency(table, "admitted", "scheduled start", tally.admitted_latency);
    add_latency(table, "rejected", "scheduled start", tally.rejected_latency);
    add_latency(table, "every request", "scheduled start", tally.whole_latency);
  }
  add_latency(table, "admitted", "sending", tally.admitted_service);
  add_latency(table, "rejected", "sending", tally.rejected_service);
  return table.text(style);
}

// ---- what the limits allow ----------------------------------------------------------------------

std::string limits(const HttpPlan& plan, const HttpRun& run, const Output& style) {
  const auto& stated = run.tally.policies.policies();
  if (!plan.expect && stated.empty()) return "";
  Table table{{{.title = "limit of a client"},
               {.title = "known from"},
               {.title = "per second", .side = right},
               {.title = "admitted/s per client", .side = right},
               {.title = "of the busiest", .side = right}}};
  const ClientFindings clients = find_clients(run.tally);
  const auto add = [&](std::string limit, std::string_view from, double rate) {
    table.add({std::move(limit), std::string{from}, fmt::format("{:.4g}", rate),
               fmt::format("{:.4g}", per_second(clients.mean, run.elapsed)),
               fmt::format("{:.4g}", per_second(static_cast<double>(clients.most), run.elapsed))});
  };
  if (plan.expect) {
    add(fmt::format("{} in {}", plan.expect->amount, format_duration(plan.expect->period)),
        "--expect", plan.expect->per_second());
  }
  for (const StatedPolicy& policy : stated) {
    add(fmt::format("{}: {} in {}s", policy.name, policy.quota, policy.window_seconds),
        "the server", policy.per_second());
  }
  return "\n" + table.text(style);
}

std::string verdict_line(const HttpPlan& plan, const HttpRun& run, const Output& style) {
  const std::optional<Verdict> verdict = judge(plan, run.tally);
  if (!verdict) return "";
  return fmt::format(
      "\n{}{}{}: at most {} of one client were to be admitted; of client {} it was {}\n",
      style.style(verdict->kept() ? kGreen : kRed), verdict->kept() ? "kept" : "BROKEN",
      style.style(kPlain), verdict->most_allowed, find_clients(run.tally).busiest,
      verdict->most_admitted);
}

std::string retry_after_line(const Tally& tally) {
  if (tally.retry_after_most == 0) return "";
  return fmt::format("\nRetry-After of rejections: {}s to {}s\n", tally.retry_after_least,
                     tally.retry_after_most);
}

// ---- JSON ---------------------------------------------------------------------------------------

std::string_view json_bool(bool value) noexcept { return value ? "true" : "false"; }

std::string histogram_json(const Histogram& histogram) {
  return fmt::format(R"({{"count":{},"p50":{},"p90":{},"p99":{},"p99_9":{},"max":{}}})",
                     histogram.count(), histogram.percentile(0.50).count(),
                     histogram.percentile(0.90).count(), histogram.percentile(0.99).count(),
                     histogram.percentile(0.999).count(), histogram.max().count());
}

std::string statuses_json(const Tally& tally) {
  std::string text;
  for (std::size_t status = 0; status < tally.by_status.size(); ++status) {
    if (tally.by_status[status] == 0) continue;
    text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", status, tally.by_status[status]);
  }
  return text;
}

std::string errors_json(const Tally& tally) {
  std::string text;
  for (const LoadError error : kLoadErrors) {
    text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", to_string(error),
                        tally.by_error[static_cast<std::size_t>(error)]);
  }
  return text;
}

std::string policies_json(const Tally& tally) {
  std::string text;
  for (const StatedPolicy& policy : tally.policies.policies()) {
    text += fmt::format(R"({}{{"name":{},"quota":{},"window_seconds":{},"answers":{}}})",
                        text.empty() ? "" : ",", json_string(policy.name), policy.quota,
                        policy.window_seconds, policy.answers);
  }
  return text;
}

std::string expect_json(const HttpPlan& plan, const Tally& tally) {
  const std::optional<Verdict> verdict = judge(plan, tally);
  if (!verdict) return "null";
  return fmt::format(
      R"({{"amount":{},"period_ns":{},"most_allowed":{},"most_admitted":{},"kept":{}}})",
      plan.expect->amount, plan.expect->period.count(), verdict->most_allowed,
      verdict->most_admitted, json_bool(verdict->kept()));
}

std::string retry_after_json(const Tally& tally) {
  if (tally.retry_after_most == 0) return "null";
  return fmt::format(R"({{"least":{},"most":{}}})", tally.retry_after_least,
                     tally.retry_after_most);
}

std::string series_json(const Tally& tally) {
  std::string text;
  for (const SeriesPoint& point : tally.series) {
    text += fmt::format(
        R"({}{{"offered":{},"admitted":{},"rejected":{},"other":{},"p50_ns":{},"p99_ns":{}}})",
        text.empty() ? "" : ",", point.offered, point.admitted, point.rejected, point.other,
        point.latency.percentile(0.50).count(), point.latency.percentile(0.99).count());
  }
  return fmt::format(R"({{"width_ns":{},"points":[{}]}})", tally.point_width.count(), text);
}

}  // namespace

std::string headline(const HttpPlan& plan) {
  const std::string pace = plan.schedule
                               ? fmt::format("{:g} requests a second", plan.schedule->per_second())
                               : std::string{"closed loop, as fast as responses come"};
  return fmt::format("{} {}\n{} for {}, {}, {}, {}\n\n", plan.method, plan.url, pace,
                     format_duration(plan.duration), counted(plan.clients.clients(), "client"),
                     counted(plan.connections, "connection"), counted(plan.threads, "thread"));
}

std::string report_text(const HttpPlan& plan, const HttpRun& run, const Output& style) {
  std::string text = outcomes(run, style) + "\n" + latencies(plan, run.tally, style);
  text += limits(plan, run, style);
  text += retry_after_line(run.tally);
  text += verdict_line(plan, run, style);
  return text;
}

std::string report_json(const HttpPlan& plan, const HttpRun& run) {
  const Tally& tally = run.tally;
  const ClientFindings clients = find_clients(tally);
  const auto rate = [&](std::uint64_t count) {
    return per_second(static_cast<double>(count), run.elapsed);
  };
  std::string text = fmt::format(
      R"({{"url":{},"method":{},"open_loop":{},"rate_per_second":{},"seconds":{:.9f},)",
      json_string(plan.url), json_string(plan.method), json_bool(plan.schedule.has_value()),
      plan.schedule ? fmt::format("{:.6f}", plan.schedule->per_second()) : "null",
      std::chrono::duration<double>(run.elapsed).count());
  text += fmt::format(R"("clients":{},"connections":{},"threads":{},"seed":{},"interrupted":{},)",
                      plan.clients.clients(), plan.connections, plan.threads, plan.seed,
                      json_bool(run.interrupted));
  text += fmt::format(
      R"("offered":{},"admitted":{},"rejected":{},"statuses":{{{}}},"errors":{{{}}},)",
      tally.offered, tally.admitted(), tally.rejected(), statuses_json(tally), errors_json(tally));
  text += fmt::format(
      R"("not_sent":{},"unfinished":{},"admitted_per_second":{:.6f},"rejected_per_second":{:.6f},)",
      tally.not_sent, tally.unfinished, rate(tally.admitted()), rate(tally.rejected()));
  text += fmt::format(R"("latency_ns":{{"admitted":{},"rejected":{},"all":{}}},)",
                      histogram_json(tally.admitted_latency),
                      histogram_json(tally.rejected_latency), histogram_json(tally.whole_latency));
  text +=
      fmt::format(R"("service_ns":{{"admitted":{},"rejected":{}}},)",
                  histogram_json(tally.admitted_service), histogram_json(tally.rejected_service));
  text += fmt::format(R"("generator":{{"late_ns":{},"kept_schedule":{}}},)",
                      histogram_json(tally.lateness), json_bool(kept_schedule(tally)));
  text +=
      fmt::format(R"("admitted_per_client":{{"least":{},"most":{},"mean":{:.6f},"busiest":{}}},)",
                  clients.least, clients.most, clients.mean, clients.busiest);
  text += fmt::format(R"("policies":[{}],"retry_after_seconds":{},"expect":{},"series":{}}})",
                      policies_json(tally), retry_after_json(tally), expect_json(plan, tally),
                      series_json(tally));
  return text + "\n";
}

}  // namespace sluice::cli
