#include "app/config/configuration.h"

#include "base/descriptor_limit.h"
#include "embed/config/server_keys.h"
#include "frontend/admin/admin_config.h"
#include "frontend/gateway/gateway_config.h"
#include "support/temp_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using identity::AddressSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Configuration read(std::string_view text) {
  config::Diagnostics diagnostics;
  Configuration configuration = read_configuration(text, "dir/sluice.yaml", diagnostics);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
  return configuration;
}

gateway::GatewayOptions gateway_of(const Configuration& configuration) {
  return *gateway::config_in(configuration.serve.frontends).options;
}

const admin::AdminConfig& admin_of(const ServeConfig& serve) {
  return dynamic_cast<const admin::AdminConfig&>(*serve.frontends.at(1));
}

std::string mistakes(std::string_view text) {
  config::Diagnostics diagnostics;
  (void)read_configuration(text, "sluice.yaml", diagnostics);
  return diagnostics.text();
}

constexpr const char* kRules = "rules: [{name: a, per: ip, limit: 5/1s}]\n";

// Else a file for a server would not do for an embedded engine, or mistakes would be missed there.
TEST(ServeKeys, AreThoseThatAnEmbeddedEngineLeavesToAServer) {
  std::vector<std::string_view> names;
  for (const config::Key& key : serve_keys()) {
    names.push_back(key.name);
    EXPECT_FALSE(key.required) << key.name;
    EXPECT_THAT(key.formerly, ::testing::IsEmpty()) << "an embedded engine does not know these";
  }
  EXPECT_THAT(names, ::testing::ElementsAreArray(embed::kServerKeys));
}

// What people know from other proxies, and the key for it here.
TEST(Configuration, TellsPeopleOfNginxWhatToWrite) {
  struct Case {
    std::string_view text;
    std::string_view told;
  };
  constexpr std::string_view kServers = "servers: ['127.0.0.1:1']";
  for (const Case& one :
       {Case{"upstreams: {app: {@, timeout: 5s}}",
             "unknown key 'timeout' in upstream; write "
             "connect_timeout, response_timeout"},
        Case{"gateway: {timeout: 5s}", "write header_timeout or keepalive_timeout"},
        Case{"timeout: 5s", "write response_timeout or request_timeout in an upstream"},
        Case{"routes: [{location: /, upstream: app}]",
             "unknown key 'location' in route; write path"},
        Case{"location: /", "unknown key 'location' in configuration; write routes:"},
        Case{"routes: [{path: /, proxy_pass: 'http://a'}]", "write upstream: app, and its servers"},
        Case{"proxy_pass: 'http://a'", "write upstreams: {app: {servers:"},
        Case{"zone: a", "'per' names what gets its own counter"},
        Case{"listen: 8080",
             "'listen' cannot be a single value; write a map of keys and values, as "
             "in listen: {gateway: ':8080'"},
        Case{"listen: {gateway: 8080}", "write 127.0.0.1:8080, or :8080 for all addresses"}}) {
    std::string text{one.text};
    if (const auto at = text.find('@'); at != std::string::npos) text.replace(at, 1, kServers);
    EXPECT_THAT(mistakes(std::string{kRules} + text + "\n"), HasSubstr(one.told)) << text;
  }
}

TEST(Configuration, HasDefaultsForEverythingButRules) {
  const Configuration configuration = read(kRules);
  EXPECT_EQ(configuration.rules.rules.size(), 1U);
  EXPECT_EQ(configuration.state.memory, 64U << 20U);
  EXPECT_EQ(configuration.state.file, "");
  EXPECT_EQ(configuration.clients.address.source, AddressSource::peer);
  EXPECT_FALSE(configuration.clients.policy.require_auth);
}

TEST(Configuration, SaysWhereCountsAreKept) {
  const Configuration configuration =
      read(std::string{kRules} + "state: {memory: 2GiB, file: counts}\n");
  EXPECT_EQ(configuration.state.memory, std::size_t{2} << 30U);
  EXPECT_EQ(configuration.state.file, "dir/counts");
}

