#include "cli/load/load.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kLoadFooter =
    R"(With a URL it loads a server: requests start at a constant rate (open loop), so
a slow server cannot slow the traffic down, and latencies count from the scheduled start. The report
shows admitted (2xx, 3xx) and rejected (429) requests per second beside the limits that the server
states or --expect gives. {n} in the path or a header stands for the number of the
client, from 1; {key} for its line of --keys-file.

Without a URL, two kinds of traffic against a limiter in this process:

  batches       T requests started at R per second, each trying again until it is allowed; prints
                how long a batch took and the rate it achieved: the lower of offered rate and limit,
                and a little more while a burst lasts. This is the default, with
                10@1,20@2,50@5,100@10,200@20,250@25,500@50,1000@100
  --rate        requests at a constant rate, each trying once

Exit status: 0; 1 if more was admitted than --expect allows, or no response arrived; 2 the command
line is wrong; 3 the server cannot be reached.

Examples:
  sluice load http://127.0.0.1:8080/ --rate 500/s --duration 30s
  sluice load http://127.0.0.1:8080/ --clients 20 --header 'x-api-key: demo-{n}' --expect 100/1s
  sluice load https://api.example.com/v1/users --keys-file keys.txt --header 'x-api-key: {key}'
  sluice load http://127.0.0.1:8080/ --rate 5000/s --clients 1000 --spread zipf \
      --header 'x-api-key: {n}' --svg load.svg
  sluice load --limit 20/1s --virtual
  sluice load --limit 100/1s --rate 250 --duration 10s --keys 3
  sluice load --limit 20 --algorithm concurrency --hold 100ms --rate 500 --virtual --json)";

void add_http_options(CLI::App& command, HttpLoadOptions& options) {
  const auto add = [&](const char* group, const char* name, auto& value, const char* type,
                       const char* help) {
    command.add_option(name, value, help)->type_name(type)->group(group);
  };
  const char* const server = "Server";
  add(server, "--connections", options.connections, "N", "Connections to open (default 64)");
  add(server, "--threads", options.threads, "N", "Threads that share them (default 1)");
  add(server, "--timeout", options.timeout, "TIME",
      "How long to wait for a response, and for a free connection (default 5s)");
  command.add_flag("--closed", options.closed, "As fast as responses come, instead of a rate")
      ->group(server);
  add(server, "--ca-file", options.ca_file, "FILE", "https: CAs to trust instead of the system's");
  command.add_flag("--insecure", options.insecure, "https: do not verify the certificate")
      ->group(server);

  const char* const requests = "Requests";
  add(requests, "--clients", options.clients, "N", "Identities to send as (default 1)");
  add(requests, "--spread", options.spread, "HOW",
      "even: each in turn (default); zipf: client k in proportion to 1/k");
  add(requests, "--keys-file", options.keys_file, "FILE", "A key for each client, one a line");
  // One at a time: the word behind it may be the URL.
  command
      .add_option("-H,--header", options.headers,
                  "A header, as in 'x-api-key: demo-{n}'; may be given several times")
      ->allow_extra_args(false)
      ->type_name("LINE")
      ->group(requests);
  add(requests, "--method", options.method, "NAME", "Default GET; POST with a body");
  add(requests, "--body", options.body, "TEXT", "What to send with each request");
  add(requests, "--body-size", options.body_size, "BYTES", "So many bytes instead");

  const char* const results = "Results";
  add(results, "--expect", options.expect, "RATE",
      "The limit of each client, as in 100/1s; with --burst and --algorithm it is checked more "
      "exactly");
  add(results, "--svg", options.svg, "FILE", "Draw rates and latencies over time");
}

}  // namespace

void add_load(CLI::App& program, Action& action) {
  auto options = std::make_shared<LoadOptions>();
  CLI::App* command =
      program.add_subcommand("load", "Generate traffic and measure what a limit admits");
  command->add_option("url", options->url, "A server to drive: http://HOST:PORT/PATH")
      ->type_name("URL");
  add_http_options(*command, options->http);
  add_limit_options(*command, options->limit);
  const char* const group = "Traffic";
  command
      ->add_option("--batches", options->batches,
                   "Batches to run one after another, as in 10@1,20@2")
      ->type_name("T@R,...")
      ->group(group);
  command
      ->add_option("--retry", options->retry,
                   "Pause before a rejected request tries again (default 10ms)")
      ->type_name("TIME")
      ->group(group);
  command
      ->add_option("--rate", options->rate,
                   "Constant rate, in requests per second, instead of batches (default 2000/s for "
                   "a URL)")
      ->type_name("R")
      ->group(group);
  command->add_option("--duration", options->duration, "How long to keep that rate (default 10s)")
      ->type_name("TIME")
      ->group(group);
  command->add_option("--keys", options->keys, "Clients, each with its own counter (default 1)")
      ->type_name("N")
      ->group(group);
  command
      ->add_option("--hold", options->hold,
                   "concurrency: how long a request stays in flight (default 100ms)")
      ->type_name("TIME")
      ->group(group);
  command->add_option("--seed", options->seed, "Repeats a run's choice of keys (default 1)")
      ->type_name("N")
      ->group(group);
  command
      ->add_flag("--virtual", options->virtual_time,
                 "Virtual time: no waiting, the same result every time")
      ->group(group);
  command->add_flag("--json", options->json, "One JSON object per batch, or for the run");
  command->footer(kLoadFooter);
  command->callback([options, &action] { action = [options] { return load(*options); }; });
}

}  // namespace sluice::cli
