#include "listener_line/line_frontend.h"

#include "base/read_file.h"
#include "config/grammar.h"
#include "net/stream.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

namespace sluice::line {
namespace {

using frontend::Frontend;
using frontend::FrontendConfig;
using frontend::FrontendReport;
using frontend::FrontendWorker;

// ---- the file ---------------------------------------------------------------------------------

struct LineConfig final : FrontendConfig {
  std::string text_file;
  std::string text = "hello\n";
  std::uint64_t max_connections = 100;  // of each worker
};

const LineConfig& own(const FrontendConfig& config) {
  return static_cast<const LineConfig&>(config);
}

const config::Section& line_section() {
  static const config::Section kSection{.name = "line",
                                        .meaning = "What clients are told.",
                                        .keys = {{.name = "text_file",
                                                  .shape = config::text(),
                                                  .meaning = "A file with the line.",
                                                  .formerly = {"text"}},
                                                 {.name = "max_connections",
                                                  .shape = config::number(1, 1000),
                                                  .meaning = "The most connections of each worker.",
                                                  .fallback = "100"}}};
  return kSection;
}

std::shared_ptr<const FrontendConfig> read_config(const frontend::Written& written,
                                                  config::Diagnostics& /*diagnostics*/) {
  auto config = std::make_shared<LineConfig>();
  for (const config::Node* node : written.listen) {
    config->listen.push_back(frontend::read_endpoint(*node, "listen.line", written.files));
  }
  const config::Node* const map = written.file.find("line");
  if (map == nullptr) return config;
  const config::Reader reader{*map, line_section(), written.checked};
  config->text_file =
      written.files.resolve(reader.find("text_file"), "line.text_file", written.context.folder);
  if (!config->text_file.empty()) config->files.push_back(config->text_file);
  config->max_connections = reader.number("max_connections").value_or(config->max_connections);
  return config;
}

// ---- one worker -------------------------------------------------------------------------------

class LineWorker final : public FrontendWorker {
 public:
  LineWorker(const frontend::WorkerParts& parts, std::shared_ptr<const FrontendConfig> config)
      : loop_(parts.loop), observer_(parts.observer), config_(std::move(config)) {}

  void accept(net::Accepted accepted, const frontend::Entrance& /*entrance*/) override {
    if (connections_.size() >= own(*config_).max_connections) {
      ++rejected_;
      return;
    }
    Connection& connection = connections_.emplace_back(*this);
    connection.at = --connections_.end();
    const std::string& text = own(*config_).text;
    const bool is_told = connection.stream.open(loop_, std::move(accepted.descriptor)).is_done() &&
                         connection.stream.write(text).is_done();
    observer_.ended({.at = loop_.now().wall(),
                     .ip = accepted.peer.address,
                     .method = "LINE",
                     .target = "/",
                     .protocol = "LINE/1",
                     .status = 200,
                     .bytes_out = is_told ? text.size() : 0},
                    loop_.now());
    if (!is_told) connections_.pop_back();
  }
  void use(const std::shared_ptr<const FrontendConfig>& config) override { config_ = config; }
  [[nodiscard]] std::size_t connections() const noexcept override { return connections_.size(); }
  [[nodiscard]] FrontendReport report() const override {
    return {.connections = connections_.size(),
            .connections_rejected = rejected_,
            .in_flight = connections_.size(),
            .upstreams = {}};
  }

 private:
  // Is there until its client closes.
  struct Connection {
    explicit Connection(LineWorker& of) : worker(of) {}
    void on_ready() {
      std::array<char, 256> ignored{};
      while (true) {
        const net::IoResult result = stream.read(ignored);
        if (result.is_done()) continue;
        if (!result.is_blocked()) worker.connections_.erase(at);
        return;
      }
    }

    LineWorker& worker;
    std::list<Connection>::iterator at;
    net::Stream stream{net::Callback<>::to<&Connection::on_ready>(*this)};
  };

  net::EventLoop& loop_;
  frontend::Observer& observer_;
  std::shared_ptr<const FrontendConfig> config_;
  std::list<Connection> connections_;
  std::uint64_t rejected_ = 0;
};

// ---- one server -------------------------------------------------------------------------------

class LineFrontend final : public Frontend {
 public:
  [[nodiscard]] std::shared_ptr<const FrontendConfig> load(
      const std::shared_ptr<const FrontendConfig>& read, const FrontendConfig* /*in_force*/,
      const frontend::LoadParts& parts, config::Diagnostics& diagnostics) override {
    auto loaded = std::make_shared<LineConfig>(own(*read));
    if (loaded->text_file.empty()) return loaded;
    Parsed<std::string> text = read_file(loaded->text_file, 1024);
    if (text) {
      loaded->text = *std::move(text);
    } else {
      parts.files.error(loaded->text_file, std::move(text.error()), diagnostics);
    }
    return loaded;
  }
  [[nodiscard]] std::unique_ptr<FrontendWorker> on_worker(
      const frontend::WorkerParts& parts,
      const std::shared_ptr<const FrontendConfig>& config) override {
    return std::make_unique<LineWorker>(parts, config);
  }
};

}  // namespace

const frontend::FrontendKind& kind() {
  using frontend::kEndpointFormat;
  static const frontend::FrontendKind kKind{
      .placement = frontend::Placement::workers,
      .listen = {.name = "line",
                 .shape = config::one_or_list(config::text(kEndpointFormat)),
                 .meaning = "One line of text for every connection."},
      .keys = {{.name = "line",
                .shape = config::map_of(line_section),
                .meaning = "What clients of `listen.line` are told."}},
      .read = read_config,
      .open = []() -> std::unique_ptr<Frontend> { return std::make_unique<LineFrontend>(); }};
  return kKind;
}

}  // namespace sluice::line
