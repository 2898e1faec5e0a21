// The configuration of the admin listener.
#pragma once

#include "config/diagnostics.h"
#include "config/grammar.h"
#include "frontend/admin/guard.h"
#include "frontend/frontend.h"
#include "frontend/frontend_config.h"
#include "net/endpoint.h"

#include <memory>
#include <string>
#include <vector>

namespace sluice::admin {

// Immutable once read.
struct AdminConfig final : frontend::FrontendConfig {
  std::string token_file;  // empty: no token is needed, and only this machine reaches it
  std::shared_ptr<const Guard> guard;  // loaded from it
};

[[nodiscard]] config::Key listen_key();              // under `listen`
[[nodiscard]] std::vector<config::Key> file_keys();  // of the top level
[[nodiscard]] std::shared_ptr<const frontend::FrontendConfig> read_config(
    const frontend::Written& written, config::Diagnostics& diagnostics);

// Whether only this machine can reach it.
[[nodiscard]] bool is_on_this_machine(const net::Endpoint& endpoint) noexcept;

}  // namespace sluice::admin
