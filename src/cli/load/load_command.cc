#include "cli/load/load.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kFooter = R"(Two kinds of traffic against a limiter in this process:

  batches       T requests started at R per second, each trying again until it is allowed; prints
                how long a batch took and the rate it achieved: the lower of offered rate and limit,
                and a little more while a burst lasts. This is the default, with
                10@1,20@2,50@5,100@10,200@20,250@25,500@50,1000@100
  --rate        requests at a constant rate, each trying once

Requests start on schedule whatever the answers are, and waits count from the scheduled start.

Examples:
  sluice load --limit 20/1s --virtual
  sluice load --limit 20/1s --algorithm leaky_bucket --queue 5s --batches 200@50
  sluice load --limit 100/1s --rate 250 --duration 10s --keys 3
  sluice load --limit 20 --algorithm concurrency --hold 100ms --rate 500 --virtual --json)";

}  // namespace

void add_load(CLI::App& program, Action& action) {
  auto options = std::make_shared<LoadOptions>();
  CLI::App* command =
      program.add_subcommand("load", "Generate traffic and measure what a limit admits");
  add_limit_options(*command, options->limit);
  const char* const group = "Traffic";
  command
      ->add_option("--batches", options->batches,
                   "Batches to run one after another, as in 10@1,20@2")
      ->type_name("T@R,...")
      ->group(group);
  command
      ->add_option("--retry", options->retry,
                   "Pause before a refused request tries again (default 10ms)")
      ->type_name("TIME")
      ->group(group);
  command
      ->add_option("--rate", options->rate,
                   "Constant rate, in requests per second, instead of batches")
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
  command->add_flag("--json", options->json, "One JSON object per batch");
  command->footer(kFooter);
  command->callback([options, &action] { action = [options] { return load(*options); }; });
}

}  // namespace sluice::cli
