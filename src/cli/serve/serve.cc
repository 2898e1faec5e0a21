#include "cli/serve/serve.h"

#include "app/server/log_file.h"
#include "app/server/log_line.h"
#include "app/server/server.h"
#include "base/read_file.h"
#include "base/text.h"
#include "cli/revision.h"
#include "cli/serve/demonstration.h"
#include "config/diagnostics.h"
#include "config/document.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace sluice::cli {
namespace {

using app::LogLevel;

// To standard error. A reader that stalls delays neither the server nor its end: lines without room
// are dropped, and counted.
void say(LogLevel level, std::string_view message) {
  static const std::unique_ptr<app::LogFile> kFile = app::LogFile::of(STDERR_FILENO);
  static const app::LogForm kForm =
      app::reaches_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM")) ? app::LogForm::journal
                                                                         : app::LogForm::plain;
  static std::size_t left_out = 0;
  if (kFile == nullptr) return;
  const WallTime now = SystemClock{}.now().wall();
  std::string text;
  if (left_out > 0) {
    text = app::log_lines(
        kForm, LogLevel::warning, now,
        fmt::format("{} before this could not be written", counted(left_out, "message")));
  }
  text += app::log_lines(kForm, level, now, message);
  if (kFile->write(text).bytes < text.size()) {
    ++left_out;
  } else {
    left_out = 0;
  }
}

void tell_where(const app::Server& server) {
  for (const frontend::ListenerStatus& listener : server.listeners()) {
    if (listener.name != "gateway") {
      say(LogLevel::info, fmt::format("{} on {}", listener.name, listener.endpoint));
      continue;
    }
    say(LogLevel::info,
        fmt::format("gateway on {}, {}, {}", listener.endpoint, counted(server.workers(), "worker"),
                    counted(server.rules(), "rule")));
  }
}

std::string endpoint_of(std::string_view name, const app::Server& server) {
  const auto& all = server.listeners();
  const auto found = std::ranges::find(all, name, &frontend::ListenerStatus::name);
  return found == all.end() ? std::string{} : found->endpoint;
}

// Each with its line of the file and a caret below its beginning.
void tell(const config::Diagnostics& diagnostics) {
  std::size_t left = config::Diagnostics::kShown;
  for (config::Mistake& mistake : diagnostics.sorted()) {
    if (left-- == 0) return say(LogLevel::error, "and more; sluice check shows all");
    const bool is_error = mistake.severity == config::Severity::error;
    mistake.severity = config::Severity::error;  // the line has its level already
    config::Diagnostics one;
    one.add(std::move(mistake));
    say(is_error ? LogLevel::error : LogLevel::warning, one.text());
  }
}

}  // namespace

ExitCode serve(const ServeOptions& options) {
  static const SystemClock kClock;
  std::unique_ptr<Demonstration> demonstration;
  std::string file = options.file;
  if (file.empty()) {
    auto begun = Demonstration::begin(kClock);
    if (!begun) {
      say(LogLevel::error, begun.error().text());
      return ExitCode::failure;
    }
    demonstration = *std::move(begun);
    file = demonstration->file();
  }
  const Parsed<std::string> text = read_trusted_file(file, config::DocumentOptions{}.bytes_max);
  if (!text) {
    say(LogLevel::error, text.error().text());
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
    fmt::print("{}", demonstration->what_to_try(endpoint_of("gateway", *server),
                                                endpoint_of("admin", *server)));
    std::fflush(stdout);
  }
  server->run();
  say(LogLevel::info, "stopped");
  return ExitCode::ok;
}

}  // namespace sluice::cli
