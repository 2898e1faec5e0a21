#include "frontend/gateway/forwarding.h"

#include "base/characters.h"
#include "net/http/characters.h"
#include "net/http/header_lists.h"

#include <array>
#include <utility>

namespace sluice::gateway {
namespace {

// Headers read or written here. All other proxy headers are only forwarded or dropped.
constexpr std::array<std::pair<std::string_view, ProxyWord>, 6> kWords{
    {{kForwardedFor, ProxyWord::forwarded_for},
     {kForwardedProto, ProxyWord::proto},
     {kForwardedHost, ProxyWord::host},
     {kForwardedPort, ProxyWord::port},
     {kForwarded, ProxyWord::forwarded},
     {kRequestId, ProxyWord::request_id}}};

void put_value(TextWriter& writer, std::string_view value) noexcept {
  if (net::is_token(value)) return writer.put(value);
  writer.put('"');
  for (const char c : value) {
    if (c == '"' || c == '\\') writer.put('\\');
    writer.put(c);
  }
  writer.put('"');
}

void put_node(TextWriter& writer, std::string_view address) noexcept {
  if (address.empty()) return writer.put("unknown");
  const bool is_v6 = address.find(':') != std::string_view::npos;
  writer.put(is_v6 ? "\"[" : "");
  writer.put(address);
  writer.put(is_v6 ? "]\"" : "");
}

}  // namespace

ProxyWord proxy_word(std::string_view name) noexcept {
  if (name.empty()) return ProxyWord::none;
  // Most headers start differently and need no closer look.
  const char first = lower(name.front());
  if (first != 'x' && first != 'f' && first != 't') return ProxyWord::none;
  if (!net::is_word_of_proxies(name)) return ProxyWord::none;
  for (const auto& [known, word] : kWords) {
    if (reads_as(name, known)) return word;
  }
  return ProxyWord::other;
}

void write_hop(TextWriter& writer, const ForwardedHop& hop) noexcept {
  writer.put("for=");
  put_node(writer, hop.address);
  if (!hop.host.empty()) {
    writer.put(";host=");
    put_value(writer, hop.host);
  }
  writer.put(";proto=");
  writer.put(hop.proto);
}

}  // namespace sluice::gateway
