#include "app/server/start_check.h"

#include "base/writable.h"
#include "engine/block_book.h"
#include "net/listen_check.h"
#include "store/local/state_file.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace sluice::app {
namespace {

using frontend::Placement;

void check_state(const Configuration& configuration, config::Diagnostics& diagnostics) {
  const embed::StateConfig& state = configuration.state;
  if (state.file.empty()) return;
  const config::NamedFiles& files = configuration.files;
  const auto used = store::inspect_state_file({.memory = state.memory, .file = state.file});
  if (!used) return files.error(state.file, used.error(), diagnostics);
  if (*used == store::StateFileUse::by_others) {
    files.warning(
        state.file,
        {.message = fmt::format("the state file {} is in use by another process", state.file),
         .remedy = "a second server with it counts together with the first"},
        diagnostics);
  }
  if (auto wrong = engine::BlockBook::inspect(state.file + ".blocks")) {
    files.error(state.file, *std::move(wrong), diagnostics);
  }
}

// The server starts without it, and logs that.
void check_last_good(const Configuration& configuration, config::Diagnostics& diagnostics) {
  if (!configuration.rules_file || configuration.rules_file->last_good_file.empty()) return;
  const std::string& file = configuration.rules_file->last_good_file;
  auto wrong = why_not_writable(file);
  if (wrong) configuration.files.warning(file, *std::move(wrong), diagnostics);
}

void check_log(const ServeConfig& serve, config::Diagnostics& diagnostics) {
  const std::string& file = serve.access_log.file;
  if (file.empty() || file == "-") return;
  if (auto wrong = why_not_writable(file)) serve.files.error(file, *std::move(wrong), diagnostics);
}

void check_address(const ServeConfig& serve, const net::Endpoint& endpoint, StartCheck how,
                   config::Diagnostics& diagnostics) {
  auto wrong = net::why_not_listen(endpoint);
  if (!wrong) return;
  const bool may_be_fine = wrong->is_in_use || wrong->is_not_permitted;
  if (may_be_fine && how == StartCheck::beside_a_server) {
    serve.files.warning(endpoint.text(), std::move(wrong->what), diagnostics);
  } else {
    serve.files.error(endpoint.text(), std::move(wrong->what), diagnostics);
  }
}

}  // namespace

Diagnostic nothing_to_listen_on(const ServeConfig& serve) {
  return {.message = !listens(serve, Placement::own_thread)
                         ? "the file names nothing to listen on"
                         : "the file names nothing to listen on but admin, which shows what a "
                           "gateway does",
          .remedy =
              "write listen: {gateway: 127.0.0.1:8080}, upstreams and routes, as `sluice "
              "init` does"};
}

void check_start(const Configuration& configuration, StartCheck how,
                 config::Diagnostics& diagnostics) {
  check_state(configuration, diagnostics);
  check_last_good(configuration, diagnostics);
  const ServeConfig& serve = configuration.serve;
  if (!listens(serve, Placement::workers)) {
    if (how == StartCheck::before_a_start) diagnostics.error(nothing_to_listen_on(serve));
    return;
  }
  check_log(serve, diagnostics);
  for (const auto& frontend : serve.frontends) {
    // A shell may have other limits than the service that is checked here.
    if (how == StartCheck::before_a_start) {
      if (auto warning = frontend->start_warning()) diagnostics.warning(*std::move(warning));
    }
    for (const net::Endpoint& endpoint : frontend->listen) {
      check_address(serve, endpoint, how, diagnostics);
    }
  }
}

}  // namespace sluice::app
