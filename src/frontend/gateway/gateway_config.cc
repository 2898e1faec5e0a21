#include "frontend/gateway/gateway_config.h"

#include "base/descriptor_limit.h"
#include "base/text.h"
#include "config/secret_file.h"
#include "frontend/gateway/gateway_grammar.h"
#include "rules/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::gateway {
namespace {

using config::Checked;
using config::Diagnostics;
using config::Node;
using config::Reader;

// A connection is a descriptor, and its request needs one more to a server.
constexpr std::uint64_t kDescriptorsOfOne = 2;
constexpr std::uint64_t kDescriptorsForAllElse = 64;
constexpr const char* kRaiseDescriptors =
    "raise the hard limit (LimitNOFILE of the unit, --ulimit nofile of a container, ulimit -Hn)";

std::uint64_t descriptors_for(std::uint32_t connections, unsigned workers) noexcept {
  return kDescriptorsOfOne * workers * connections + kDescriptorsForAllElse;
}

class GatewayReader {
 public:
  GatewayReader(const frontend::Written& written, Diagnostics& diagnostics)
      : written_(written),
        file_(written.file),
        context_(written.context),
        checked_(written.checked),
        files_(written.files),
        diagnostics_(diagnostics) {}

  [[nodiscard]] std::shared_ptr<const GatewayConfig> read() {
    options_.identifying_headers = context_.identifying_headers;
    options_.client_ip_header = context_.client_ip_header;
    options_.log_secrets = context_.log_secrets;
    options_.trusted_proxies = identity::IpRangeSet{context_.trusted_proxies};
    for (const Node* one : written_.listen) {
      config_.listeners.push_back(listener(*one));
      config_.listen.push_back(config_.listeners.back().endpoint);
    }
    if (const Node* node = file_.find("upstreams")) upstreams(*node);
    for (const Node* node : file_.list("routes")) route(*node);
    warn_of_prefixes(file_.list("routes"));
    const Node* const section = file_.find("gateway");
    if (section != nullptr) gateway(*section);
    connections(section);
    answers(section);
    if (!config_.listen.empty() && options_.routes.empty() && !file_.has("routes")) {
      diagnostics_.error(*file_.find("listen"), "the gateway has no routes",
                         "write where requests go: upstreams and routes");
    }
    warn_of_unused();
    config_.options = std::make_shared<const GatewayOptions>(std::move(options_));
    return std::make_shared<const GatewayConfig>(std::move(config_));
  }

 private:
  void upstreams(const Node& map) {
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (!checked_.good(map.value(i))) continue;
      options_.upstreams.push_back(upstream(map.key(i).text, map.value(i)));
    }
  }

  // Paths of case-insensitive hosts arrive in lower case.
  [[nodiscard]] rules::PathTemplate path_of(const Node& path,
                                            std::span<const std::string> hosts) const {
    if (context_.case_insensitive_paths.makes_unclear(path.text, hosts)) {
      diagnostics_.error(
          path, fmt::format("the path {} has capitals, and some hosts ignore case", path.text),
          "write it in lower case, or name hosts that all do, or all do not");
    }
    if (path.text.find(';') != std::string_view::npos &&
        context_.ignore_path_parameters.holds_for_some(hosts)) {
      diagnostics_.error(
          path, fmt::format("the path {} has a parameter, and hosts ignore those", path.text),
          "leave out what stands behind the semicolon, or name hosts that heed it");
    }
    if (identity::has_escaped_slash(path.text) &&
        !context_.escaped_slashes.are_kept_on_all(hosts)) {
      diagnostics_.error(
          path,
          fmt::format("the path {} has an escaped slash, and hosts do not keep those", path.text),
          "write a plain slash, or set escaped_slashes: keep for the hosts of the route");
    }
    return rules::PathTemplate::parse(path.text,
                                      context_.case_insensitive_paths.holds_for_all(hosts))
        .value();
  }