TEST(Configuration, BelievesForwardingHeadersOfTrustedProxies) {
  const auto source = [](const std::string& clients) {
    return read(std::string{kRules} + "clients: {" + clients + "}\n").clients.address.source;
  };
  EXPECT_EQ(source("require_auth: true"), AddressSource::peer);
  EXPECT_EQ(source("trusted_proxies: 10.0.0.0/8"), AddressSource::x_forwarded_for);
  EXPECT_EQ(source("trusted_proxies: 10.0.0.0/8, client_ip_header: Forwarded"),
            AddressSource::forwarded);
  EXPECT_EQ(source("trusted_proxies: [::1], client_ip_header: CF-Connecting-IP"),
            AddressSource::header);
  EXPECT_EQ(source("trusted_proxies: unix"), AddressSource::x_forwarded_for);
  EXPECT_EQ(source("trusted_hops: 2"), AddressSource::trusted_hops);
}

TEST(Configuration, TakesAddressesOfClientsFromOnePlace) {
  const auto told = [](const std::string& clients) {
    return mistakes(std::string{kRules} + "clients: {" + clients + "}\n");
  };
  EXPECT_THAT(
      told("trusted_hops: 2, client_ip_header: X-Real-IP"),
      HasSubstr("sluice.yaml:2:46: 'trusted_hops' counts elements of "
                "x-forwarded-for, but 'client_ip_header' names x-real-ip; leave out one of them"));
  EXPECT_EQ(told("trusted_hops: 2, client_ip_header: x-forwarded-for"), "");
}

TEST(Configuration, WarnsWhereEverybodyIsATrustedProxy) {
  const auto told = [](const std::string& clients) {
    return mistakes(std::string{kRules} + "clients: {" + clients + "}\n");
  };
  for (const std::string all : {"0.0.0.0/0", "::/0"}) {
    EXPECT_THAT(told("trusted_proxies: [10.0.0.1, '" + all + "']"),
                HasSubstr("warning: with " + all + " every client is a trusted proxy"));
    EXPECT_EQ(told("trusted_hops: 1, trusted_proxies: '" + all + "'"), "");
  }
  EXPECT_EQ(told("trusted_proxies: [unix, 10.0.0.0/8]"), "");
}

TEST(Configuration, SaysWhatIsAskedOfClients) {
  const auto policy = [](const std::string& clients) {
    return read(std::string{kRules} + "clients: {" + clients + "}\n").clients.policy;
  };
  EXPECT_TRUE(policy("require_auth: true").require_auth);
  EXPECT_FALSE(policy("require_auth: true").exempt_preflights);
  EXPECT_FALSE(policy("cors_preflight: count").exempt_preflights);
  EXPECT_TRUE(policy("cors_preflight: exempt").exempt_preflights);
  EXPECT_FALSE(policy("cors_preflight: exempt").require_auth);
  EXPECT_THAT(mistakes(std::string{kRules} + "clients: {cors_preflight: skip}\n"),
              HasSubstr("write exempt"));
}

TEST(Configuration, NamesPlacesOfApiKeys) {
  const Configuration configuration = read(
      std::string{kRules} +
      "clients: {api_keys: {header: [X-Key, apikey], query: key, basic: true, file: k.json}}\n");
  const embed::ApiKeysConfig& keys = *configuration.clients.api_keys;
  ASSERT_EQ(keys.sources.size(), 4U);
  EXPECT_EQ(keys.sources[0].name, "x-key");
  EXPECT_EQ(keys.sources[2].kind, identity::ApiKeySource::Kind::query);
  EXPECT_EQ(keys.file, "dir/k.json");
}

TEST(Configuration, SaysWhichTokensAreAccepted) {
  const Configuration configuration = read(std::string{kRules} + R"(
clients:
  jwt: {jwks_file: [a.json, /etc/b.json], issuer: me, audience: [x, z], clock_skew: 5s, tier: plan,
           algorithms: [ES256, EdDSA]}
)");
  const embed::JwtConfig& jwt = *configuration.clients.jwt;
  EXPECT_THAT(jwt.jwks_files, ElementsAre("dir/a.json", "/etc/b.json"));
  EXPECT_THAT(jwt.policy.issuers, ElementsAre("me"));
  EXPECT_THAT(jwt.policy.audiences, ElementsAre("x", "z"));
  EXPECT_EQ(jwt.policy.clock_skew, 5s);
  EXPECT_EQ(jwt.policy.tier_claim, "plan");
  EXPECT_EQ(jwt.policy.user_claim, "sub");
  EXPECT_EQ(jwt.policy.algorithms.size(), 2U);
}

