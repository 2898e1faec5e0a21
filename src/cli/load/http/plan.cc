#include "cli/load/http/plan.h"

#include "base/duration.h"
#include "base/text.h"
#include "cli/load/option_text.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::uint64_t kConnectionsMax = 20'000;
constexpr std::uint64_t kClientsMax = 10'000'000;
constexpr std::uint64_t kThreadsMax = 256;
constexpr std::uint64_t kBodyBytesMax = std::uint64_t{64} << 20U;
constexpr Nanos kDurationMax{std::chrono::hours{24 * 7}};

Parsed<Nanos> parse_duration_option(const LoadOptions& options) {
  Parsed<Nanos> duration = parse_time_option("--duration", options.duration.value_or("10s"));
  if (duration && *duration > kDurationMax) {
    return mistake("--duration: a run lasts at most a week", "use at most 7d");
  }
  return duration;
}

Parsed<std::optional<Schedule>> parse_schedule(const LoadOptions& options) {
  if (options.http.closed) {
    if (!options.rate) return std::nullopt;
    return mistake("--closed sends as fast as responses come; there is no rate to keep",
                   "leave out --rate or --closed");
  }
  const Parsed<Schedule> schedule = parse_rate(options.rate.value_or("2000/s"));
  if (!schedule) {
    return mistake("--rate: " + schedule.error().message, schedule.error().remedy);
  }
  return *schedule;
}

Parsed<Spread> parse_spread(std::string_view text) {
  if (text == "even") return Spread::even;
  if (text == "zipf") return Spread::zipf;
  return mistake(fmt::format("--spread: {} is not known", quoted(text)), "use even or zipf");
}

Parsed<std::string> parse_body(const HttpLoadOptions& options) {
  if (options.body && options.body_size) {
    return mistake("--body and --body-size say different things", "leave one of them out");
  }
  if (options.body) return *options.body;
  if (!options.body_size) return std::string{};
  const auto size = parse_number(*options.body_size);
  if (!size || *size > kBodyBytesMax) {
    return mistake(fmt::format("--body-size: {} is not a whole number of bytes up to {}",
                               quoted(*options.body_size), kBodyBytesMax));
  }
  return std::string(*size, 'x');
}

std::string method_of(const HttpLoadOptions& options) {
  return options.method.value_or(options.body || options.body_size ? "POST" : "GET");
}

Parsed<RequestTemplate> make_request(const HttpLoadOptions& options, const net::HttpUrl& target,
                                     std::vector<std::string> keys) {
  Parsed<std::string> body = parse_body(options);
  if (!body) return tl::unexpected(body.error());
  return RequestTemplate::make({.method = method_of(options),
                                .host = target.host,
                                .path_and_query = target.path_and_query,
                                .headers = options.headers,
                                .body = *std::move(body),
                                .has_body = options.body || options.body_size,
                                .keys = std::move(keys)});
}

Parsed<std::uint64_t> parse_clients(const HttpLoadOptions& options, std::size_t keys,
                                    const RequestTemplate& request) {
  const auto usual = keys > 0 ? std::to_string(keys) : std::string{"1"};
  auto clients = parse_count("--clients", options.clients.value_or(usual), kClientsMax);
  if (!clients) return clients;
  if (keys > 0 && *clients > keys) {
    return mistake(fmt::format("--clients {}: the file has {} keys", *clients, keys),
                   "add keys, or ask for fewer clients");
  }
  if (*clients > 1 && !request.depends_on_client()) {
    return mistake(fmt::format("nothing tells the {} clients apart", *clients),
                   "add --header 'x-api-key: client-{n}', or {n} in the path");
  }
  return clients;
}

Parsed<std::optional<Expectation>> parse_expectation(const LoadOptions& options) {
  const LimitOptions& limit = options.limit;
  if (!options.http.expect) {
    if (!limit.burst && !limit.algorithm) return std::nullopt;
    return mistake("--burst and --algorithm describe what to expect", "add --expect, as in 100/1s");
  }
  LimitOptions spelt{
      .algorithm = limit.algorithm, .limit = options.http.expect, .burst = limit.burst};
  const Parsed<Limit> parsed = parse_limit_options(spelt);
  if (!parsed) return mistake("--expect: " + parsed.error().message, parsed.error().remedy);
  if (const auto compiled = compile_limit(*parsed); !compiled) {
    return mistake("--expect: " + compiled.error().message, compiled.error().remedy);
  }
  if (parsed->period == Nanos{0}) {
    return mistake("--expect: requests in flight and windows of the calendar cannot be checked",
                   "give an amount and a time, as in 100/1s or 1000/24h");
  }
  return Expectation{
      .amount = parsed->amount,
      .period = parsed->period,
      .burst = parsed->burst,
      .algorithm = limit.algorithm ? std::optional{parsed->algorithm} : std::nullopt};
}

