// sluice completion: what a shell needs to complete commands, options and their values.
//
// The scripts are made from the command line's own description, so they cannot miss an option.
#include "base/text.h"
#include "cli/command.h"
#include "cli/init/recipes.h"
#include "cli/terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {
namespace {

// Options whose values are known words.
struct Values {
  std::string_view options;  // as in a shell's case pattern
  std::string words;
};

std::vector<Values> known_values() {
  std::string algorithms;
  for (const Algorithm algorithm : kAlgorithms) {
    algorithms += fmt::format("{}{}", algorithms.empty() ? "" : " ", to_string(algorithm));
  }
  return {{"-a|--algorithm", algorithms},
          {"--refill", "continuous interval"},
          {"--align", "epoch calendar first_request"},
          {"--spread", "even zipf"}};
}

// Words that may follow a command; empty where anything may, as the name of a file.
std::vector<std::string> words_behind(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* below : commands_of(command)) words.push_back(below->get_name());
  if (command.get_name() == "completion") words = {"bash", "zsh", "fish"};
  if (command.get_name() == "init") {
    for (const Recipe& recipe : recipes()) words.emplace_back(recipe.name);
  }
  return words;
}

// Those of its own commands included: which of them was typed, the script does not look at.
std::vector<std::string> all_options(const CLI::App& command) {
  std::vector<std::string> options = option_names(command);
  for (const CLI::App* below : commands_of(command)) {
    for (const std::string& option : option_names(*below)) {
      if (std::ranges::find(options, option) == options.end()) options.push_back(option);
    }
  }
  return options;
}

std::string bash_script(const CLI::App& program) {
  std::string commands;
  std::string options;
  std::string words;
  for (const CLI::App* command : commands_of(program)) {
    commands += fmt::format("{} ", command->get_name());
    options += fmt::format("          {}) words=\"{}\" ;;\n", command->get_name(),
                           fmt::join(all_options(*command), " "));
    if (const auto behind = words_behind(*command); !behind.empty()) {
      words += fmt::format("          {}) words=\"{}\" ;;\n", command->get_name(),
                           fmt::join(behind, " "));
    }
  }
  std::string values;
  for (const Values& known : known_values()) {
    values += fmt::format("    {}) words=\"{}\" ;;\n", known.options, known.words);
  }
  return fmt::format(R"(_sluice() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  COMPREPLY=()
  case $previous in
{values}    *)
      if ((COMP_CWORD == 1)); then
        words="{commands}{program_options}"
      elif [[ $current == -* ]]; then
        case ${{COMP_WORDS[1]}} in
{options}        esac
      elif ((COMP_CWORD == 2)); then
        case ${{COMP_WORDS[1]}} in
{words}        esac
      fi
      ;;
  esac
  [[ -n $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _sluice sluice
)",
                     fmt::arg("values", values), fmt::arg("commands", commands),
                     fmt::arg("program_options", fmt::join(option_names(program), " ")),
                     fmt::arg("options", options), fmt::arg("words", words));
}

std::string zsh_script(const CLI::App& program) {
  return "#compdef sluice\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(program);
}

std::string fish_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? std::string{"\\'"} : std::string{c};
  return safe + "'";
}

std::string fish_options(const CLI::App& command, std::string_view behind) {
  std::string script;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      std::string values;
      for (const Values& known : known_values()) {
        if (known.options.ends_with("--" + name))
          values = fmt::format(" -x -a {}", fish_quoted(known.words));
      }
      script += fmt::format("{} -l {}{} -d {}\n", behind, name, values,
                            fish_quoted(option->get_description()));
    }
  }
  return script;
}

std::string fish_script(const CLI::App& program) {
  std::string script;
  for (const CLI::App* command : commands_of(program)) {
    script += fmt::format("complete -c sluice -n __fish_use_subcommand -a {} -d {}\n",
                          command->get_name(), fish_quoted(command->get_description()));
    const std::string behind =
        fmt::format("complete -c sluice -n '__fish_seen_subcommand_from {}'", command->get_name());
    script += fish_options(*command, behind);
    if (const auto words = words_behind(*command); !words.empty()) {
      script += fmt::format("{} -a '{}'\n", behind, fmt::join(words, " "));
    }
    for (const CLI::App* below : commands_of(*command)) script += fish_options(*below, behind);
  }
  return script;
}

ExitCode print_completion(const CLI::App& program, std::string_view shell) {
  Output out;
  if (shell == "bash") {
    out.write(bash_script(program));
  } else if (shell == "zsh") {
    out.write(zsh_script(program));
  } else if (shell == "fish") {
    out.write(fish_script(program));
  } else {
    complain("completion",
             fmt::format("unknown shell {}; known are bash, zsh and fish", quoted(shell)));
    return ExitCode::usage;
  }
  return out.finish("completion", ExitCode::ok);
}

}  // namespace

void add_completion(CLI::App& program, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->type_name("SHELL")->required();
  command->footer(R"(Examples:
  sluice completion bash > /etc/bash_completion.d/sluice
  sluice completion zsh > "${fpath[1]}/_sluice"
  sluice completion fish > ~/.config/fish/completions/sluice.fish

Exit status: 0 success, 2 there is no such shell, 3 the script cannot be written.)");
  command->callback([shell, &program, &action] {
    action = [shell, &program] { return print_completion(program, *shell); };
  });
}

}  // namespace sluice::cli