TEST(Configuration, ReportsAllMistakesWithTheirPlaces) {
  const std::string text = mistakes(R"(
state: {memory: 64MB}
client: {}
clients:
  jwt: {issuer: me}
  trusted_proxies: [10.0.0.1/8]
rules:
  - {name: a, per: ip, limit: 5/1x}
)");
  EXPECT_THAT(text, HasSubstr("sluice.yaml:2:17: "));
  EXPECT_THAT(text, HasSubstr("write a number and KiB, MiB or GiB"));
  EXPECT_THAT(
      text,
      HasSubstr("sluice.yaml:3:1: unknown key 'client' in configuration; did you mean 'clients'?"));
  EXPECT_THAT(text, HasSubstr("sluice.yaml:5:"));
  EXPECT_THAT(text, HasSubstr("sluice.yaml:6:"));
  EXPECT_THAT(text, HasSubstr("sluice.yaml:8:"));
}

TEST(Configuration, ThatSaysNothingIsToldWhereToGetOne) {
  for (const char* text : {"", "\n", "# later\n", "---\n"}) {
    EXPECT_THAT(mistakes(text), HasSubstr("the file says nothing; `sluice init` writes")) << text;
  }
}

TEST(Configuration, ReadsRoutesAsRequestsHaveTheirHostsAndPaths) {
  const std::string file = std::string{kRules} + R"(
listen: {gateway: ':8080'}
upstreams: {app: {servers: [':3000']}}
)";
  const auto route = [&](const std::string& more) {
    return gateway_of(read(file + more)).routes.at(0);
  };
  const std::string api = "routes: [{host: API.Example.com., path: /V1/**, upstream: app}]\n";
  EXPECT_THAT(route(api).hosts, ElementsAre("api.example.com"));
  EXPECT_EQ(route(api).path->text(), "/V1/**");
  EXPECT_FALSE(route(api).path->matches("/v1/x"));
  EXPECT_TRUE(route("case_insensitive_paths: [api.example.com]\n" + api).path->matches("/v1/x"));
  EXPECT_THAT(mistakes(file + "case_insensitive_paths: [api.example.com]\n" +
                       "routes: [{path: /V1/**, upstream: app}]\n"),
              HasSubstr("the path /V1/** has capitals, and some hosts ignore case"));
  EXPECT_THAT(mistakes(file + "ignore_path_parameters: true\n" +
                       "routes: [{path: /v1;a/**, upstream: app}]\n"),
              HasSubstr("the path /v1;a/** has a parameter, and hosts ignore those"));
  const std::string slash = "routes: [{host: git.example.com, path: /a%2Fb/**, upstream: app}]\n";
  EXPECT_THAT(mistakes(file + slash),
              HasSubstr("the path /a%2Fb/** has an escaped slash, and hosts do not keep those"));
  EXPECT_TRUE(route("escaped_slashes: {hosts: {git.example.com: keep}}\n" + slash)
                  .path->matches("/a%2Fb/c"));
}

// nginx users take them for prefixes.
TEST(Configuration, WarnsOfRoutesThatLookLikePrefixes) {
  const std::string file = std::string{kRules} + R"(
listen: {gateway: ':8080'}
upstreams: {app: {servers: [':3000']}}
)";
  const auto told = [&](const std::string& routes) {
    config::Diagnostics diagnostics;
    (void)read_configuration(file + "routes: [" + routes + "]\n", "c", diagnostics);
    EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
    return diagnostics.text();
  };
  EXPECT_THAT(told("{path: /, upstream: app}, {path: /api/, upstream: app}"),
              AllOf(HasSubstr("the path / is this one path, not all that begin so; write /** for "
                              "all paths"),
                    HasSubstr("write /api/** for all that begin so, or /api for this one")));
  EXPECT_EQ(told("{path: /, upstream: app}, {upstream: app}"), "");
  EXPECT_EQ(told("{path: /, upstream: app}, {path: /**, upstream: app}"), "");
}

