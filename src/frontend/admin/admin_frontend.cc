#include "frontend/admin/admin_frontend.h"

#include "config/secret_file.h"
#include "frontend/admin/admin_config.h"
#include "frontend/admin/admin_server.h"
#include "frontend/admin/guard.h"
#include "frontend/admin/pages.h"
#include "frontend/admin/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::admin {
namespace {

using frontend::Frontend;
using frontend::FrontendConfig;
using frontend::FrontendWorker;

constexpr std::size_t kTokenBytesMin = 16;

const AdminConfig& own(const FrontendConfig& config) {
  return static_cast<const AdminConfig&>(config);
}

class AdminWorker final : public FrontendWorker {
 public:
  AdminWorker(const frontend::ThreadParts& parts, const AdminConfig& config)
      : server_(parts.loop, routes_) {
    add_pages(routes_, parts.view);
    server_.use(config.guard);
  }

  void accept(net::Accepted accepted, const frontend::Entrance& /*entrance*/) override {
    server_.accept(std::move(accepted));
  }
  void use(const std::shared_ptr<const FrontendConfig>& config) override {
    server_.use(own(*config).guard);
  }

 private:
  Routes routes_;
  AdminServer server_;
};

// Without a file the guard has no token. Null: the file has an error.
std::shared_ptr<const Guard> load_guard(const std::string& token_file,
                                        const config::NamedFiles& files,
                                        config::Diagnostics& diagnostics) {
  if (token_file.empty()) return std::make_shared<const Guard>();
  config::warn_of_exposure(token_file, diagnostics);
  Parsed<std::string> token = config::read_secret(token_file);
  if (token && token->size() < kTokenBytesMin) {
    token = mistake(fmt::format("the token in '{}' is too short to be safe", token_file),
                    "make one by: openssl rand -hex 32");
  }
  if (!token) {
    files.error(token_file, std::move(token.error()), diagnostics);
    return nullptr;
  }
  return std::make_shared<const Guard>(*token);
}

class AdminFrontend final : public Frontend {
 public:
  [[nodiscard]] std::shared_ptr<const FrontendConfig> load(
      const std::shared_ptr<const FrontendConfig>& read, const FrontendConfig* in_force,
      const frontend::LoadParts& parts, config::Diagnostics& diagnostics) override {
    auto loaded = std::make_shared<AdminConfig>(own(*read));
    loaded->guard = load_guard(loaded->token_file, parts.files, diagnostics);
    if (!loaded->token_file.empty() || !listens_at_) return loaded;
    // A guard for other addresses may be too weak for the open ones.
    if (loaded->listen != *listens_at_) {
      loaded->guard = own(*in_force).guard;
    } else if (needs_token_) {
      diagnostics.error(
          {.message = "the admin listener would be reachable from other machines without a token",
           .remedy = "write admin: {token_file: FILE}"});
    }
    return loaded;
  }

  [[nodiscard]] Parsed<void> opened(const FrontendConfig& config,
                                    std::span<const frontend::OpenedSocket> sockets) override {
    const auto is_open = [](const frontend::OpenedSocket& socket) {
      return !is_on_this_machine(socket.endpoint);
    };
    const auto found = std::ranges::find_if(sockets, is_open);
    needs_token_ = found != sockets.end();
    listens_at_ = config.listen;
    if (!needs_token_ || !own(config).token_file.empty()) return {};
    return mistake(fmt::format("the inherited socket {} is reachable from other machines without "
                               "a token",
                               found->text),
                   "write admin: {token_file: FILE}, or let it listen on 127.0.0.1");
  }

  [[nodiscard]] std::unique_ptr<FrontendWorker> on_thread(
      const frontend::ThreadParts& parts,
      const std::shared_ptr<const FrontendConfig>& config) override {
    return std::make_unique<AdminWorker>(parts, own(*config));
  }

 private:
  std::optional<std::vector<net::Endpoint>> listens_at_;  // nothing: no socket is open
  bool needs_token_ = false;  // a socket is reachable from other machines
};

}  // namespace

const frontend::FrontendKind& kind() {
  static const frontend::FrontendKind kKind{
      .placement = frontend::Placement::own_thread,
      .listen = listen_key(),
      .keys = file_keys(),
      .read = read_config,
      .open = []() -> std::unique_ptr<Frontend> { return std::make_unique<AdminFrontend>(); }};
  return kKind;
}

}  // namespace sluice::admin
