#include "cli/explain/explain.h"

#include "app/config/configuration.h"
#include "base/read_file.h"
#include "cli/explain/explained_request.h"
#include "cli/explain/story.h"
#include "cli/explain/tell.h"
#include "cli/terminal.h"
#include "embed/offline_engine.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "explain";
constexpr std::size_t kFileBytesMax = 16U << 20U;
// Room for hundreds of thousands of limits. One request needs no more, whatever a server may have.
constexpr std::size_t kTableBytesMax = std::size_t{1} << 30U;

ExitCode explain_request(const ExplainOptions& options, const app::Configuration& configuration) {
  const Parsed<ExplainedRequest> request = ExplainedRequest::parse(options);
  if (!request) {
    complain(kCommand, request.error().text());
    return ExitCode::usage;
  }
  config::Diagnostics diagnostics;
  const SystemClock clock;
  const Now now = clock.now();
  const auto identifier = embed::load_clients(configuration.clients, diagnostics);
  if (identifier == nullptr) {
    fmt::print(stderr, "{}", diagnostics.text());
    return ExitCode::failure;
  }
  auto engine = embed::OfflineEngine::start(
      configuration, std::min(configuration.state.memory, kTableBytesMax), now);
  if (!engine) {
    complain(kCommand, engine.error().text());
    return ExitCode::failure;
  }
  engine::Decider& worker = (*engine)->worker();
  worker.use(identifier, configuration.clients.policy);

  const ExplainedRequest::Views views = request->views();
  const RequestView view = request->view(views);
  auto op = std::make_unique<engine::Op>();
  for (std::uint32_t i = 0; i < options.repeat; ++i) {
    (void)worker.decide(*op, view, now);
    if (i + 1 < options.repeat) worker.settle(*op, nullptr, now);
  }
  const engine::Lists lists{configuration.exceptions.allow, configuration.exceptions.deny};
  identity::IdentifierScratch scratch;
  const Story story = story_of({.engine = **engine,
                                .serve = configuration.serve,
                                .identifier = *identifier,
                                .lists = lists,
                                .request = view,
                                .op = *op,
                                .now = now},
                               scratch);
  Output output;
  if (options.json) {
    tell_json(*request, story, *op, output);
  } else {
    tell(*request, story, *op, options.repeat, output);
  }
  const bool passes = op->action == engine::Action::pass && !fails_at_routes(story, *op);
  return output.finish(kCommand, passes ? ExitCode::ok : ExitCode::negative);
}

}  // namespace

ExitCode explain(const ExplainOptions& options) {
  const Parsed<std::string> text = sluice::read_file(options.config, kFileBytesMax);
  if (!text) {
    complain(kCommand, text.error().text());
    return ExitCode::failure;
  }
  config::Diagnostics diagnostics;
  const app::Configuration configuration =
      app::read_configuration(*text, options.config, diagnostics);
  if (!diagnostics.ok()) {
    fmt::print(stderr, "{}", diagnostics.text());
    return ExitCode::failure;
  }
  const bool is_of_trees = options.request.empty() && !options.descriptors.empty();
  if (is_of_trees) return explain_descriptors(options, configuration);
  return explain_request(options, configuration);
}

}  // namespace sluice::cli
