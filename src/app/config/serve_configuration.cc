#include "app/config/serve_configuration.h"

#include "app/config/configuration_grammar.h"
#include "app/config/frontends.h"
#include "app/config/serve_grammar.h"
#include "base/duration.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

namespace sluice::app {
namespace {

using config::Checked;
using config::Diagnostics;
using config::NamedFiles;
using config::Node;
using config::Reader;
using frontend::FrontendKind;
using frontend::Placement;

void take(const Reader& reader, std::string_view key, Nanos& into) {
  if (reader.has(key)) into = parse_duration(reader.text(key)).value();
}

AccessLogConfig access_log_of(const Reader& reader, const ServeContext& context,
                              NamedFiles& files) {
  AccessLogConfig log;
  log.file = reader.text("file", "-") == "-"
                 ? "-"
                 : files.resolve(reader.find("file"), "access_log.file", context.folder);
  log.json = reader.text("format", "text") == "json";
  if (const auto most = reader.number("max_rejected_per_second")) {
    log.max_rejected_per_second = static_cast<std::uint32_t>(*most);
  }
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

ServeConfig read_serve(const Node& root, const Checked& checked, const ServeContext& context,
                       Diagnostics& diagnostics) {
  const Reader top{root, configuration_section(), checked};
  ServeConfig serve;
  serve.workers = static_cast<std::uint32_t>(top.number("workers").value_or(0));
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
    take(reader, "delay", serve.drain.delay);
    take(reader, "timeout", serve.drain.timeout);
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