  // Warns of routes like /api/ and /, which look like prefixes. The root alone is intended if
  // another route has all paths.
  void warn_of_prefixes(std::span<const Node* const> routes) const {
    const auto path_in = [](const Node* route) {
      return route->is_map() ? route->find("path") : nullptr;
    };
    const bool has_all = std::ranges::any_of(routes, [&](const Node* route) {
      const Node* const path = path_in(route);
      return path == nullptr || path->text == "/**";
    });
    for (const Node* route : routes) {
      const Node* const path = path_in(route);
      if (path == nullptr || !checked_.good(*path)) continue;
      const std::string remedy = rules::prefix_remedy(path->text);
      if (remedy.empty() || (path->text == "/" && has_all)) continue;
      diagnostics_.warning(
          *path, fmt::format("the path {} is this one path, not all that begin so", path->text),
          remedy);
    }
  }

  void route(const Node& node) {
    const Reader reader{node, route_section(), checked_};
    const Node* const name = reader.find("upstream");
    if (name == nullptr) return;
    RouteOptions route;
    for (const Node* host : reader.list("host")) {
      route.hosts.push_back(rules::host_name(host->text));
    }
    if (reader.has("path")) {
      route.path = path_of(*reader.find("path"), route.hosts);
    }
    const auto found = std::ranges::find(options_.upstreams, name->text, &UpstreamOptions::name);
    if (found == options_.upstreams.end()) {
      std::vector<std::string_view> known;
      for (const UpstreamOptions& one : options_.upstreams) known.push_back(one.name);
      const std::string_view nearest = nearest_word(name->text, known);
      diagnostics_.error(*name, fmt::format("there is no upstream {}", sluice::quoted(name->text)),
                         nearest.empty() ? std::string{"define it under 'upstreams'"}
                                         : fmt::format("did you mean '{}'?", nearest));
      return;
    }
    route.upstream = static_cast<std::size_t>(found - options_.upstreams.begin());
    options_.routes.push_back(std::move(route));
  }

  void gateway(const Node& map) {
    const Reader reader{map, gateway_section(), checked_};
    GatewayOptions& options = options_;
    reader.take_size("max_body_size", options.max_body_size);
    reader.take("header_timeout", options.header_timeout);
    reader.take("keepalive_timeout", options.keepalive_timeout);
    reader.take("min_upload_rate", options.min_upload_rate);
    reader.take("upload_rate_interval", options.upload_rate_interval);
    reader.take("min_download_rate", options.min_download_rate);
    reader.take("download_rate_interval", options.download_rate_interval);
    reader.take("keepalive_requests", options.keepalive_requests);
    reader.take("max_connections_per_ip", options.max_connections_per_ip);
    take_head_limits(reader, options.head);
    options.trusts_request_ids = reader.flag("trust_request_ids", false);
    options.adds_via = reader.flag("via", true);
    options.forwarded_headers = forwarded_headers(reader.text("forwarded_headers", "x_forwarded"));
    if (const Node* node = reader.find("tracing")) {
      const Reader tracing{*node, tracing_section(), checked_};
      options.generate_traces = tracing.flag("generate", true);
      options.samples_traces = tracing.flag("sampled", true);
    }
    if (const Node* node = reader.find("tls")) config_.tls_files = tls(*node);
  }

  // A configured value stays, with a warning. The default is lowered to the available descriptors.
  void connections(const Node* gateway) {
    constexpr const char* kKey = "max_connections_per_worker";
    const Node* const node =
        gateway != nullptr ? Reader{*gateway, gateway_section(), checked_}.find(kKey) : nullptr;
    std::uint32_t& most = options_.max_connections_per_worker;
    const unsigned workers = written_.workers;
    const std::uint32_t room = connections_within(descriptors_max(), workers);
    if (node == nullptr) {
      config_.lacks_descriptors = room < most;
      most = std::min(most, room);
      return;
    }
    Reader{*gateway, gateway_section(), checked_}.take(kKey, most);
    if (most <= room) return;
    diagnostics_.warning(
        *node,
        fmt::format("{} connections of each of {} need {} file descriptors, and the process may "
                    "have {}",
                    most, counted(workers, "worker"), descriptors_for(most, workers),
                    descriptors_max()),
        fmt::format("{}, or lower max_connections_per_worker", kRaiseDescriptors));
  }

