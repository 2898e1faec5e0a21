#include "cli/init/init.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kInitFooter =
    R"(Writes a commented configuration, and beside it a schema for editors. Recipes with API keys
also get a key file: the random keys are printed once, the file has only their hashes. Existing
files are replaced only with --force.

Examples:
  sluice init --list
  sluice init login
  sluice init plans -o /etc/sluice/

Exit status: 0 the files are written, 2 there is no such recipe, 3 a file is there already or cannot
be written.)";

}  // namespace

void add_init(CLI::App& program, Action& action) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command =
      program.add_subcommand("init", "Write a configuration to begin with, from a recipe");
  command->add_option("recipe", options->recipe, "The recipe; --list shows all")
      ->type_name("RECIPE");
  command
      ->add_option("-o,--output", options->output,
                   "The file, or the folder to put it into (default sluice.yaml)")
      ->type_name("PATH");
  command->add_flag("--force", options->force, "Replace files that are there");
  command->add_flag("--list", options->list, "List the recipes");
  command->add_flag("--json", options->json, "One JSON object; with --list one a line");
  command->footer(kInitFooter);
  command->callback([options, &action] { action = [options] { return init(*options); }; });
}

}  // namespace sluice::cli
