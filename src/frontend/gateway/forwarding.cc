#include "frontend/gateway/forwarding.h"

#include "base/characters.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::gateway {
namespace {

constexpr std::string_view kPrefix = "x-forwarded-";

// The last two name another path than the one that was limited and routed by.
constexpr std::array<std::pair<std::string_view, ProxyWord>, 12> kWords{
    {{kForwardedFor, ProxyWord::forwarded_for},
     {kForwardedProto, ProxyWord::proto},
     {kForwardedHost, ProxyWord::host},
     {kForwardedPort, ProxyWord::port},
     {kForwarded, ProxyWord::forwarded},
     {kRequestId, ProxyWord::request_id},
     {"x-real-ip", ProxyWord::other},
     {"x-client-ip", ProxyWord::other},
     {"x-cluster-client-ip", ProxyWord::other},
     {"true-client-ip", ProxyWord::other},
     {"x-original-url", ProxyWord::other},
     {"x-rewrite-url", ProxyWord::other}}};

bool reads_as(std::string_view name, std::string_view known) noexcept {
  return std::ranges::equal(name, known,
                            [](char a, char b) { return a == '_' ? b == '-' : lower(a) == b; });
}

bool is_token(std::string_view text) noexcept {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

void put_value(TextWriter& writer, std::string_view value) noexcept {
  if (is_token(value)) return writer.put(value);
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
  // Most headers begin otherwise, and need no closer look.
  const char first = lower(name.front());
  if (first != 'x' && first != 'f' && first != 't') return ProxyWord::none;
  for (const auto& [known, word] : kWords) {
    if (reads_as(name, known)) return word;
  }
  // -User, -Prefix, -Ssl, -Client-Cert: whatever begins so is for proxies to say.
  return reads_as(name.substr(0, kPrefix.size()), kPrefix) ? ProxyWord::other : ProxyWord::none;
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
