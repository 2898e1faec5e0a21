// How a command joins the command line.
//
// Each command has a file that declares its options to CLI11, and files that do the work from a
// plain struct of options; only the former uses CLI11.
#pragma once

#include "cli/exit_code.h"
#include "cli/limit_options.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}  // namespace CLI

namespace sluice::cli {

// Set by the command that the line names; run after parsing.
using Action = std::function<ExitCode()>;

void add_replay(CLI::App& program, Action& action);
void add_load(CLI::App& program, Action& action);
void add_check(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_init(CLI::App& program, Action& action);
void add_keys(CLI::App& program, Action& action);
void add_serve(CLI::App& program, Action& action);
void add_status(CLI::App& program, Action& action);
void add_completion(CLI::App& program, Action& action);

// The commands of the program, or of a command that has its own, and a command's options as they
// are typed: for messages and completion.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& program);
[[nodiscard]] std::vector<std::string> option_names(const CLI::App& command);

// The options that describe a limit, shared by the commands that take one; as --help groups them.
inline constexpr const char* kLimitGroup = "Limit";
void add_limit_options(CLI::App& command, LimitOptions& options);

}  // namespace sluice::cli
