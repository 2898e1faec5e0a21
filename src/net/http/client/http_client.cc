#include "net/http/client/http_client.h"

#include "net/http/head_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::net {
namespace {

constexpr std::size_t kRequestHeadBytes = 16384;

bool expects_body(std::string_view method) noexcept {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

// False: a header that is the client's to write.
bool write_own(HeadWriter& writer, const HttpHeaders& headers) noexcept {
  for (const auto& [name, value] : headers) {
    if (is_stated_by_writer(name) && !equals_ignoring_case(name, "host")) return false;
    writer.header(name, value);
  }
  return true;
}

// Nothing if it cannot be written as a request.
std::string request_bytes(const ClientRequest& request, const std::string& host) {
  std::array<char, kRequestHeadBytes> room;  // not cleared: only what is filled is read
  HeadWriter writer{room};
  writer.request_line(request.method, request.path);
  if (!has_header(request.headers, "host")) writer.header("host", host);
  if (!write_own(writer, request.headers)) return {};
  if (!request.body.empty() || expects_body(request.method)) {
    writer.header("content-length", request.body.size());
  }
  const Result<std::string_view> head = writer.finish();
  return head ? std::string{*head} + request.body : std::string{};
}

}  // namespace

Parsed<HttpOrigin> HttpOrigin::load(HttpUrl url, const TlsClientOptions& tls,
                                    std::string server_name) {
  HttpOrigin origin{.url = std::move(url), .tls = nullptr, .server_name = std::move(server_name)};
  if (!origin.url.is_tls) return origin;
  Parsed<std::shared_ptr<const TlsClient>> loaded = TlsClient::load(tls);
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  origin.tls = *std::move(loaded);
  return origin;
}

HttpClient::HttpClient(EventLoop& loop, Resolver& resolver, const HttpClientOptions& options)
    : loop_(loop), resolver_(resolver), options_(options) {}

HttpClient::~HttpClient() {
  while (HttpCall* const call = failed_.front()) call->detach();
}

// Connections are shared only where they lead to the same place in the same way.
ClientPool& HttpClient::pool_of(const HttpOrigin& origin) {
  std::string key = fmt::format("{} {} {} {}", origin.url.server(), origin.url.endpoint.text(),
                                origin.server_name, static_cast<const void*>(origin.tls.get()));
  std::unique_ptr<ClientPool>& pool = pools_[key];
  if (pool == nullptr) pool = std::make_unique<ClientPool>(*this, origin, std::move(key));
  return *pool;
}

void HttpClient::send(const HttpOrigin& origin, const ClientRequest& request, HttpCall& call) {
  call.cancel();
  call.client_ = this;
  call.method_ = request.method;
  call.bytes_ = request_bytes(request, origin.url.host);
  if (call.bytes_.empty()) {
    return fail_later(
        call, {.kind = HttpFailure::Kind::invalid_request,
               .message = fmt::format("{}: the request cannot be written", origin.url.server())});
  }
  if (origin.url.is_tls && origin.tls == nullptr) {
    return fail_later(call,
                      {.kind = HttpFailure::Kind::tls,
                       .message = fmt::format("{}: no CAs were loaded", origin.url.server())});
  }
  call.timeout_ = request.timeout.value_or(options_.request_timeout);
  if (!pool_of(origin).add(call)) {
    return fail_later(call, {.kind = HttpFailure::Kind::overloaded,
                             .message = fmt::format("{}: too many requests wait for a connection",
                                                    origin.url.server())});
  }
  loop_.set(call.deadline_, call.timeout_);
}

void HttpClient::fail_later(HttpCall& call, HttpFailure failure) {
  call.failure_ = std::move(failure);
  failed_.push_back(call);
  loop_.run_soon(call.report_);
}

}  // namespace sluice::net
