// The headers of a request as sent to a server.
#include "base/text.h"
#include "engine/decider.h"
#include "frontend/gateway/connection.h"
#include "frontend/gateway/gateway.h"
#include "identity/headers.h"
#include "net/http/header_lists.h"

#include <algorithm>
#include <optional>
#include <span>

namespace sluice::gateway {
namespace {

constexpr std::string_view kMaxForwards = "max-forwards";

// Headers that the gateway writes itself and that replace all received ones of that name.
bool is_written_here(ProxyWord word, ForwardedHeaders which) noexcept {
  switch (word) {
    case ProxyWord::request_id: return true;
    case ProxyWord::forwarded_for: return writes_x_forwarded(which);
    case ProxyWord::forwarded: return writes_forwarded(which);
    default: return false;
  }
}

bool has_underscore(std::string_view name) noexcept {
  return name.find('_') != std::string_view::npos;
}

// Spelled differently from the configured name, so that servers may confuse the two.
bool imitates_one_of(std::span<const std::string> names, std::string_view name) noexcept {
  if (names.empty() || !has_underscore(name)) return false;
  return std::ranges::any_of(names, [name](const std::string& one) {
    return reads_as(name, one) && !equals_ignoring_case(name, one);
  });
}

// Separates the next element from earlier ones.
void begin_element(TextWriter& list) noexcept {
  if (list.size() > 0) list.put(", ");
}

void leave_out(net::RequestHead& head, std::string_view lower_name) noexcept {
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    if (equals_ignoring_case(head.headers[i].name, lower_name)) head.restated.add(i);
  }
}

// The header with the client's address is forwarded as the gateway trusts it: from a trusted proxy,
// in exactly that spelling, and once. Otherwise it is the client's own claim. Returns how many
// lines this newly removes.
std::size_t leave_out_unbelieved(net::RequestHead& head, std::string_view address_header,
                                 bool through_trusted) noexcept {
  if (address_header.empty()) return 0;
  std::size_t lines = 0;
  for (const HeaderView& line : head.headers) lines += identity::is_named(line, address_header);
  const bool is_believed = through_trusted && lines == 1;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < head.headers.size(); ++i) {
    const HeaderView& line = head.headers[i];
    if (!reads_as(line.name, address_header) || head.restated.contains(i)) continue;
    if (is_believed && identity::is_named(line, address_header)) continue;
    head.restated.add(i);
    ++left_out;
  }
  return left_out;
}

}  // namespace

std::optional<std::uint64_t> max_forwards(std::span<const HeaderView> headers) noexcept {
  for (const HeaderView& header : headers) {
    if (equals_ignoring_case(header.name, kMaxForwards)) return parse_number(header.value);
  }
  return std::nullopt;
}

// Rebuilt from the parsed request, never the received bytes.
bool Connection::write_request_head() {
  Exchange& exchange = *exchange_;
  net::RequestHead passed = head();
  ProxyWords trusted;
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < passed.headers.size(); ++i) {
    const std::string_view name = passed.headers[i].name;
    const ProxyWord word = proxy_word(name);
    if (word == ProxyWord::none) {
      if (!imitates_one_of(options().identifying_headers, name)) continue;
      passed.restated.add(i);
      ++dropped;
      continue;
    }
    const bool may_pass = exchange.through_trusted && !has_underscore(name);
    if (may_pass) trusted.add(word);
    if (!may_pass || is_written_here(word, options().forwarded_headers)) passed.restated.add(i);
    // Every request gets a generated id or keeps its own, whether or not the client is trusted.
    dropped += !may_pass && (word != ProxyWord::request_id || has_underscore(name)) ? 1U : 0U;
  }
  dropped += leave_out_unbelieved(passed, options().client_ip_header, exchange.through_trusted);
  gateway_.counts_.headers_dropped += dropped;
  if (options().generate_traces) start_trace(passed);
  const UpstreamOptions& upstream = exchange.group->options();
  if (!upstream.host_header.empty()) passed.host = upstream.host_header;
  if (passed.host.empty()) passed.host = upstream.name;  // HTTP/1.0 may omit it, servers need it
  std::optional<std::uint64_t> hops;
  if (passed.method == "OPTIONS") hops = max_forwards(passed.headers);
  if (hops) leave_out(passed, kMaxForwards);

  if (exchange.request_buffer == nullptr) exchange.request_buffer = gateway_.buffers_.take();
  net::HeadWriter writer{{exchange.request_buffer.get(), BufferPool::kBytes}};
  net::write_request(writer, passed);
  write_client(writer, trusted);
  writer.header(kRequestId, {exchange.request_id.data(), exchange.request_id_bytes});
  if (exchange.has_trace) {
    writer.header(frontend::kTraceParent, {exchange.trace.data(), exchange.trace.size()});
  }
  if (hops) writer.header(kMaxForwards, *hops - 1);
  if (options().adds_via) writer.header("via", via(passed));
  const Result<std::string_view> written = writer.finish();
  if (!written) return false;
  exchange.request_head = *written;
  return true;
}

