#include "cli/serve/serve.h"

#include "app/log_file.h"
#include "app/server.h"
#include "base/read_file.h"
#include "base/text.h"
#include "cli/revision.h"
#include "cli/serve/demonstration.h"
#include "config/diagnostics.h"
#include "config/document.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace sluice::cli {
namespace {

// To standard error. Who does not read it keeps the server neither from its work nor from its end:
// what finds no room is left out, and counted.
void say(std::string_view line) {
  static const std::unique_ptr<app::LogFile> kFile = app::LogFile::of(STDERR_FILENO);
  static std::size_t left_out = 0;
  if (kFile == nullptr) return;
  std::string text;
  if (left_out > 0)
    text =
        fmt::format("sluice: {} before this could not be written\n", counted(left_out, "message"));
  text += fmt::format("sluice: {}\n", line);
  if (kFile->write(text).bytes < text.size()) {
    ++left_out;
  } else {
    left_out = 0;
  }
}

void tell_where(const app::Server& server) {
  for (const admin::ListenerStatus& listener : server.listeners()) {
    if (listener.name != "gateway") {
      say(fmt::format("{} on {}", listener.name, listener.endpoint));
      continue;
    }
    say(fmt::format("gateway on {}, {}, {}", listener.endpoint, counted(server.workers(), "worker"),
                    counted(server.rules(), "rule")));
  }
}

// What stands in a file begins with its place, as compilers write it; all else with our name.
void tell(const config::Diagnostics& diagnostics) {
  config::Diagnostics placed;
  for (config::Mistake& mistake : diagnostics.sorted()) {
    if (mistake.place.file.empty()) {
      say(mistake.headline());
    } else {
      placed.add(std::move(mistake));
    }
  }
  fmt::print(stderr, "{}", placed.text());
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
  const Parsed<std::string> text = read_trusted_file(file, config::DocumentOptions{}.bytes_max);
  if (!text) {
    say(text.error().text());
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  const auto server = app::Server::open({.file = file,
                                         .text = *text,
                                         .version = SLUICE_VERSION,
                                         .revision = std::string{revision()},
                                         .say = say},
                                        kClock, diagnostics);
  tell(diagnostics);
  if (server == nullptr) return ExitCode::failure;
  tell_where(*server);
  if (demonstration != nullptr) {
    const auto& listeners = server->listeners();
    fmt::print("{}",
               demonstration->what_to_try(listeners.front().endpoint, listeners.back().endpoint));
    std::fflush(stdout);
  }
  server->run();
  say("ended");
  return ExitCode::ok;
}

}  // namespace sluice::cli
