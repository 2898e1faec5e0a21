#include "cli/status/status.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kStatusFooter =
    R"(Shows the requests, decisions and upstreams of a running server. Its configuration needs an
admin listener, as in listen: {admin: 127.0.0.1:9090}.

Examples:
  sluice status
  sluice status --watch 1s
  sluice status --server http://10.0.0.7:9090 --token-file admin.token
  sluice status --server unix:/run/sluice/admin.sock --json

Exit status: 0 it serves, 1 it is starting or draining, 2 an option is wrong, 3 it cannot be
reached.)";

}  // namespace

void add_status(CLI::App& program, Action& action) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = program.add_subcommand("status", "Show a running server");
  command
      ->add_option("-s,--server", options->server,
                   "Its admin listener (default http://127.0.0.1:9090)")
      ->type_name("URL");
  command->add_option("--token-file", options->token_file, "The file with its token")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "The server's JSON, unchanged");
  command->add_option("-w,--watch", options->watch, "Repeat at this interval: 1s")
      ->type_name("TIME");
  command->footer(kStatusFooter);
  command->callback([options, &action] { action = [options] { return status(*options); }; });
}

}  // namespace sluice::cli
