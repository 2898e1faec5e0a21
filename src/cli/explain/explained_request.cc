#include "cli/explain/explained_request.h"

#include "base/text.h"
#include "cli/client_ip.h"

#include <fmt/format.h>

#include <string_view>

namespace sluice::cli {
namespace {

// A path, a whole URL, or * for the server itself. The rest is the worker's affair.
bool is_target(std::string_view text) noexcept {
  return text.starts_with('/') || text == "*" || text.find("://") != std::string_view::npos;
}

Parsed<std::pair<std::string, std::string>> parse_header(const std::string& header) {
  const std::size_t colon = header.find(':');
  if (colon == std::string::npos || colon == 0) {
    return mistake(fmt::format("{} is no header", sluice::quoted(header)), "write 'name: value'");
  }
  std::string value = header.substr(colon + 1);
  value.erase(0, value.find_first_not_of(" \t"));
  return std::pair{header.substr(0, colon), std::move(value)};
}

}  // namespace

Parsed<std::vector<DescriptorEntry>> parse_entries(std::span<const std::string> words) {
  std::vector<DescriptorEntry> entries;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return mistake(fmt::format("{} is no entry of a descriptor", sluice::quoted(word)),
                     "write key=value, as in tenant=gold");
    }
    const std::string_view text = word;
    entries.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return entries;
}

ExplainedRequest::Views ExplainedRequest::views() const {
  Views views;
  for (const auto& [name, value] : headers) views.headers.push_back({name, value});
  for (const auto& [key, value] : descriptor) views.descriptor.push_back({key, value});
  return views;
}

RequestView ExplainedRequest::view(const Views& views) const noexcept {
  return {.method = method,
          .host = host,
          .target = target,
          .headers = views.headers,
          .peer = ip,
          .tls_subject = {},
          .domain = domain,
          .descriptor = views.descriptor};
}

Parsed<ExplainedRequest> ExplainedRequest::parse(const ExplainOptions& options) {
  ExplainedRequest request;
  request.host = options.host;
  request.domain = options.domain;
  const std::size_t blank = options.request.find(' ');
  if (blank == std::string::npos) {
    request.target = options.request;
  } else {
    request.method = options.request.substr(0, blank);
    request.target = options.request.substr(blank + 1);
  }
  if (!is_target(request.target)) {
    return mistake(fmt::format("{} is no request", sluice::quoted(options.request)),
                   "write a method and a path, as in 'GET /v1/users'");
  }
  if (request.target.find(' ') != std::string::npos) {
    return mistake(fmt::format("there is a blank in {}", sluice::quoted(request.target)),
                   "write %20 for it, and leave out HTTP/1.1");
  }
  for (const std::string& header : options.headers) {
    auto parsed = parse_header(header);
    if (!parsed) return tl::unexpected(std::move(parsed.error()));
    request.headers.push_back(*std::move(parsed));
  }
  const auto ip = parse_client_ip(options.ip);
  if (!ip) {
    return mistake(fmt::format("{} is no address", sluice::quoted(options.ip)),
                   "write 192.0.2.1, 2001:db8::1, or unix for a Unix socket");
  }
  request.ip = *ip;
  if (options.descriptors.size() > 1) {
    return mistake("a request has one descriptor", "give --descriptor once, with all its entries");
  }
  for (const std::vector<std::string>& words : options.descriptors) {
    const auto entries = parse_entries(words);
    if (!entries) return tl::unexpected(entries.error());
    for (const auto& [key, value] : *entries) request.descriptor.emplace_back(key, value);
  }
  return request;
}

}  // namespace sluice::cli
