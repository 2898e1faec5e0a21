#include "cli/explain/explain.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kExplainFooter =
    R"(Takes one request through a configuration and shows each step: the normalised path, the
client, every rule and why it applies or not, its key, its limits, and the decision; for a gateway
also the route and the upstream. All counters start at zero; --repeat sends the request several
times and explains the last. For rules that count some responses only (`count`), each response
before the last is assumed to count.

A --descriptor beside the request is for rules that match its entries. Without a request, the
descriptors are checked against the envoyproxy/ratelimit trees of the configuration (rules_from), as
Envoy would send them: one --descriptor for each, with all of its entries.

Examples:
  sluice explain 'GET /v1/users' -c sluice.yaml --ip 192.0.2.1
  sluice explain 'POST /login' -c sluice.yaml -H 'x-api-key: k' --repeat 4
  sluice explain /v1/users -c sluice.yaml --json
  sluice explain /v1/users -c sluice.yaml --descriptor tenant=gold
  sluice explain -c sluice.yaml --domain edge --descriptor tenant=gold path=/a

Exit status: 0 the request is allowed, 1 it is not, 3 the configuration cannot be used.)";

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = program.add_subcommand("explain", "Show how one request is decided, and why");
  CLI::Option* request =
      command->add_option("request", options->request, "Method and path: 'GET /v1/users'")
          ->type_name("REQUEST");
  command->add_option("-c,--config", options->config, "Configuration or rules")
      ->type_name("FILE")
      ->required();
  CLI::Option* header =
      command->add_option("-H,--header", options->headers, "'name: value'; may be repeated")
          ->type_name("HEADER")
          ->expected(1)
          ->take_all();
  CLI::Option* ip =
      command->add_option("--ip", options->ip, "Address of the client, or unix (default 127.0.0.1)")
          ->type_name("ADDRESS");
  CLI::Option* host =
      command->add_option("--host", options->host, "Host of the request (default localhost)")
          ->type_name("HOST");
  CLI::Option* domain =
      command->add_option("--domain", options->domain, "Domain of rules (default: default)")
          ->type_name("NAME");
  CLI::Option* descriptor =
      command
          ->add_option("--descriptor", options->descriptors,
                       "Entries of a descriptor: key=value ...; may be repeated")
          ->type_name("ENTRY");
  command->add_option("--repeat", options->repeat, "Send it so many times, explain the last")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--json", options->json, "One JSON object");
  command->footer(kExplainFooter);
  command->callback([options, request, descriptor, header, ip, host, domain, &action] {
    if (request->count() + descriptor->count() == 0) {
      throw CLI::RequiredError{"REQUEST or --descriptor"};
    }
    if (request->count() == 0) {
      for (const CLI::Option* other : {header, ip, host}) {
        if (other->count() > 0) throw CLI::ExcludesError{"--descriptor", other->get_name()};
      }
      if (domain->count() == 0) throw CLI::RequiresError{"--descriptor", "--domain"};
    }
    action = [options] { return explain(*options); };
  });
}

}  // namespace sluice::cli
