#include "app/config/serve_configuration.h"

#include "app/config/configuration_grammar.h"
#include "app/config/frontends.h"
#include "app/config/serve_grammar.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace sluice::app {
namespace {

using config::Checked;
using config::Diagnostics;
using config::NamedFiles;
using config::Node;
using config::Reader;
using frontend::FileContext;
using frontend::FrontendKind;
using frontend::Placement;

AccessLogConfig access_log_of(const Reader& reader, const FileContext& context, NamedFiles& files) {
  AccessLogConfig log;
  log.file = reader.text("file", "-") == "-"
                 ? "-"
                 : files.resolve(reader.find("file"), "access_log.file", context.folder);
  log.json = reader.text("format", "text") == "json";
  reader.take("max_rejected_per_second", log.max_rejected_per_second);
  return log;
}

}  // namespace

unsigned workers_of(const ServeConfig& serve) noexcept {
  return serve.workers > 0 ? serve.workers : std::max(1U, std::thread::hardware_concurrency());
}

bool listens(const ServeConfig& serve, Placement placement) {
  for (std::size_t i = 0; i < serve.frontends.size(); ++i) {
    if (frontends()[i]->placement == placement && !serve.frontends[i]->listen.empty()) return true;
  }
  return false;
}

ServeConfig read_serve(const Node& root, const Checked& checked, const FileContext& context,
                       Diagnostics& diagnostics) {
  const Reader top{root, configuration_section(), checked};
  ServeConfig serve;
  top.take("workers", serve.workers);
  const Node* const listen = top.find("listen");
  for (const FrontendKind* kind : frontends()) {
    frontend::Written written{
        .file = top,
        .listen = {},
        .checked = checked,
        .context = context,
        .workers = context.workers_in_force > 0 ? context.workers_in_force : workers_of(serve),
        .files = serve.files,
        .file_errors = serve.file_errors};
    if (listen != nullptr) {
      written.listen = Reader{*listen, listen_section(), checked}.list(kind->name());
    }
    serve.frontends.push_back(kind->read(written, diagnostics));
  }
  if (const Node* node = top.find("drain")) {
    const Reader reader{*node, drain_section(), checked};
    reader.take("delay", serve.drain.delay);
    reader.take("timeout", serve.drain.timeout);
  }
  if (const Node* node = top.find("access_log")) {
    serve.access_log =
        access_log_of(Reader{*node, access_log_section(), checked}, context, serve.files);
    if (!listens(serve, Placement::workers)) {
      diagnostics.warning(*node, "'access_log' has no effect: no gateway listens",
                          "write listen: {gateway: ADDRESS}, or leave it out");
    }
  }
  return serve;
}

}  // namespace sluice::app