// The server behind could not tell them from those that were looked at.
TEST(Configuration, NamesTheHeadersThatClientsAreToldApartBy) {
  const std::string clients =
      "clients: {trusted_proxies: 10.0.0.0/8, client_ip_header: CF-Connecting-IP, "
      "api_keys: {header: [X-Key], query: key, file: k.json}}\n";
  EXPECT_THAT(gateway_of(read(std::string{kRules} + clients)).identifying_headers,
              ElementsAre("cf-connecting-ip", "x-key"));
}

// 0s was at once for one of them, never for another.
TEST(Configuration, WantsTimesInWhichSomethingCanHappen) {
  const std::string file = std::string{kRules} + "listen: {gateway: ':8080'}\n";
  for (const char* key :
       {"connect_timeout", "response_timeout", "read_timeout", "keepalive_timeout"}) {
    const std::string app = fmt::format("{{servers: [':1'], {}: 0s}}", key);
    EXPECT_THAT(mistakes(file + "upstreams: {app: " + app + "}\n"),
                HasSubstr(fmt::format("{}: 0s leaves no time at all; write at least 1ms", key)));
  }
  for (const char* key :
       {"header_timeout", "keepalive_timeout", "upload_rate_interval", "download_rate_interval"}) {
    EXPECT_THAT(mistakes(file + fmt::format("gateway: {{{}: 999us}}\n", key)),
                HasSubstr(fmt::format("{}: 999us leaves no time at all", key)));
  }
  const Configuration off =
      read(file +
           "upstreams: {app: {servers: [':1'], request_timeout: 0s, ejection_time: 0s}}\n"
           "routes: [{upstream: app}]\ndrain: {delay: 0s, timeout: 0s}\n");
  EXPECT_EQ(gateway_of(off).upstreams.at(0).request_timeout, 0s)
      << "where it is said what it means";
}

TEST(Configuration, WarnsOfMoreConnectionsThanDescriptors) {
  const auto told = [](const std::string& connections) {
    return mistakes(std::string{kRules} +
                    "workers: 1024\ngateway: {max_connections_per_worker: " + connections + "}\n");
  };
  EXPECT_THAT(told("1000000"),
              HasSubstr("warning: 1000000 connections of each of 1024 workers need 2048000064 file "
                        "descriptors, and the process may have "));
  EXPECT_THAT(
      mistakes(std::string{kRules} + "workers: 1\ngateway: {max_connections_per_worker: 10}\n"),
      Not(HasSubstr("descriptors")));
  EXPECT_EQ(mistakes(std::string{kRules} + "workers: 1024\n"), "") << "nothing was asked for";
}

