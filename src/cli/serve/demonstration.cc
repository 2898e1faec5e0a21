#include "cli/serve/demonstration.h"

#include "base/replace_file.h"
#include "embed/config/api_key_file.h"
#include "identity/api_keys.h"
#include "net/listen.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::uint16_t kGatewayPort = 8080;
constexpr std::uint16_t kAdminPort = 9090;

constexpr std::string_view kConfiguration =
    R"(# The demonstration. Edit it while it runs: the gateway reloads it at once.
listen: {{gateway: '127.0.0.1:{gateway}', admin: '127.0.0.1:{admin}'}}
upstreams: {{echo: {{servers: ['{echo}']}}}}
routes: [{{path: /**, upstream: echo}}]
clients: {{api_keys: {{header: x-api-key, file: keys.yaml}}}}
# Of the rules of a group that match a request, only the most specific one applies.
rules:
  # Clients without a key, by address.
  - name: anonymous
    group: pages
    match: {{authenticated: false}}
    per: [ip]
    limit: 5/10s
  # Clients with a key, by plan: demo-free and demo-paid are in keys.yaml.
  - name: plans
    group: pages
    match: {{authenticated: true}}
    per: [api_key]
    limit: 10/10s
    tiers: {{by: client.tier, values: {{free: 10/10s, paid: 100/10s}}}}
  # Against password guessing.
  - name: login
    group: pages
    match: {{path: /login}}
    per: [ip]
    limit: 3/1m
    block: {{duration: 30s}}
  # Queued until their turn comes, not rejected.
  - name: reports
    group: pages
    match: {{path: /reports}}
    per: [ip]
    limit: {{rate: 1/1s, algorithm: leaky_bucket}}
    action: {{queue: {{max_delay: 5s}}}}
)";

constexpr std::string_view kWhatToTry =
    R"(A gateway in front of an echo server, at http://{gateway}. Try:

  curl -i http://{gateway}/hello                            no key: 5 in 10 s
  curl -i -H 'x-api-key: demo-free' http://{gateway}/hello  free: 10 in 10 s
  curl -i -H 'x-api-key: demo-paid' http://{gateway}/hello  paid: 100 in 10 s
  for i in $(seq 7); do curl -s -o /dev/null -w '%{{http_code}} ' http://{gateway}/; done
  curl -i http://{gateway}/login                            3 a minute, then blocked for 30 s
  curl -i http://{gateway}/reports                          queued: one a second, with or without key
  sluice status --server http://{admin} --watch 1s        the server at this moment
  sluice load http://{gateway}/ --rate 20/s -H 'x-api-key: demo-free' --svg load.svg
  curl -s http://{admin}/metrics                          its counters

Its rules are in {file}
Edit them: the gateway reloads them at once. Ctrl-C stops it and removes them.
)";

// The usual port, if it is free; any other one otherwise.
std::uint16_t port_or_any(std::uint16_t port) {
  const auto endpoint = net::Endpoint::parse(fmt::format("127.0.0.1:{}", port));
  return endpoint && net::listen_on(*endpoint) ? port : 0;
}

std::string keys() {
  std::vector<identity::ApiKeyRecord> records;
  for (const char* const tier : {"free", "paid"}) {
    records.push_back(
        {.name = tier, .hash = identity::hash_api_key(fmt::format("demo-{}", tier)), .tier = tier});
  }
  return embed::key_file_text(records);
}

Parsed<std::filesystem::path> make_folder() {
  std::error_code failed;
  const std::filesystem::path where = std::filesystem::temp_directory_path(failed);
  std::string name = (where / "sluice-demonstration-XXXXXX").string();
  if (failed || ::mkdtemp(name.data()) == nullptr) {
    return mistake(fmt::format("cannot make a folder for the demonstration: {}",
                               failed ? failed.message() : std::strerror(errno)),
                   "set TMPDIR to a folder that can be written to");
  }
  return std::filesystem::path{name};
}

}  // namespace

Parsed<std::unique_ptr<Demonstration>> Demonstration::begin(const Clock& clock) {
  auto echo = EchoServer::start(clock);
  if (!echo) return tl::unexpected(std::move(echo.error()));
  Parsed<std::filesystem::path> folder = make_folder();
  if (!folder) return tl::unexpected(std::move(folder.error()));
  std::unique_ptr<Demonstration> begun{new Demonstration{*std::move(folder), *std::move(echo)}};
  const std::string configuration =
      fmt::format(fmt::runtime(kConfiguration), fmt::arg("gateway", port_or_any(kGatewayPort)),
                  fmt::arg("admin", port_or_any(kAdminPort)),
                  fmt::arg("echo", begun->echo_->endpoint().text()));
  const std::array<std::pair<std::string, std::string>, 2> files{
      {{begun->file(), configuration}, {(begun->folder_ / "keys.yaml").string(), keys()}}};
  for (const auto& [path, content] : files) {
    auto written = replace_file(path, content);
    if (!written) return tl::unexpected(std::move(written.error()));
  }
  return begun;
}

Demonstration::Demonstration(std::filesystem::path folder,
                             std::unique_ptr<EchoServer> echo) noexcept
    : folder_(std::move(folder)), echo_(std::move(echo)) {}

Demonstration::~Demonstration() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Demonstration::what_to_try(std::string_view gateway, std::string_view admin) const {
  return fmt::format(fmt::runtime(kWhatToTry), fmt::arg("gateway", gateway),
                     fmt::arg("admin", admin), fmt::arg("file", file()));
}

}  // namespace sluice::cli