// Describes the client. The gateway keeps the headers of trusted proxies and continues their lists.
void Connection::write_client(net::HeadWriter& writer, const ProxyWords& trusted) {
  const ForwardedHeaders which = options().forwarded_headers;
  if (writes_x_forwarded(which)) {
    const std::string_view clients = forwarded_for(trusted.has(ProxyWord::forwarded_for));
    if (!clients.empty()) writer.header(kForwardedFor, clients);
    if (!trusted.has(ProxyWord::proto)) writer.header(kForwardedProto, scheme());
    if (!trusted.has(ProxyWord::host) && !head().host.empty()) {
      writer.header(kForwardedHost, head().host);
    }
    if (!trusted.has(ProxyWord::port) && !port_text_.empty()) {
      writer.header(kForwardedPort, port_text_);
    }
  }
  if (writes_forwarded(which)) {
    writer.header(kForwarded, forwarded(trusted.has(ProxyWord::forwarded)));
  }
}

std::string_view Connection::scheme() const noexcept {
  return stream_.tls() != nullptr ? "https" : "http";
}

// A client on a Unix socket has no address.
std::string_view Connection::forwarded_for(bool continued) {
  if (!continued) return peer_.is_local ? std::string_view{} : peer_text_;
  TextWriter list = joined(kForwardedFor);
  if (peer_.is_local) return list.text();
  begin_element(list);
  list.put(peer_text_);
  return list.text();
}

std::string_view Connection::forwarded(bool continued) {
  TextWriter list = joined(continued ? kForwarded : std::string_view{});
  begin_element(list);
  write_hop(list, {.address = peer_.is_local ? std::string_view{} : peer_text_,
                   .host = head().host,
                   .proto = scheme()});
  return list.text();
}

// Joins all values of the header, to be continued. Uses the response's buffer, which is still free
// and larger than the largest headers.
TextWriter Connection::joined(std::string_view name) {
  Exchange& exchange = *exchange_;
  if (exchange.answer_buffer == nullptr) exchange.answer_buffer = gateway_.buffers_.take();
  TextWriter list{{exchange.answer_buffer.get(), BufferPool::kBytes}};
  for (const HeaderView& header : head().headers) {
    if (!equals_ignoring_case(header.name, name) || header.value.empty()) continue;
    begin_element(list);
    list.put(header.value);
  }
  return list;
}

// A malformed context counts as none, so tracestate is removed too.
void Connection::start_trace(net::RequestHead& passed) {
  Exchange& exchange = *exchange_;
  if (!frontend::trace_id_of(passed.headers).empty()) return;
  leave_out(passed, frontend::kTraceParent);
  leave_out(passed, frontend::kTraceState);
  Random& random = gateway_.random_;
  exchange.trace = frontend::write_traceparent({.high = random() | 1U,
                                                .low = random(),
                                                .parent = random() | 1U,
                                                .sampled = options().samples_traces});
  exchange.has_trace = true;
}

}  // namespace sluice::gateway
