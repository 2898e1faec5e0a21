#include "cli/serve/serve.h"

#include "app/configuration.h"
#include "app/echo_server.h"
#include "app/server.h"
#include "base/read_file.h"
#include "config/diagnostics.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string_view>

namespace sluice::cli {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20U;

// Hashes of the keys "free" and "paid", which everybody may know.
constexpr std::string_view kDemoRules = R"(
listen: {{gateway: 127.0.0.1:8080}}
upstreams: {{echo: {{servers: ['{}']}}}}
routes: [{{path: /**, upstream: echo}}]
rules:
  - {{name: anonymous, per: [ip], limit: 5/10s}}
  - {{name: login, match: {{path: /login}}, per: [ip], limit: 3/1m, block: {{for: 30s}}}}
)";

void say(std::string_view line) {
  fmt::print(stderr, "sluice: {}\n", line);
  std::fflush(stderr);
}

void tell_what_to_try(std::string_view endpoint) {
  fmt::print(
      "A gateway in front of an echo server, on {0}. Try:\n\n"
      "  curl -i http://{0}/hello                       five in ten seconds pass\n"
      "  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{{http_code}} ' http://{0}/; done\n"
      "  curl -i http://{0}/login                       three a minute, then blocked for 30 s\n\n"
      "Ctrl-C ends it.\n",
      endpoint);
  std::fflush(stdout);
}

ExitCode fail(const config::Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", diagnostics.text());
  return ExitCode::failure;
}

}  // namespace

ExitCode serve(const ServeOptions& options) {
  static const SystemClock kClock;
  std::unique_ptr<app::EchoServer> echo;
  std::string text;
  if (options.file.empty()) {
    auto started = app::EchoServer::start(kClock);
    if (!started) {
      say(started.error().text());
      return ExitCode::failure;
    }
    echo = *std::move(started);
    text = fmt::format(fmt::runtime(kDemoRules), echo->endpoint().text());
  } else {
    Parsed<std::string> read = read_file(options.file, kFileBytesMax);
    if (!read) {
      say(read.error().text());
      return ExitCode::failure;
    }
    text = *std::move(read);
  }
  config::Diagnostics diagnostics;
  const std::string name = options.file.empty() ? "demonstration" : options.file;
  const app::Configuration configuration = app::read_configuration(text, name, diagnostics);
  if (!diagnostics.ok()) return fail(diagnostics);
  const auto server = app::Server::open(
      configuration, {.file = options.file, .text = text, .say = say}, kClock, diagnostics);
  if (server == nullptr) return fail(diagnostics);
  for (const std::string& endpoint : server->endpoints()) {
    say(fmt::format("gateway on {}, {} workers, {} rules", endpoint, server->workers(),
                    configuration.rules.rules.size()));
  }
  if (options.file.empty()) tell_what_to_try(server->endpoints().front());
  server->run();
  say("ended");
  return ExitCode::ok;
}

}  // namespace sluice::cli