Parsed<std::shared_ptr<const net::TlsClient>> make_tls(const HttpLoadOptions& options, bool tls) {
  if (!tls) {
    if (!options.insecure && !options.ca_file) return nullptr;
    return mistake("--ca-file and --insecure are for https", "leave them out, or write https://");
  }
  if (options.insecure && options.ca_file) {
    return mistake("--insecure verifies no certificate, --ca-file does", "leave one of them out");
  }
  return net::TlsClient::load(
      {.verify = !options.insecure, .ca_file = options.ca_file.value_or("")});
}

// Options of the other kind of run, which would be without effect.
Parsed<void> reject_in_process_options(const LoadOptions& options) {
  const auto reject = [](bool given, std::string_view option,
                         std::string_view remedy) -> Parsed<void> {
    if (!given) return {};
    return mistake(fmt::format("{} is for a limiter in this process, not for a URL", option),
                   std::string{remedy});
  };
  const LimitOptions& limit = options.limit;
  const bool others = limit.refill || limit.align || limit.timezone || limit.bucket_width ||
                      limit.max_delay || limit.slot_ttl || limit.count_rejected;
  return reject(limit.limit.has_value(), "--limit", "to check what is admitted, write --expect")
      .and_then([&] { return reject(others, "what describes a limit in detail", "leave it out"); })
      .and_then([&] { return reject(options.keys.has_value(), "--keys", "write --clients"); })
      .and_then([&] {
        return reject(options.batches || options.retry, "--batches or --retry", "write --rate");
      })
      .and_then([&] { return reject(options.hold.has_value(), "--hold", "leave it out"); })
      .and_then([&] { return reject(options.virtual_time, "--virtual", "leave it out"); });
}

struct Pace {
  std::optional<Schedule> schedule;
  Nanos duration;
  Nanos timeout;
};

Parsed<Pace> parse_pace(const LoadOptions& options) {
  const auto schedule = parse_schedule(options);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto duration = parse_duration_option(options);
  if (!duration) return tl::unexpected(duration.error());
  const auto timeout = parse_time_option("--timeout", options.http.timeout.value_or("5s"));
  if (!timeout) return tl::unexpected(timeout.error());
  return Pace{*schedule, *duration, *timeout};
}

struct Width {
  std::size_t connections;
  std::size_t threads;
};

Parsed<Width> parse_width(const HttpLoadOptions& options) {
  const auto connections =
      parse_count("--connections", options.connections.value_or("64"), kConnectionsMax);
  if (!connections) return tl::unexpected(connections.error());
  const auto threads = parse_count("--threads", options.threads.value_or("1"), kThreadsMax);
  if (!threads) return tl::unexpected(threads.error());
  if (*threads > *connections) {
    return mistake(
        fmt::format("{} threads have nothing to do with {} connections", *threads, *connections),
        "add --connections, or ask for fewer threads");
  }
  return Width{*connections, *threads};
}

struct Crowd {
  RequestTemplate request;
  ClientShares clients;
};

Parsed<Crowd> parse_crowd(const HttpLoadOptions& options, const net::HttpUrl& target) {
  std::vector<std::string> keys;
  if (options.keys_file) {
    auto read = read_keys(*options.keys_file);
    if (!read) return tl::unexpected(read.error());
    keys = *std::move(read);
  }
  const std::size_t key_count = keys.size();
  Parsed<RequestTemplate> request = make_request(options, target, std::move(keys));
  if (!request) return tl::unexpected(request.error());
  const auto clients = parse_clients(options, key_count, *request);
  if (!clients) return tl::unexpected(clients.error());
  const auto spread = parse_spread(options.spread.value_or("even"));
  if (!spread) return tl::unexpected(spread.error());
  return Crowd{*std::move(request), ClientShares{*spread, *clients}};
}

}  // namespace

Parsed<HttpPlan> make_http_plan(const LoadOptions& options) {
  if (const auto rejected = reject_in_process_options(options); !rejected) {
    return tl::unexpected(rejected.error());
  }
  Parsed<net::HttpUrl> target = net::HttpUrl::parse(*options.url, "URL to load");
  if (!target) return tl::unexpected(target.error());
  const Parsed<Pace> pace = parse_pace(options);
  if (!pace) return tl::unexpected(pace.error());
  const Parsed<Width> width = parse_width(options.http);
  if (!width) return tl::unexpected(width.error());
  Parsed<Crowd> crowd = parse_crowd(options.http, *target);
  if (!crowd) return tl::unexpected(crowd.error());
  const auto seed = parse_number(options.seed.value_or("1"));
  if (!seed) return mistake(fmt::format("--seed: {} is not a whole number", quoted(*options.seed)));
  const auto expect = parse_expectation(options);
  if (!expect) return tl::unexpected(expect.error());
  auto tls = make_tls(options.http, target->is_tls);
  if (!tls) return tl::unexpected(tls.error());
  return HttpPlan{.url = *options.url,
                  .target = *std::move(target),
                  .tls = *std::move(tls),
                  .method = method_of(options.http),
                  .request = std::move(crowd->request),
                  .schedule = pace->schedule,
                  .duration = pace->duration,
                  .timeout = pace->timeout,
                  .connections = width->connections,
                  .threads = width->threads,
                  .clients = std::move(crowd->clients),
                  .seed = *seed,
                  .expect = *expect};
}

}  // namespace sluice::cli
