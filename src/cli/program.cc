#include "cli/program.h"

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  sluice init login
  sluice check sluice.yaml
  sluice serve -c sluice.yaml
  sluice status --watch 1s
  sluice explain 'GET /v1/users' -c sluice.yaml --ip 192.0.2.1
  sluice replay trace.csv --limit 100/1s
  sluice replay trace.csv --limit 100/1s --compare --svg comparison.svg
  sluice load --limit 20/1s --virtual
  sluice load http://127.0.0.1:8080/ --rate 500/s --duration 30s
  sluice keys create --name acme --tier paid --file keys.yaml

Exit status: 0 success, 1 the result is negative (a rejected request, an invalid file), 2 the
command line is wrong, 3 the input or the system is. `sluice COMMAND --help` has more.)";

// Options and commands that had another name before. They are no longer read; the message names the
// new one.
struct Renamed {
  std::string_view before;
  std::string_view now;
};
constexpr Renamed kRenamedOptions[] = {
    {"--zone", "--timezone"},   {"--granularity", "--bucket-width"},    {"--ttl", "--slot-ttl"},
    {"--queue", "--max-delay"}, {"--count-denied", "--count-rejected"}, {"--ca", "--ca-file"},
};
constexpr Renamed kRenamedCommands[] = {{"new", "create"}};

// Commands that people know from other servers, and what to do here.
struct Instead {
  std::string_view word;
  std::string_view what;
};
constexpr std::string_view kReloadRemedy =
    "edit the file: a running server reloads it by itself, and at once on SIGHUP";
constexpr std::string_view kValidateRemedy = "'sluice check FILE' validates a configuration";
constexpr std::string_view kServeRemedy = "'sluice serve -c FILE' runs the gateway";
constexpr Instead kInstead[] = {
    {"reload", kReloadRemedy},
    {"stop", "send SIGTERM to the server: it finishes the requests in flight and stops"},
    {"restart", "stop the server by SIGTERM and start it again; a changed file needs no restart"},
    {"validate", kValidateRemedy},
    {"test", kValidateRemedy},
    {"configtest", kValidateRemedy},
    {"start", kServeRemedy},
    {"run", kServeRemedy},
};

// Nothing if the word is no former name of a known one.
std::string_view renamed(std::span<const Renamed> names, std::string_view word,
                         const std::vector<std::string_view>& known) {
  for (const Renamed& name : names) {
    if (name.before == word && std::ranges::find(known, name.now) != known.end()) return name.now;
  }
  return {};
}

// The command that the line names, as far as it could be parsed; the program itself for none.
const CLI::App& parsed_command(const CLI::App& program) {
  const auto commands = program.get_subcommands();
  return commands.empty() ? program : parsed_command(*commands.front());
}

// For "sluice keys create: ...", without the program's own name.
std::string name_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  if (parent == nullptr) return {};
  const std::string above = name_of(*parent);
  return above + (above.empty() ? "" : " ") + command.get_name();
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) names.push_back(command->get_name());
  return names;
}

// CLI11 only says that a command is missing when the word it found is none.
std::string unknown_command(const CLI::App& program, std::string_view word) {
  const std::vector<std::string> names = command_names(program);
  const std::vector<std::string_view> known{names.begin(), names.end()};
  const std::string_view now = renamed(kRenamedCommands, word, known);
  if (!now.empty()) {
    return fmt::format("unknown command {}; it is called {} now", quoted(word), now);
  }
  const auto* const instead = std::ranges::find(kInstead, word, &Instead::word);
  if (program.get_parent() == nullptr && instead != std::end(kInstead)) {
    return fmt::format("unknown command {}; {}", quoted(word), instead->what);
  }
  const std::string_view nearest = nearest_word(word, known);
  return fmt::format("unknown command {}; {}known are {}", quoted(word),
                     nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest),
                     join_words(known));
}

std::string known_commands(const CLI::App& program) {
  const std::vector<std::string> names = command_names(program);
  const std::vector<std::string_view> known{names.begin(), names.end()};
  return join_words(known);
}

