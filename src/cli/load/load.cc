#include "cli/load/load.h"

#include "base/duration.h"
#include "base/text.h"
#include "cli/load/generator.h"
#include "cli/load/http/http_load.h"
#include "cli/load/interrupt.h"
#include "cli/load/option_text.h"
#include "cli/load/schedule.h"
#include "cli/load/timeline.h"
#include "cli/terminal.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "load";
constexpr std::uint64_t kRequestsMax = 1'000'000'000;
constexpr std::uint64_t kKeysMax = 10'000'000;
// Virtual time is free, attempts are not: a second's worth of them without one success.
constexpr std::uint64_t kInVainMax = 10'000'000;

struct Plan {
  std::vector<Traffic> batches;
  bool retries = true;
};

Parsed<Traffic> parse_batch(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) {
    return mistake(fmt::format("--batches: {} is not a batch", quoted(text)),
                   "write requests@rate, as in 200@20 for 200 requests at 20 per second");
  }
  const auto requests = parse_count("--batches", text.substr(0, at), kRequestsMax);
  if (!requests) return tl::unexpected(requests.error());
  const auto rate = parse_count("--batches", text.substr(at + 1), kRateMax);
  if (!rate) return tl::unexpected(rate.error());
  return Traffic{.requests = *requests, .per_second = *rate};
}

Parsed<Plan> retry_plan(const LoadOptions& options) {
  const Parsed<Nanos> retry = parse_time_option("--retry", options.retry.value_or("10ms"));
  if (!retry) return tl::unexpected(retry.error());
  Plan plan;
  std::string_view rest = options.batches ? std::string_view{*options.batches} : kDefaultBatches;
  while (true) {
    const std::size_t comma = rest.find(',');
    Parsed<Traffic> batch = parse_batch(rest.substr(0, comma));
    if (!batch) return tl::unexpected(batch.error());
    batch->retry = *retry;
    plan.batches.push_back(*batch);
    if (comma == std::string_view::npos) return plan;
    rest.remove_prefix(comma + 1);
  }
}

Parsed<Plan> constant_plan(const LoadOptions& options) {
  if (options.batches || options.retry) {
    return mistake(
        "--rate sends every request once; --batches and --retry belong to the other mode",
        "leave out --rate, or the other two");
  }
  const auto rate = parse_count("--rate", *options.rate, kRateMax);
  if (!rate) return tl::unexpected(rate.error());
  const Parsed<Nanos> duration = parse_time_option("--duration", options.duration.value_or("10s"));
  if (!duration) return tl::unexpected(duration.error());
  const Uint128 requests =
      Uint128{*rate} * static_cast<std::uint64_t>(duration->count()) / 1'000'000'000U;
  if (requests < 1 || requests > kRequestsMax) {
    return mistake(fmt::format("--rate {} for {} is not between 1 and {} requests", *rate,
                               format_duration(*duration), kRequestsMax),
                   "change the rate or the duration");
  }
  Plan plan{.batches = {}, .retries = false};
  plan.batches.push_back({.requests = static_cast<std::uint64_t>(requests), .per_second = *rate});
  return plan;
}

Parsed<Plan> make_plan(const LoadOptions& options, const Limit& limit) {
  if (options.limit.count_rejected && !options.rate) {
    return mistake("--count-rejected rejects a client that retries too soon, for ever",
                   "send every request once with --rate, or leave it out");
  }
  if (options.duration && !options.rate) {
    return mistake("--duration needs a rate", "add --rate, as in --rate 250 --duration 10s");
  }
  Parsed<Plan> plan = options.rate ? constant_plan(options) : retry_plan(options);
  if (!plan) return plan;

  const auto keys = parse_count("--keys", options.keys.value_or("1"), kKeysMax);
  if (!keys) return tl::unexpected(keys.error());
  const auto seed = parse_number(options.seed.value_or("1"));
  if (!seed)
    return mistake(fmt::format("--seed: {} is not a whole number", sluice::quoted(*options.seed)));
  Nanos hold{0};
  if (limit.algorithm == Algorithm::concurrency) {
    const Parsed<Nanos> given = parse_time_option("--hold", options.hold.value_or("100ms"));
    if (!given) return tl::unexpected(given.error());
    if (*given > limit.slot_ttl.value_or(core::kSlotTtlDefault)) {
      return mistake("--hold is longer than a lease lives", "raise --slot-ttl above it");
    }
    hold = *given;
  } else if (options.hold) {
    return mistake("--hold is how long a request occupies its slot",
                   "leave it out, or choose --algorithm concurrency");
  }
  for (Traffic& batch : plan->batches) {
    batch.keys = *keys;
    batch.seed = *seed;
    batch.hold = hold;
    if (options.virtual_time && batch.retry) batch.in_vain_max = kInVainMax;
  }
  return plan;
}

