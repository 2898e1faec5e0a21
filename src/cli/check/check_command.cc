#include "cli/check/check.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kCheckFooter =
    R"(Reads a configuration, or a file of rules alone, and reports everything that is wrong with it
at once, with line, column and what to write instead. For a valid file it prints a table: each rule,
and the most that its algorithm can admit in any period.

It also checks all that `sluice serve` opens: files that the configuration names, the folders of the
state file and of the access log, the addresses of listeners. It changes nothing and can run beside
a server: an address in use is only a warning, with --start an error. --offline checks the file
alone.

Examples:
  sluice check sluice.yaml
  sluice check --json rules.yaml
  sluice check --start sluice.yaml && sluice serve -c sluice.yaml
  sluice check --print-schema > sluice.schema.json

Exit status: 0 valid, 1 the file, or something that it names, is not, 3 it cannot be read.)";

}  // namespace

void add_check(CLI::App& program, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      program.add_subcommand("check", "Validate a configuration; show the bound of each rule");
  CLI::Option* file =
      command->add_option("-c,--config,file", options->file, "Configuration or rules")
          ->type_name("FILE");
  command->add_flag("--json", options->json, "One JSON object");
  CLI::Option* offline = command->add_flag("--offline", options->offline, "Check the file alone");
  command
      ->add_flag("--start", options->start,
                 "As before a start: addresses that are in use are errors")
      ->excludes(offline);
  CLI::Option* schema = command->add_flag("--print-schema", options->print_schema,
                                          "Print the JSON Schema of the file, for editors");
  CLI::Option* keys_schema = command->add_flag("--print-keys-schema", options->print_keys_schema,
                                               "Print the JSON Schema of a file of API keys");
  CLI::Option* reference = command->add_flag("--print-reference", options->print_reference,
                                             "Print every key of the file, in Markdown");
  command->footer(kCheckFooter);
  command->callback([options, file, schema, keys_schema, reference, &action] {
    const bool prints = schema->count() + keys_schema->count() + reference->count() > 0;
    if (file->count() == 0 && !prints) throw CLI::RequiredError{"FILE"};
    action = [options] { return check(*options); };
  });
}

}  // namespace sluice::cli
