#include "cli/replay/replay.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kFooter =
    R"(A trace has a request per line, `time[,key[,cost[,duration]]]`: time in RFC 3339 or whole
nanoseconds since 1970, the duration (for concurrency) as in 250ms. Blank lines and lines that
begin with # are skipped. A trace whose first line is `N R` holds N times and means sliding_log
at R per hour.

Prints true or false for each request; --json prints an object for each, on one line:
  {"allowed":true,"limit":3,"remaining":2,"reset_after_ns":3600000000000,
   "retry_after_ns":null,"delay_ns":0}

Examples:
  sluice replay trace.csv --limit 3/1h --algorithm sliding_log
  sluice replay trace.csv --limit 100/1s --burst 20 --json
  sluice replay trace.csv --limit 1000/month --zone Europe/Berlin
  sluice replay trace.csv --limit 10/1s --compare --svg comparison.svg
  printf '0\n0\n500000000\n' | sluice replay --limit 1/1s)";

}  // namespace

void add_replay(CLI::App& program, Action& action) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = program.add_subcommand(
      "replay", "Run recorded requests through an algorithm, on virtual time");
  command->add_option("trace", options->trace, "File to read; - or nothing for standard input")
      ->type_name("TRACE");
  add_limit_options(*command, options->limit);
  command->add_flag("--json", options->json, "One JSON object per line");
  command->add_flag("--compare", options->compare, "All algorithms side by side, as a table");
  command
      ->add_option("--rows", options->rows,
                   "With --compare: requests to list, 0 for all (default 40)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--svg", options->svg, "Also draw the requests over time into this file")
      ->type_name("FILE");
  command->footer(kFooter);
  command->callback([options, &action] { action = [options] { return replay(*options); }; });
}

}  // namespace sluice::cli
