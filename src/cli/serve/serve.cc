#include "cli/serve/serve.h"

#include "app/configuration.h"
#include "app/server.h"
#include "base/read_file.h"
#include "cli/serve/demonstration.h"
#include "config/diagnostics.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string_view>

namespace sluice::cli {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20U;

void say(std::string_view line) {
  fmt::print(stderr, "sluice: {}\n", line);
  std::fflush(stderr);
}

ExitCode fail(const config::Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", diagnostics.text());
  return ExitCode::failure;
}

}  // namespace

ExitCode serve(const ServeOptions& options) {
  static const SystemClock kClock;
  std::unique_ptr<Demonstration> demonstration;
  std::string file = options.file;
  if (file.empty()) {
    auto begun = Demonstration::begin(kClock);
    if (!begun) {
      say(begun.error().text());
      return ExitCode::failure;
    }
    demonstration = *std::move(begun);
    file = demonstration->file();
  }
  const Parsed<std::string> text = read_file(file, kFileBytesMax);
  if (!text) {
    say(text.error().text());
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  const app::Configuration configuration = app::read_configuration(*text, file, diagnostics);
  if (!diagnostics.ok()) return fail(diagnostics);
  const auto server = app::Server::open(configuration, {.file = file, .text = *text, .say = say},
                                        kClock, diagnostics);
  if (server == nullptr) return fail(diagnostics);
  for (const std::string& endpoint : server->endpoints()) {
    say(fmt::format("gateway on {}, {} workers, {} rules", endpoint, server->workers(),
                    configuration.rules.rules.size()));
  }
  if (demonstration != nullptr) {
    fmt::print("{}", demonstration->what_to_try(server->endpoints().front()));
    std::fflush(stdout);
  }
  server->run();
  say("ended");
  return ExitCode::ok;
}

}  // namespace sluice::cli