  [[nodiscard]] GatewayListener listener(const Node& node) {
    if (node.is_scalar()) {
      return {.endpoint = frontend::read_endpoint(node, "listen.gateway", files_)};
    }
    const Reader reader{node, listener_section(), checked_};
    GatewayListener listener;
    if (const Node* address = reader.find("address")) {
      listener.endpoint = frontend::read_endpoint(*address, "listen.gateway.address", files_);
    }
    listener.proxy_protocol = reader.flag("proxy_protocol", false);
    const bool is_path = listener.endpoint.kind == net::Endpoint::Kind::unix_path;
    if (listener.proxy_protocol && !is_path && context_.trusted_proxies.empty()) {
      diagnostics_.error(*reader.find("proxy_protocol"),
                         "no proxy is trusted to send PROXY headers",
                         "name the load balancers in clients.trusted_proxies");
    }
    return listener;
  }

  // None, with the mistake reported, if the headers contradict one another.
  void answers(const Node* gateway) {
    frontend::RateHeaderOptions options;
    const Node* headers = nullptr;
    if (gateway != nullptr) {
      headers = Reader{*gateway, gateway_section(), checked_}.find("ratelimit_headers");
    }
    if (headers != nullptr && headers->is_map()) {
      const Reader reader{*headers, rate_headers_section(), checked_};
      take_rate_headers(reader, options);
      take_partitions(reader, options);
    } else if (headers != nullptr) {
      options.families = families(config::items_of(*headers, checked_));
    }
    Parsed<frontend::RateHeaders> made = frontend::RateHeaders::create(options);
    if (!made) return diagnostics_.error(*headers, made.error());
    options_.answers = std::make_shared<const frontend::Answers>(*std::move(made));
  }

  // Warns of sections that no request reaches.
  void warn_of_unused() const {
    if (config_.listen.empty()) {
      for (const std::string_view key : {"upstreams", "routes", "gateway"}) {
        const Node* const node = file_.find(key);
        if (node == nullptr) continue;
        diagnostics_.warning(*node, fmt::format("'{}' has no effect: no gateway listens", key),
                             "write listen: {gateway: ADDRESS}, or leave it out");
      }
      return;
    }
    const Node* const upstreams = file_.find("upstreams");
    if (upstreams == nullptr || !diagnostics_.ok()) return;
    for (std::size_t i = 0; i < upstreams->size(); ++i) {
      const std::string& name = upstreams->key(i).text;
      const bool is_used = std::ranges::any_of(options_.routes, [&](const RouteOptions& route) {
        return options_.upstreams[route.upstream].name == name;
      });
      if (is_used) continue;
      diagnostics_.warning(upstreams->key(i),
                           fmt::format("the upstream '{}' has no effect: no route uses it", name),
                           "name it in a route, or leave it out");
    }
  }

  // The word `none` is an empty list.
  [[nodiscard]] static std::vector<frontend::Family> families(
      const std::vector<const Node*>& words) {
    std::vector<frontend::Family> all;
    for (const Node* one : words) {
      if (const auto family = frontend::family_named(one->text)) all.push_back(*family);
    }
    return all;
  }

  void take_rate_headers(const Reader& reader, frontend::RateHeaderOptions& options) const {
    if (reader.has("families")) options.families = families(reader.list("families"));
    const std::string_view when = reader.text("when", "always");
    options.when = when == "on_rejection"      ? frontend::Emission::on_rejection
                   : when == "below_threshold" ? frontend::Emission::below_threshold
                                               : frontend::Emission::always;
    reader.take("threshold_percent", options.threshold_percent);
    if (options.when != frontend::Emission::below_threshold && reader.has("threshold_percent")) {
      diagnostics_.error(*reader.find("threshold_percent"),
                         "headers are not written by how much is left",
                         "write when: below_threshold");
    }
    options.most_restrictive_only = reader.flag("most_restrictive_only", false);
    if (const Node* map = reader.find("rename")) {
      for (std::size_t i = 0; i < map->size(); ++i) {
        const std::string& name = map->value(i).text;
        options.renamed.emplace_back(map->key(i).text, name == "none" ? std::string{} : name);
      }
    }
  }

