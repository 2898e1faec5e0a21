#include "frontend/admin/admin_config.h"

#include "base/text.h"
#include "net/loopback.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::admin {
namespace {

using config::Key;
using config::list_of;
using config::map_of;
using config::Node;
using config::Section;
using config::text;
using frontend::kEndpointFormat;

const Section& admin_section() {
  static const Section kSection{
      .name = "admin",
      .meaning = "Access to the admin listener. `/livez`, `/readyz` and `/healthz` need no token.",
      .keys = {{.name = "token_file",
                .shape = text(),
                .meaning = "A file with a token of at least 16 characters; clients present it as "
                           "`Authorization: Bearer TOKEN`.",
                .examples = {"admin.token"}}}};
  return kSection;
}

}  // namespace

Key listen_key() {
  return {.name = "admin",
          .shape = text(kEndpointFormat) | list_of(text(kEndpointFormat)),
          .meaning =
              "For operators: metrics, health and status over HTTP/1.1. Beyond the loopback "
              "it needs `admin.token_file`.",
          .examples = {"127.0.0.1:9090", "unix:/run/sluice/admin.sock"}};
}

std::vector<Key> file_keys() {
  return {{.name = "admin",
           .shape = map_of(admin_section),
           .meaning = "Access to the admin listener."}};
}

// Without a token only this machine may reach it.
std::shared_ptr<const frontend::FrontendConfig> read_config(const frontend::Written& written,
                                                            config::Diagnostics& diagnostics) {
  auto config = std::make_shared<AdminConfig>();
  if (const Node* map = written.file.find("admin")) {
    const config::Reader reader{*map, admin_section(), written.checked};
    config->token_file = written.files.resolve(reader.find("token_file"), "admin.token_file",
                                               written.context.folder);
    if (!config->token_file.empty()) config->files.push_back(config->token_file);
  }
  for (const Node* node : written.listen) {
    const net::Endpoint& endpoint =
        config->listen.emplace_back(frontend::read_endpoint(*node, "listen.admin", written.files));
    if (!config->token_file.empty() || is_on_this_machine(endpoint)) continue;
    diagnostics.error(*node,
                      fmt::format("{} is reachable from other machines without a token",
                                  sluice::quoted(node->text)),
                      "write admin: {token_file: FILE}, or listen on 127.0.0.1");
  }
  return config;
}

bool is_on_this_machine(const net::Endpoint& endpoint) noexcept {
  switch (endpoint.kind) {
    case net::Endpoint::Kind::any: return false;
    case net::Endpoint::Kind::address: return net::is_loopback(endpoint.address);
    case net::Endpoint::Kind::name: return endpoint.name == "localhost";
    case net::Endpoint::Kind::unix_path: return true;
  }
  return false;
}

}  // namespace sluice::admin