// Half of the descriptors are for the way to servers.
TEST(Configuration, TakesNoMoreConnectionsThanThereAreDescriptorsForUnlessTheyAreWritten) {
  EXPECT_EQ(gateway::connections_within(1024, 2), 240U);
  EXPECT_EQ(gateway::connections_within(64 + 2 * 2 * 50'000, 2), 50'000U);
  EXPECT_EQ(gateway::connections_within(10, 2), 1U);
  EXPECT_EQ(gateway::connections_within(std::numeric_limits<std::uint64_t>::max(), 1),
            std::numeric_limits<std::uint32_t>::max());
  const std::string many = std::string{kRules} + "workers: 1024\n";
  const std::uint32_t room =
      std::min(gateway::connections_within(descriptors_max(), 1024), 50'000U);
  for (const char* gateway : {"", "gateway: {via: false}\n"}) {
    const Configuration configuration = read(many + gateway);
    const gateway::GatewayConfig& config = gateway::config_in(configuration.serve.frontends);
    EXPECT_EQ(config.options->max_connections_per_worker, room);
    EXPECT_EQ(config.lacks_descriptors, room < 50'000);
    EXPECT_FALSE(config.start_warning()) << "there is no gateway";
  }
  const Configuration written =
      read(std::string{kRules} + "workers: 1\ngateway: {max_connections_per_worker: 7}\n");
  EXPECT_EQ(gateway_of(written).max_connections_per_worker, 7U);
  EXPECT_FALSE(gateway::config_in(written.serve.frontends).lacks_descriptors);
}

TEST(Configuration, SaysHowRequestsAreSentToServers) {
  const gateway::GatewayOptions options =
      gateway_of(read(std::string{kRules} + "upstreams: {a: {servers: [':1'], send_timeout: 5s}, "
                                            "b: {servers: [':1']}}\ngateway: {via: false}\n"));
  EXPECT_EQ(options.upstreams.at(0).send_timeout, std::chrono::seconds{5});
  EXPECT_EQ(options.upstreams.at(1).send_timeout, std::chrono::seconds{30});
  EXPECT_FALSE(options.adds_via);
  EXPECT_TRUE(gateway_of(read(std::string{kRules})).adds_via);
  EXPECT_THAT(
      mistakes(std::string{kRules} + "upstreams: {a: {servers: [':1'], send_timeout: 0s}}\n"),
      HasSubstr("0s leaves no time at all"));
}

TEST(Configuration, LeavesThePoolToDemandUnlessItHasAMaximum) {
  const auto kept = [](const std::string& options) {
    return gateway_of(
               read(std::string{kRules} + "upstreams: {app: {servers: [':1']" + options + "}}\n"))
        .upstreams.at(0)
        .keepalive_connections;
  };
  EXPECT_EQ(kept(""), std::nullopt);
  EXPECT_EQ(kept(", keepalive_connections: 0"), 0U);
  EXPECT_EQ(kept(", keepalive_connections: 64"), 64U);
}

TEST(Configuration, WantsOneHostForAnUpstream) {
  EXPECT_THAT(mistakes(std::string{kRules} +
                       "upstreams: {app: {servers: [':1'], host_header: '*.example.com'}}\n"),
              HasSubstr("host_header: '*.example.com' is many hosts, and one is needed"));
  EXPECT_THAT(
      mistakes(std::string{kRules} +
               "upstreams: {app: {servers: [':1'], tls: {server_name: '*.example.com'}}}\n"),
      HasSubstr("server_name: '*.example.com' is many hosts, and one is needed"));
}

TEST(Configuration, NamesTheHostAndTheCertificateOfAnUpstreamApart) {
  const auto upstream =
      gateway_of(read(std::string{kRules} +
                      "upstreams: {app: {servers: [':1'], host_header: app.example,\n"
                      "  tls: {server_name: tls.example, verify: false}}}\n"))
          .upstreams.at(0);
  EXPECT_EQ(upstream.host_header, "app.example");
  EXPECT_EQ(upstream.tls_server_name, "tls.example");
}

TEST(Configuration, WantsRoomForATable) {
  EXPECT_THAT(mistakes(std::string{kRules} + "state: {memory: 4095KiB}\n"),
              HasSubstr("4095KiB is too little for a table of counts; use at least 4MiB"));
  EXPECT_EQ(read(std::string{kRules} + "state: {memory: 4MiB}\n").state.memory, 4U << 20U);
}

TEST(Configuration, OpensTheFilesThatItNames) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("keys.json")} << R"({"keys": [{"name": "ci", "hash": ")"
                                          << identity::hash_api_key("secret") << R"("}]})";
  config::Diagnostics diagnostics;
  const Configuration configuration =
      read_configuration(std::string{kRules} + "clients: {api_keys: {file: keys.json}}\n",
                         folder.file("sluice.yaml"), diagnostics);
  ASSERT_TRUE(diagnostics.ok()) << diagnostics.text();
  const auto identifier = embed::load_clients(configuration.clients, diagnostics);
  ASSERT_NE(identifier, nullptr) << diagnostics.text();
  identity::IdentifierScratch scratch;
  const HeaderView header{"X-Api-Key", "secret"};
  const RequestView request{.headers = {&header, 1}};
  EXPECT_EQ(identifier->identify(request, Now{}, scratch).api_key, "ci");
}