  void take_partitions(const Reader& reader, frontend::RateHeaderOptions& options) {
    const std::string file =
        files_.resolve(reader.find("partition_secret_file"),
                       "gateway.ratelimit_headers.partition_secret_file", context_.folder);
    if (file.empty()) return;
    config_.files.push_back(file);
    config::warn_of_exposure(file, diagnostics_);
    Parsed<std::string> secret = config::read_secret(file);
    if (!secret) {
      ++written_.file_errors;
      return files_.error(file, std::move(secret.error()), diagnostics_);
    }
    options.partition_secret = *std::move(secret);
  }

  [[nodiscard]] static ForwardedHeaders forwarded_headers(std::string_view word) noexcept {
    if (word == "forwarded") return ForwardedHeaders::forwarded;
    if (word == "both") return ForwardedHeaders::both;
    return word == "none" ? ForwardedHeaders::none : ForwardedHeaders::x_forwarded;
  }

  // Headers must fit one buffer, and another one when forwarded with the added headers.
  void take_head_limits(const Reader& reader, net::HeadLimits& head) const {
    constexpr std::size_t kRoom = std::size_t{30} << 10U;
    reader.take_size("max_request_line_size", head.start_line_bytes);
    reader.take_size("max_headers_size", head.header_bytes);
    reader.take("max_headers_count", head.headers);
    if (head.start_line_bytes + head.header_bytes <= kRoom) return;
    const Node* const node = reader.find("max_headers_size");
    diagnostics_.error(node != nullptr ? *node : *reader.find("max_request_line_size"),
                       "headers of that size do not fit",
                       "max_request_line_size and max_headers_size are at most 30KiB together");
  }

  [[nodiscard]] UpstreamOptions upstream(std::string name, const Node& map) {
    const Reader reader{map, upstream_section(), checked_};
    UpstreamOptions options;
    options.name = std::move(name);
    for (const Node* node : reader.list("servers")) {
      ServerOptions& server = options.servers.emplace_back();
      if (node->is_scalar()) {
        server.endpoint = net::Endpoint::parse(node->text).value();
        continue;
      }
      const Reader one{*node, server_section(), checked_};
      if (one.has("address")) server.endpoint = net::Endpoint::parse(one.text("address")).value();
      one.take("weight", server.weight);
    }
    const std::string_view balance = reader.text("balance", "round_robin");
    options.balance = balance == "client_hash"         ? Balance::client_hash
                      : balance == "least_connections" ? Balance::least_connections
                                                       : Balance::round_robin;
    if (const auto most = reader.number("keepalive_connections")) {
      options.keepalive_connections = static_cast<std::size_t>(*most);
    }
    reader.take("connect_timeout", options.connect_timeout);
    reader.take("send_timeout", options.send_timeout);
    reader.take("response_timeout", options.response_timeout);
    reader.take("read_timeout", options.read_timeout);
    reader.take("request_timeout", options.request_timeout);
    reader.take("keepalive_timeout", options.keepalive_timeout);
    reader.take("retries", options.retries);
    reader.take("max_consecutive_failures", options.max_consecutive_failures);
    reader.take("ejection_time", options.ejection_time);
    options.host_header = reader.text("host_header");
    if (const Node* node = reader.find("tls")) {
      options.tls = upstream_tls(options.name, *node);
      if (node->is_map()) {
        options.tls_server_name =
            Reader{*node, upstream_tls_section(), checked_}.text("server_name");
      }
    }
    return options;
  }

