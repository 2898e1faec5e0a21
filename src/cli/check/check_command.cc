#include "cli/check/check.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kCheckFooter =
    R"(Reads a configuration, or a file of rules alone, and reports everything that is wrong with it
at once, with line, column and what to write instead. A good file is answered with a table: each
rule, and the most that it can admit in any period, which is what the algorithm promises.

It also looks at all that `sluice serve` opens: files that the configuration names, the folders of
the state file and of the access log, the addresses of listeners. It changes nothing, so that it
may run beside a server. There an address in use is a warning; with --start it is an error.
--offline looks at nothing but the file itself.

Examples:
  sluice check sluice.yaml
  sluice check --json rules.yaml
  sluice check --start sluice.yaml && sluice serve -c sluice.yaml
  sluice check --print-schema > sluice.schema.json

Exit status: 0 the file is good, 1 it is not, or something that it names, 3 it cannot be read.)";

}  // namespace

void add_check(CLI::App& program, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      program.add_subcommand("check", "Validate a configuration; say what each rule promises");
  CLI::Option* file =
      command->add_option("file", options->file, "Configuration or rules")->type_name("FILE");
  command->add_flag("--json", options->json, "One JSON object");
  CLI::Option* offline =
      command->add_flag("--offline", options->offline, "Look at nothing but the file itself");
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