// All of them at once, with the lines of those that are there and no good.
TEST(Configuration, SaysWhichFilesCannotBeUsed) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("keys.yaml")} << "keys:\n  - {name: a, hash: sha256:0}\n  - name: b\n";
  config::Diagnostics diagnostics;
  const Configuration configuration = read_configuration(
      std::string{kRules} +
          "clients:\n  api_keys: {file: keys.yaml}\n"
          "  jwt: {jwks_file: absent.json}\n  geo: {country_file: nowhere.mmdb}\n",
      folder.file("sluice.yaml"), diagnostics);
  ASSERT_TRUE(diagnostics.ok()) << diagnostics.text();
  EXPECT_EQ(embed::load_clients(configuration.clients, diagnostics), nullptr);
  EXPECT_EQ(diagnostics.errors(), 4U) << diagnostics.text();
  EXPECT_THAT(diagnostics.text(), HasSubstr("nowhere.mmdb"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("absent.json"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("keys.yaml:2:21: hash: the hash is not one"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("keys.yaml:3:5: 'hash' is missing in key"));
}

// It is no file that is missing.
TEST(Configuration, SaysThatKeysAreNotFetched) {
  config::Diagnostics diagnostics;
  const Configuration configuration = read_configuration(
      std::string{kRules} +
          "clients:\n  jwt: {jwks_file: [a.json, 'https://login.example/jwks'],\n"
          "           public_key_file: 'http://login.example/pem'}\n",
      "dir/sluice.yaml", diagnostics);
  EXPECT_EQ(diagnostics.errors(), 2U) << diagnostics.text();
  EXPECT_THAT(
      diagnostics.text(),
      HasSubstr("'https://login.example/jwks' is a URL, and 'jwks_file' names files: keys are not "
                "fetched yet; save the keys to a file, as with curl -o FILE URL, and name "
                "the file; the server reads it again when it changes"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("'http://login.example/pem' is a URL"));
  EXPECT_FALSE(configuration.clients.jwt);
}

TEST(Configuration, SaysThatAKeyedHashNeedsASecret) {
  const testing::TempFolder folder;
  std::ofstream{folder.file("keys.yaml")} << "keys: [{name: a, hash: '"
                                          << identity::hash_api_key("k", "a long secret of it")
                                          << "'}]\n";
  config::Diagnostics diagnostics;
  const Configuration configuration =
      read_configuration(std::string{kRules} + "clients: {api_keys: {file: keys.yaml}}\n",
                         folder.file("sluice.yaml"), diagnostics);
  EXPECT_EQ(embed::load_clients(configuration.clients, diagnostics), nullptr);
  EXPECT_THAT(diagnostics.text(), HasSubstr("hashed under a secret, but there is none"));
}

// Whoever can write into one of these decides who is believed, and so which limits hold.
TEST(Configuration, BelievesNoFileThatEverybodyMayChange) {
  const testing::TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text, mode_t mode) {
    std::ofstream{folder.file(name)} << text;
    ASSERT_EQ(::chmod(folder.file(name).c_str(), mode), 0);
  };
  const std::string keys = "keys: [{name: a, hash: '" + identity::hash_api_key("k") + "'}]\n";
  const std::string secret(32, 's');
  const std::string clients = "clients: {api_keys: {file: keys.yaml}, jwt: {secret_file: jwt}}\n";
  const auto load = [&] {
    config::Diagnostics diagnostics;
    const Configuration configuration =
        read_configuration(std::string{kRules} + clients, folder.file("sluice.yaml"), diagnostics);
    const bool loaded = embed::load_clients(configuration.clients, diagnostics) != nullptr;
    EXPECT_EQ(loaded, diagnostics.ok());
    return diagnostics.text();
  };
  write("keys.yaml", keys, 0644);
  write("jwt", secret, 0640);
  EXPECT_EQ(load(), "");
  write("keys.yaml", keys, 0666);
  EXPECT_THAT(load(), HasSubstr("chmod o-w " + folder.file("keys.yaml")));
  write("keys.yaml", keys, 0644);
  write("jwt", secret, 0642);
  EXPECT_THAT(load(), HasSubstr("chmod o-w " + folder.file("jwt")));
  write("jwt", secret, 0644);
  EXPECT_THAT(load(), HasSubstr("warning: the secret in " + folder.file("jwt") +
                                " can be read by every user of this machine"));
}

// ---- operators --------------------------------------------------------------------------------

TEST(Configuration, SaysWhereOperatorsAskAndHowItEnds) {
  const ServeConfig serve = read(std::string{kRules} + R"(
listen: {admin: [127.0.0.1:9090, 'unix:/run/admin.sock', '[::1]:9090', 'localhost:9091']}
drain: {delay: 5s, timeout: 1m}
)")
                                .serve;
  EXPECT_EQ(admin_of(serve).listen.size(), 4U);
  EXPECT_EQ(admin_of(serve).token_file, "");
  EXPECT_EQ(serve.drain.delay, 5s);
  EXPECT_EQ(serve.drain.timeout, 1min);
  EXPECT_EQ(read(kRules).serve.drain.delay, 0s);
}

// Nobody should find out by a port scan.
TEST(Configuration, WantsATokenForWhatCanBeReachedFromElsewhere) {
  for (const char* address : {"':9090'", "0.0.0.0:9090", "'[::]:9090'", "192.0.2.1:9090",
                              "admin.example:9090", "[127.0.0.1:1, ':2']"}) {
    const std::string listen = fmt::format("{}listen: {{admin: {}}}\n", kRules, address);
    EXPECT_THAT(mistakes(listen), HasSubstr("reachable from other machines")) << address;
    const ServeConfig serve = read(listen + "admin: {token_file: t}\n").serve;
    EXPECT_EQ(admin_of(serve).token_file, "dir/t") << address;
  }
}

// ---- rules of envoyproxy/ratelimit ------------------------------------------------------------

TEST(Configuration, NamesAFolderOfEnvoysRules) {
  const Configuration configuration = read("rules_from: {envoy: config, evaluate: independent}\n");
  ASSERT_TRUE(configuration.envoy);
  EXPECT_EQ(configuration.envoy->folder, "dir/config");
  EXPECT_FALSE(configuration.envoy->merge_domains);
  EXPECT_FALSE(configuration.envoy->modes.shadow_mode);
  EXPECT_FALSE(configuration.envoy->modes.quota_mode);
  EXPECT_FALSE(read(kRules).envoy);
}

TEST(Configuration, SetsTheModesOfEnvoysRules) {
  const Configuration shadow = read("rules_from: {envoy: /c, shadow_mode: true}\n");
  EXPECT_EQ(shadow.envoy->folder, "/c");
  EXPECT_TRUE(shadow.envoy->modes.shadow_mode);
  EXPECT_FALSE(shadow.envoy->modes.quota_mode);
  const Configuration rest =
      read("rules_from: {envoy: c, quota_mode: true, merge_domains: true}\n");
  EXPECT_TRUE(rest.envoy->modes.quota_mode);
  EXPECT_TRUE(rest.envoy->merge_domains);
}

TEST(Configuration, NeedsRulesOfOneKindOrTheOther) {
  EXPECT_THAT(mistakes("state: {}\n"), HasSubstr("'rules' or 'rules_from'"));
  EXPECT_THAT(mistakes("rules_from: {}\n"), HasSubstr("says nothing of 'file' or 'envoy'"));
  EXPECT_THAT(mistakes("rules_from: {envoy: c, poll_interval: 5s}\n"), HasSubstr("poll_interval"));
  EXPECT_THAT(mistakes("rules_from: {file: c, poll_interval: 0s}\n"), HasSubstr("no time at all"));
  EXPECT_THAT(mistakes("rules_from: {envoy: c, evaluate: together}\n"), HasSubstr("independent"));
  EXPECT_EQ(read(std::string{kRules} + "rules_from: {envoy: c}\n").rules.rules.size(), 1U);
}

TEST(Configuration, ReadsRulesFromAFileOfTheirOwn) {
  const testing::TempFolder folder;
  const std::string path = folder.file("rules.yaml");
  std::ofstream{path} << kRules << "unmatched: reject\n";
  const Configuration configuration =
      read("state: {file: counts}\nrules_from: {file: " + path + ", poll_interval: 5s}\n");
  EXPECT_EQ(configuration.rules.rules.size(), 1U);
  EXPECT_EQ(configuration.rules.unmatched, rules::Unmatched::reject);
  EXPECT_EQ(configuration.rules_file->file, path);
  EXPECT_EQ(configuration.rules_file->poll_interval, 5s);
  EXPECT_EQ(configuration.rules_file->last_good_file, "dir/counts.rules");
  EXPECT_EQ(read("rules_from: {file: " + path + "}\n").rules_file->last_good_file, "");
  EXPECT_EQ(
      read("rules_from: {file: " + path + ", last_good_file: kept}\n").rules_file->last_good_file,
      "dir/kept");
}

TEST(Configuration, SaysWhatIsWrongWithAFileOfRules) {
  const testing::TempFolder folder;
  const std::string path = folder.file("rules.yaml");
  const std::string from = "rules_from: {file: " + path + "}\n";
  EXPECT_THAT(mistakes(from), HasSubstr(path));
  std::ofstream{path} << "rules: [{name: a, limt: 1/1s}]\n";
  EXPECT_THAT(mistakes(from), HasSubstr("rules.yaml:1:19: unknown key 'limt'"));
  std::ofstream{path} << kRules;
  EXPECT_THAT(mistakes(from + kRules), HasSubstr("'rules' is here, but the rules are elsewhere"));
  EXPECT_EQ(mistakes(from), "");
}

// A server has read it already, or has another one that is good.
TEST(Configuration, TakesRulesThatSomebodyHasRead) {
  config::Diagnostics diagnostics;
  const embed::RulesText given{.text = kRules, .file = "given.yaml"};
  const Configuration configuration =
      read_configuration("rules_from: {file: /no/such/file}\n", "sluice.yaml", diagnostics, &given);
  EXPECT_EQ(diagnostics.text(), "");
  EXPECT_EQ(configuration.rules.rules.size(), 1U);
}

// Mistakes in the files are at their places in those files, all of them at once.
TEST(Configuration, LoadsEnvoysRulesAndSaysWhatIsWrongWithThem) {
  const testing::TempFolder folder;
  const embed::EnvoyConfig envoy{
      .folder = folder.file("trees"), .merge_domains = false, .modes = {}};
  config::Diagnostics absent;
  EXPECT_EQ(embed::load_envoy(envoy, absent), nullptr);
  EXPECT_THAT(absent.text(), HasSubstr("trees"));

  std::filesystem::create_directory(envoy.folder);
  std::ofstream{envoy.folder + "/a.yaml"} << "domain: a\ndescriptors: [{key: k}]\n";
  config::Diagnostics none;
  const auto trees = embed::load_envoy(envoy, none);
  ASSERT_NE(trees, nullptr) << none.text();
  EXPECT_TRUE(trees->has_domain("a"));

  std::ofstream{envoy.folder + "/b.yaml"} << "domain: a\n";
  std::ofstream{envoy.folder + "/c.yaml"} << "domain: c\ndescriptors: [{kye: k}]\n";
  config::Diagnostics diagnostics;
  EXPECT_EQ(embed::load_envoy(envoy, diagnostics), nullptr);
  EXPECT_THAT(diagnostics.text(), HasSubstr("b.yaml:1:9: the domain 'a' is already in"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("c.yaml:2:16: unknown key 'kye'"));
}

// The page for people is written by the program, and must not fall behind it.
TEST(Configuration, IsDescribedByItsPage) {
  std::ifstream page{SLUICE_SOURCE_DIR "/docs/configuration.md"};
  const std::string text{std::istreambuf_iterator<char>{page}, {}};
  EXPECT_EQ(text, configuration_reference())
      << "run: sluice check --print-reference > docs/configuration.md";
}

TEST(Configuration, HasASchemaOfAllItsKeys) {
  const std::string schema = configuration_schema();
  for (const char* key :
       {"\"clients\"", "\"trusted_proxies\"", "\"jwks_file\"", "\"memory\"", "\"per\""}) {
    EXPECT_THAT(schema, HasSubstr(key));
  }
}

}  // namespace
}  // namespace sluice::app