  [[nodiscard]] std::shared_ptr<const net::TlsClient> upstream_tls(const std::string& name,
                                                                   const Node& node) {
    net::TlsClientOptions options;
    if (node.is_map()) {
      const Reader reader{node, upstream_tls_section(), checked_};
      options.verify = reader.flag("verify", true);
      options.ca_file = files_.resolve(
          reader.find("ca_file"), fmt::format("upstreams.{}.tls.ca_file", name), context_.folder);
      if (!options.ca_file.empty()) config_.files.push_back(options.ca_file);
      if (!options.ca_file.empty() && !options.verify) {
        diagnostics_.warning(*reader.find("ca_file"),
                             "'ca_file' has no effect: certificates are not verified",
                             "leave it out, or write verify: true");
      }
    } else if (node.text != "true") {
      return nullptr;
    }
    auto client = net::TlsClient::load(options);
    if (!client) {
      ++written_.file_errors;
      files_.error(options.ca_file, std::move(client.error()), diagnostics_);
      return nullptr;
    }
    return *std::move(client);
  }

  [[nodiscard]] net::TlsServerOptions tls(const Node& map) {
    const Reader reader{map, tls_section(), checked_};
    net::TlsServerOptions tls;
    for (const Node* node : reader.list("certificates")) {
      const Reader one{*node, certificate_section(), checked_};
      tls.certificates.push_back(
          {.cert_file = files_.resolve(one.find("cert_file"), "gateway.tls.certificates.cert_file",
                                       context_.folder),
           .key_file = files_.resolve(one.find("key_file"), "gateway.tls.certificates.key_file",
                                      context_.folder)});
    }
    tls.client_ca_file = files_.resolve(reader.find("client_ca_file"), "gateway.tls.client_ca_file",
                                        context_.folder);
    if (reader.has("client_ca_file")) {
      const bool required = reader.text("client_auth", "optional") == "required";
      tls.client_auth = required ? net::ClientAuth::required : net::ClientAuth::optional;
    }
    for (const net::CertificateFiles& one : tls.certificates) {
      config_.files.push_back(one.cert_file);
      config_.files.push_back(one.key_file);
    }
    config_.files.push_back(tls.client_ca_file);
    return tls;
  }

  const frontend::Written& written_;
  const Reader& file_;
  const frontend::FileContext& context_;
  const Checked& checked_;
  config::NamedFiles& files_;
  Diagnostics& diagnostics_;
  GatewayConfig config_;
  GatewayOptions options_;
};

}  // namespace

std::uint32_t connections_within(std::uint64_t descriptors, unsigned workers) noexcept {
  const std::uint64_t left = descriptors - std::min(descriptors, kDescriptorsForAllElse);
  const std::uint64_t room = left / (kDescriptorsOfOne * workers);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room, 1, kMost));
}

std::optional<Diagnostic> GatewayConfig::start_warning() const {
  if (!lacks_descriptors || listen.empty()) return std::nullopt;
  return Diagnostic{
      .message = fmt::format("each worker takes at most {} instead of {} connections: the process "
                             "may have {} file descriptors",
                             options->max_connections_per_worker,
                             GatewayOptions{}.max_connections_per_worker, descriptors_max()),
      .remedy = fmt::format("{}, or write gateway: {{max_connections_per_worker: {}}}",
                            kRaiseDescriptors, options->max_connections_per_worker)};
}

bool GatewayConfig::listens_like(const FrontendConfig& other) const {
  return listeners == static_cast<const GatewayConfig&>(other).listeners;
}

const GatewayConfig& config_in(const frontend::FrontendConfigs& configs) {
  static const GatewayConfig kNone;
  for (const auto& config : configs) {
    if (const auto* own = dynamic_cast<const GatewayConfig*>(config.get())) return *own;
  }
  return kNone;
}

std::shared_ptr<const frontend::FrontendConfig> read_config(const frontend::Written& written,
                                                            Diagnostics& diagnostics) {
  return GatewayReader{written, diagnostics}.read();
}

}  // namespace sluice::gateway