// The first argument that a command cannot use, options before others.
std::string unexpected_argument(const CLI::App& command, const std::vector<std::string>& extras) {
  const auto option =
      std::ranges::find_if(extras, [](const std::string& extra) { return extra.starts_with('-'); });
  if (option == extras.end()) {
    const bool takes_file = command.get_option_no_throw("--config") != nullptr;
    return fmt::format("unexpected argument {}{}", sluice::quoted(extras.front()),
                       takes_file ? "; the configuration is named by -c FILE" : "");
  }
  const std::vector<std::string> names = option_names(command);
  const std::vector<std::string_view> known{names.begin(), names.end()};
  const std::string_view word = std::string_view{*option}.substr(0, option->find('='));
  const std::string_view now = renamed(kRenamedOptions, word, known);
  if (!now.empty()) {
    return fmt::format("unknown option {}; it is called {} now", quoted(word), now);
  }
  const std::string_view nearest = nearest_word(*option, known);
  return fmt::format("unknown option {}{}", sluice::quoted(*option),
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
}

// Of the program, or of a command that has commands of its own, and none of those was named.
std::string usage_of_group(const CLI::App& group, std::span<char* const> behind) {
  if (behind.empty()) {
    return fmt::format("a command is missing; known are {}", known_commands(group));
  }
  const std::string_view word = behind.front();
  return word.starts_with('-') ? fmt::format("unknown option {}", quoted(word))
                               : unknown_command(group, word);
}

std::size_t depth_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? 0 : 1 + depth_of(*command.get_parent());
}

int report_usage(const CLI::App& program, const CLI::ParseError& error,
                 std::span<char* const> arguments) {
  const CLI::App& command = parsed_command(program);
  const std::string name = "sluice" + (depth_of(command) == 0 ? "" : " " + name_of(command));
  std::string message = error.what();
  if (!commands_of(command).empty()) {
    const std::size_t named = std::min(1 + depth_of(command), arguments.size());
    message = usage_of_group(command, arguments.subspan(named));
  } else if (const auto extras = command.remaining(); !extras.empty()) {
    message = unexpected_argument(command, extras);
  }
  fmt::print(stderr, "{}: {}\nTry '{} --help'.\n", name, message, name);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

void add_limit_options(CLI::App& command, LimitOptions& options) {
  const char* const group = kLimitGroup;
  command
      .add_option("-l,--limit", options.limit,
                  "amount/period: 100/1s, 5/1h30m, 1000/month; the amount alone for concurrency")
      ->type_name("RATE")
      ->group(group);
  command
      .add_option(
          "-a,--algorithm", options.algorithm,
          "token_bucket (default; fixed_window for day, week, month, year), leaky_bucket, gcra, "
          "fixed_window, sliding_log, "
          "sliding_counter, sliding_buckets, concurrency")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--burst", options.burst,
                  "capacity of a bucket (default: the amount; leaky_bucket: 1)")
      ->type_name("N")
      ->group(group);
  command.add_option("--refill", options.refill, "token_bucket: continuous (default) or interval")
      ->type_name("HOW")
      ->group(group);
  command
      .add_option("--align", options.align,
                  "fixed_window: epoch (default), calendar or first_request")
      ->type_name("TO")
      ->group(group);
  command.add_option("--timezone", options.timezone, "calendar windows: time zone (default UTC)")
      ->type_name("TIMEZONE")
      ->group(group);
  command
      .add_option("--bucket-width", options.bucket_width,
                  "sliding_buckets: width of a slice (default: an eighth of the period)")
      ->type_name("TIME")
      ->group(group);
  command
      .add_option("--max-delay", options.max_delay,
                  "leaky_bucket: queue requests for up to this long instead of rejecting them")
      ->type_name("TIME")
      ->group(group);
  command
      .add_option("--slot-ttl", options.slot_ttl,
                  "concurrency: life of a lease that is not renewed (default 60s)")
      ->type_name("TIME")
      ->group(group);
  command.add_flag("--count-rejected", options.count_rejected, "rejected requests consume, too")
      ->group(group);
}

int run_program(int argc, char** argv) {
  // A reader that goes away is an error on write, with a message, not a silent death.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App program{"Sluice, an API gateway that enforces rate limits.", "sluice"};
  program.footer(kExamples);
  program.set_version_flag("--version", std::string{"sluice "} + SLUICE_VERSION);
  program.require_subcommand(1);
  Action action;
  add_init(program, action);
  add_serve(program, action);
  add_status(program, action);
  add_check(program, action);
  add_explain(program, action);
  add_replay(program, action);
  add_load(program, action);
  add_keys(program, action);
  add_completion(program, action);

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    return report_usage(program, error, {argv, static_cast<std::size_t>(argc)});
  }

  try {
    return static_cast<int>(action());
  } catch (const std::exception& error) {
    complain(name_of(parsed_command(program)), fmt::format("unexpected failure: {}", error.what()));
    return static_cast<int>(ExitCode::failure);
  }
}

}  // namespace sluice::cli