double per_second(std::uint64_t count, Nanos elapsed) noexcept {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string result_json(const Traffic& traffic, const LoadResult& result) {
  std::string seconds;
  for (const std::uint64_t count : result.admitted_in_second) {
    seconds += fmt::format("{}{}", seconds.empty() ? "" : ",", count);
  }
  return fmt::format(
      "{{\"requests\":{},\"offered_per_second\":{},\"seconds\":{:.9f},\"achieved_per_second\":{:."
      "6f},"
      "\"admitted\":{},\"rejected\":{},\"attempts\":{},\"wait_ns\":{{\"p50\":{},\"p90\":{},\"p99\":"
      "{"
      "},"
      "\"max\":{}}},\"admitted_in_second\":[{}],\"interrupted\":{}}}\n",
      result.requests, traffic.per_second, std::chrono::duration<double>(result.elapsed).count(),
      per_second(result.admitted, result.elapsed), result.admitted, result.rejected,
      result.attempts, result.wait.percentile(0.50).count(), result.wait.percentile(0.90).count(),
      result.wait.percentile(0.99).count(), result.wait.max().count(), seconds, result.interrupted);
}

std::string results_table(const Plan& plan, const std::vector<LoadResult>& results,
                          const Output& out) {
  using enum Table::Side;
  Table table{{{.title = "requests", .side = right},
               {.title = "offered/s", .side = right},
               {.title = "seconds", .side = right},
               {.title = "achieved/s", .side = right},
               {.title = plan.retries ? "attempts" : "rejected", .side = right},
               {.title = "wait p50", .side = right},
               {.title = "p90", .side = right},
               {.title = "p99", .side = right},
               {.title = "max", .side = right}}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const LoadResult& result = results[i];
    table.add({fmt::format("{}", result.requests), fmt::format("{}", plan.batches[i].per_second),
               fmt::format("{:.2f}", std::chrono::duration<double>(result.elapsed).count()),
               fmt::format("{:.2f}", per_second(result.admitted, result.elapsed)),
               fmt::format("{}", plan.retries ? result.attempts : result.rejected),
               approximate_duration(result.wait.percentile(0.50)),
               approximate_duration(result.wait.percentile(0.90)),
               approximate_duration(result.wait.percentile(0.99)),
               approximate_duration(result.wait.max())});
  }
  return table.text(out);
}

std::string headline(const LoadOptions& options, const Plan& plan, const Limit& limit) {
  const Traffic& first = plan.batches.front();
  const std::string behaviour = plan.retries
                                    ? fmt::format("each request retries every {} until allowed",
                                                  format_duration(*first.retry))
                                    : "each request tries once";
  return fmt::format("{} {}, {}, {} time: {}\n\n", to_string(limit.algorithm),
                     core::rate_text(limit), counted(first.keys, "key"),
                     options.virtual_time ? "virtual" : "real", behaviour);
}

std::vector<LoadResult> run_all(
    const Plan& plan, const core::CompiledLimit& limit, Timeline& time,
    const std::function<void(const Traffic&, const LoadResult&)>& report) {
  Generator generator{limit, time};
  std::vector<LoadResult> results;
  for (const Traffic& batch : plan.batches) {
    Progress progress{fmt::format("{}@{}", batch.requests, batch.per_second)};
    const auto watch = [&](double share) {
      progress.show(share);
      return !was_interrupted();
    };
    results.push_back(generator.run(batch, watch));
    progress.clear();
    report(batch, results.back());
    if (results.back().interrupted || results.back().gave_up) break;
  }
  return results;
}

ExitCode fail(const Diagnostic& mistake) {
  complain(kCommand, mistake.text());
  return ExitCode::usage;
}

// The first option that makes sense for a server alone.
std::optional<std::string_view> first_of_url(const HttpLoadOptions& options) {
  const std::array<std::pair<bool, std::string_view>, 15> given{{
      {options.connections.has_value(), "--connections"},
      {options.threads.has_value(), "--threads"},
      {options.timeout.has_value(), "--timeout"},
      {options.clients.has_value(), "--clients"},
      {options.spread.has_value(), "--spread"},
      {options.keys_file.has_value(), "--keys-file"},
      {options.method.has_value(), "--method"},
      {!options.headers.empty(), "--header"},
      {options.body.has_value(), "--body"},
      {options.body_size.has_value(), "--body-size"},
      {options.ca_file.has_value(), "--ca-file"},
      {options.expect.has_value(), "--expect"},
      {options.svg.has_value(), "--svg"},
      {options.insecure, "--insecure"},
      {options.closed, "--closed"},
  }};
  const auto* const first = std::ranges::find_if(given, [](const auto& one) { return one.first; });
  return first != given.end() ? std::optional{first->second} : std::nullopt;
}

ExitCode load_in_process(const LoadOptions& options) {
  const Parsed<Limit> limit = parse_limit_options(options.limit);
  if (!limit) return fail(limit.error());
  const Parsed<core::CompiledLimit> compiled = compile_limit(*limit);
  if (!compiled) return fail(compiled.error());
  const Parsed<Plan> plan = make_plan(options, *limit);
  if (!plan) return fail(plan.error());

  catch_interrupts();
  std::unique_ptr<Timeline> time;
  if (options.virtual_time) {
    time = std::make_unique<VirtualTimeline>();
  } else {
    time = std::make_unique<RealTimeline>();
  }
  Output out;
  if (!options.json) out.write(headline(options, *plan, *limit));
  const std::vector<LoadResult> results =
      run_all(*plan, *compiled, *time, [&](const Traffic& traffic, const LoadResult& result) {
        if (!options.json) return;
        out.write(result_json(traffic, result));
        out.flush();
      });
  if (!options.json) out.write(results_table(*plan, results, out));
  if (results.back().interrupted) complain(kCommand, "stopped early; these are the results so far");
  if (results.back().gave_up) {
    complain(kCommand, fmt::format("gave up after {} rejections in a row; use a longer --retry "
                                   "or a higher limit",
                                   kInVainMax));
  }
  return out.finish(kCommand, results.back().gave_up ? ExitCode::failure : ExitCode::ok);
}

}  // namespace

ExitCode load(const LoadOptions& options) {
  if (options.url) return load_http(options);
  if (const auto option = first_of_url(options.http)) {
    return fail({fmt::format("{} is for runs against a server", *option),
                 "add its URL, as in sluice load http://127.0.0.1:8080/"});
  }
  return load_in_process(options);
}

}  // namespace sluice::cli
