#include "cli/serve/serve.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kServeFooter =
    R"(Runs the listeners of a configuration until it is stopped. Without a file it runs a
demonstration on the loopback: a gateway with a few rules in front of an echo server.

SIGHUP, or a change of the file, reloads it; an invalid file is reported and changes nothing.
SIGUSR1 reopens the access log. SIGTERM and SIGINT drain: requests in flight are finished. A second
signal stops at once.

Examples:
  sluice serve
  sluice serve -c sluice.yaml
  sluice check sluice.yaml && kill -HUP $(pidof sluice)

Exit status: 0 stopped by a signal, 3 it could not start.)";

}  // namespace

void add_serve(CLI::App& program, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = program.add_subcommand("serve", "Run the gateway");
  command->add_option("-c,--config", options->file, "The configuration")->type_name("FILE");
  command->footer(kServeFooter);
  command->callback([options, &action] { action = [options] { return serve(*options); }; });
}

}  // namespace sluice::cli
