#include "cli/keys/keys.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kKeysFooter = R"(Examples:
  sluice keys create --name acme --tier paid --file keys.yaml
  sluice keys list --file keys.yaml

A configuration names the file: clients: {api_keys: {header: x-api-key, file: keys.yaml}}.)";

constexpr const char* kCreateFooter =
    R"(Makes a random key and prints it once. The file keeps only its hash: a lost key cannot be
recovered, only replaced. Without --file the entry is printed, to be added to a file by hand.

Examples:
  sluice keys create --name acme --user acme --tier paid --file keys.yaml
  sluice keys create --name trial-7 --tier free --expires 30d --file keys.yaml
  sluice keys create --name ci --attribute plan.seats=5 --json

Exit status: 0 the key is made, 2 an option is wrong, 3 the file is invalid or has the name.)";

constexpr const char* kListFooter = R"(Examples:
  sluice keys list --file keys.yaml
  sluice keys list --file keys.yaml --json

Exit status: 0 success, 3 the file cannot be used.)";

void add_create(CLI::App& keys, Action& action) {
  auto options = std::make_shared<CreateKeyOptions>();
  CLI::App* command = keys.add_subcommand("create", "Make a key; keep only its hash");
  command->add_option("--name", options->name, "Its name in metrics and logs; unique")
      ->type_name("NAME")
      ->required();
  command->add_option("--user", options->user, "The user that holds it")->type_name("USER");
  command->add_option("--tenant", options->tenant, "The tenant of the user")->type_name("TENANT");
  command->add_option("--tier", options->tier, "The plan of the user")->type_name("TIER");
  command
      ->add_option("--attribute", options->attributes,
                   "Anything else, as in plan.seats=5; may be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--expires", options->expires,
                   "When it ends: a length of time from now, as 90d, or an RFC 3339 time")
      ->type_name("WHEN");
  command->add_option("--file", options->file, "Add it to this file, or begin it")
      ->type_name("FILE");
  command
      ->add_option("--secret-file", options->secret_file,
                   "Hash it under this secret, the secret_file of the configuration")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "One JSON object");
  command->footer(kCreateFooter);
  command->callback([options, &action] { action = [options] { return create_key(*options); }; });
}

void add_list(CLI::App& keys, Action& action) {
  auto options = std::make_shared<ListKeysOptions>();
  CLI::App* command = keys.add_subcommand("list", "List the keys of a file");
  command->add_option("--file", options->file, "The file")->type_name("FILE")->required();
  command->add_flag("--json", options->json, "One JSON object a line");
  command->footer(kListFooter);
  command->callback([options, &action] { action = [options] { return list_keys(*options); }; });
}

}  // namespace

void add_keys(CLI::App& program, Action& action) {
  CLI::App* keys = program.add_subcommand("keys", "Make and list API keys");
  keys->require_subcommand(1);
  keys->footer(kKeysFooter);
  add_create(*keys, action);
  add_list(*keys, action);
}

}  // namespace sluice::cli
