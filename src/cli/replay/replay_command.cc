#include "cli/replay/replay.h"

#include "base/text.h"
#include "cli/command.h"
#include "cli/replay/rules_replay.h"
#include "cli/terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {
namespace {

constexpr const char* kReplayFooter =
    R"(A trace has a request per line, `time[,key[,cost[,duration]]]`: time in RFC 3339 or whole
nanoseconds since 1970, the duration (for concurrency) as in 250ms. Blank lines and lines that
begin with # are skipped. A trace whose first line is `N R` holds N times and means sliding_log
at R per hour.

Prints true or false for each request; --json prints an object for each, on one line:
  {"allowed":true,"limit":3,"remaining":2,"reset_after_ns":3600000000000,
   "retry_after_ns":null,"delay_ns":0}

With --rules, a log goes through a whole configuration: the gateway's JSON lines, or nginx's
combined log. A summary shows how often each rule matched, and which rules need values that the log
lacks. --diff lists the requests that another configuration decides differently (status, reason or
rule), and exits with 1 if there are any; with --json, an object for each of them, and one for the
summary.

Examples:
  sluice replay trace.csv --limit 3/1h --algorithm sliding_log
  sluice replay trace.csv --limit 100/1s --burst 20 --json
  sluice replay trace.csv --limit 1000/month --timezone Europe/Berlin
  sluice replay trace.csv --limit 10/1s --compare --svg comparison.svg
  sluice replay access.log --rules sluice.yaml
  sluice replay access.log --rules sluice.yaml --diff stricter.yaml
  printf '0\n0\n500000000\n' | sluice replay --limit 1/1s

Exit status: 0 success, 1 --diff found requests that are decided differently, 2 the command line is
wrong, 3 the trace or the configuration cannot be read.)";

// Given, and without effect where a configuration says what the limits are.
std::vector<std::string> options_of_a_limit(const CLI::App& command) {
  constexpr std::array<std::string_view, 3> kPictures{"--compare", "--rows", "--svg"};
  std::vector<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool concerned =
        option->get_group() == kLimitGroup || std::ranges::find(kPictures, name) != kPictures.end();
    if (concerned && option->count() > 0) given.push_back("--" + option->get_lnames().front());
  }
  return given;
}

ExitCode refuse_with_rules(const std::vector<std::string>& given) {
  const std::vector<std::string_view> names{given.begin(), given.end()};
  const bool one = names.size() == 1;
  complain("replay", fmt::format("{} {} for one limit, and --rules has the limits of a "
                                 "configuration; leave {} out, or --rules",
                                 join_words(names), one ? "is" : "are", one ? "it" : "them"));
  return ExitCode::usage;
}

}  // namespace

void add_replay(CLI::App& program, Action& action) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = program.add_subcommand(
      "replay", "Run recorded requests through a limit or through rules, on virtual time");
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
  auto rules = std::make_shared<RulesReplayOptions>();
  auto format = std::make_shared<std::string>();
  const char* const group = "Rules";
  CLI::Option* by_rules =
      command->add_option("--rules", rules->rules, "A configuration instead of a limit")
          ->type_name("FILE")
          ->group(group);
  CLI::Option* differs =
      command->add_option("--diff", rules->diff, "Another configuration to compare with")
          ->type_name("FILE")
          ->needs(by_rules)
          ->group(group);
  command
      ->add_option("--changes", rules->changes,
                   "With --diff: changed requests to list, 0 for all (default 20, all with "
                   "--json)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->needs(differs)
      ->group(group);
  command->add_option("--format", *format, "json or combined (default: as the first line looks)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"json", "combined"}))
      ->needs(by_rules)
      ->group(group);
  command
      ->add_flag("--strict", rules->strict,
                 "Stop with an error at a line that cannot be read, instead of skipping it")
      ->needs(by_rules)
      ->group(group);
  command->footer(kReplayFooter);
  command->callback([command, options, rules, format, &action] {
    if (rules->rules.empty()) {
      action = [options] { return replay(*options); };
      return;
    }
    if (const auto given = options_of_a_limit(*command); !given.empty()) {
      action = [given] { return refuse_with_rules(given); };
      return;
    }
    rules->trace = options->trace;
    rules->json = options->json;
    if (!format->empty()) {
      rules->format = *format == "json" ? LogFormat::json : LogFormat::combined;
    }
    action = [rules] { return replay_rules(*rules); };
  });
}

}  // namespace sluice::cli
