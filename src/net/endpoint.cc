#include "net/endpoint.h"

#include "base/characters.h"
#include "base/text.h"
#include "net/socket_address.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace sluice::net {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kSchemeEnd = "://";
constexpr std::size_t kNameMax = 253;  // RFC 1123, as text
constexpr std::size_t kLabelMax = 63;

tl::unexpected<Diagnostic> no_endpoint(std::string_view text, std::string remedy) {
  return mistake("not an address to listen on or to connect to: " + quoted(text),
                 std::move(remedy));
}

std::optional<std::uint16_t> parse_port(std::string_view digits) noexcept {
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const std::optional<std::uint64_t> number = parse_number(digits);
  if (!number || *number > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

// Underscores occur in the names of containers and services.
bool is_label(std::string_view label) noexcept {
  return !label.empty() && label.size() <= kLabelMax && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '-' || c == '_';
         });
}

// The last label of a name is never a number: 1.2.3.400 is a mistaken address.
bool is_host_name(std::string_view name) noexcept {
  if (name.size() > kNameMax) return false;
  std::string_view label;
  for (std::size_t begin = 0; begin <= name.size(); begin += label.size() + 1) {
    label = name.substr(begin, name.find('.', begin) - begin);
    if (!is_label(label)) return false;
  }
  return !std::all_of(label.begin(), label.end(), is_digit);
}

std::string lower_case(std::string_view text) {
  std::string result{text};
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

// In capitals, too: names are written in lower case, and a host called Unix would come out as this.
bool is_unix(std::string_view text) { return lower_case(text.substr(0, kUnix.size())) == kUnix; }

// What people copy from a browser. Only what would be understood is suggested.
tl::unexpected<Diagnostic> url_is_no_endpoint(std::string_view text, std::size_t scheme_end) {
  const std::string scheme = lower_case(text.substr(0, scheme_end));
  std::string_view host = text.substr(scheme_end + kSchemeEnd.size());
  host = host.substr(0, host.find_first_of("/?#"));
  std::string plain{host};
  if (!Endpoint::parse(plain)) plain += scheme == "https" ? ":443" : ":80";
  if (!Endpoint::parse(plain)) plain = "HOST:PORT";
  std::string remedy = "leave out " + scheme + "://, and write " + plain;
  if (scheme == "https") remedy += "; 'tls' beside it says that TLS is spoken";
  return no_endpoint(text, std::move(remedy));
}

Parsed<Endpoint> parse_path(std::string_view text, std::string_view path) {
  if (!path.starts_with('/'))
    return no_endpoint(text, "give the whole path, as in unix:/run/sluice");
  if (!SocketAddress::of_path(path)) {
    return no_endpoint(text, "the path of a Unix socket has at most 107 bytes");
  }
  return Endpoint::of_path(std::string{path});
}

Parsed<Endpoint> parse_v6(std::string_view text, std::string_view host, std::uint16_t port) {
  const std::string_view inside = host.substr(1, host.size() - 2);
  const std::optional<IpAddress> address = IpAddress::parse(inside);
  if (!address || inside.find(':') == std::string_view::npos) {
    return no_endpoint(text,
                       "between brackets belongs an IPv6 address without a zone, as in [::1]:80");
  }
  return Endpoint::of(*address, port);
}

Parsed<Endpoint> parse_host(std::string_view text, std::string_view host, std::uint16_t port) {
  if (host.empty()) return Endpoint{.port = port};
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    return parse_v6(text, host, port);
  }
  if (host.find(':') != std::string_view::npos) {
    return no_endpoint(text, "an IPv6 address stands in brackets, as in [::1]:80");
  }
  if (const auto address = IpAddress::parse(host)) return Endpoint::of(*address, port);
  if (!is_host_name(host)) return no_endpoint(text, "give HOST:PORT, as in 127.0.0.1:8080");
  return Endpoint{.kind = Endpoint::Kind::name, .name = lower_case(host), .port = port};
}

}  // namespace

Parsed<Endpoint> Endpoint::parse(std::string_view text) {
  if (is_unix(text)) return parse_path(text, text.substr(kUnix.size()));
  if (const auto scheme = text.find(kSchemeEnd); scheme != std::string_view::npos) {
    return url_is_no_endpoint(text, scheme);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    if (parse_port(text)) {
      return no_endpoint(text, "write 127.0.0.1:" + std::string{text} +
                                   ", or :" + std::string{text} + " for all addresses");
    }
    return no_endpoint(text, "give a port, too, as in 127.0.0.1:8080");
  }
  const std::optional<std::uint16_t> port = parse_port(text.substr(colon + 1));
  if (!port) return no_endpoint(text, "a port is a number from 0 to 65535");
  return parse_host(text, text.substr(0, colon), *port);
}

Endpoint Endpoint::of(const IpAddress& address, std::uint16_t port) {
  return {.kind = Kind::address, .address = address, .port = port};
}

Endpoint Endpoint::of_path(std::string path) {
  return {.kind = Kind::unix_path, .name = std::move(path)};
}

std::string Endpoint::text() const {
  std::string text;
  switch (kind) {
    case Kind::unix_path: return text.append(kUnix).append(name);
    case Kind::any: break;
    case Kind::name: text = name; break;
    case Kind::address:
      text = address.text();
      if (!address.is_v4) text.insert(0, 1, '[').push_back(']');
      break;
  }
  return text.append(1, ':').append(std::to_string(port));
}

}  // namespace sluice::net
