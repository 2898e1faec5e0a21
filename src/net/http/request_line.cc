#include "net/http/request_line.h"

#include "net/http/characters.h"
#include "net/http/host.h"
#include "net/http/scan.h"

#include <algorithm>

namespace sluice::net {
namespace {

// Longer than any that is registered.
constexpr std::size_t kMethodBytesMax = 32;
constexpr HttpFault kMethodTooLong{501, "the method is too long"};

// Methods are case-sensitive, but not for every server: a server that reads `Head` as HEAD would
// frame its response differently than we do.
bool frames_otherwise(std::string_view method) noexcept {
  constexpr std::string_view kMethods[] = {"HEAD", "CONNECT", "TRACE"};
  return std::ranges::any_of(kMethods, [method](std::string_view one) {
    return method.size() == one.size() && method != one && equals_ignoring_case(method, one);
  });
}

// ---- version ----------------------------------------------------------------------------------

bool is_version(std::string_view text) noexcept {
  return text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' &&
         is_digit(text[7]);
}

HttpFault parse_version(std::string_view text, RequestHead& head) noexcept {
  if (is_exactly(text, "HTTP/1.1") || is_exactly(text, "HTTP/1.0")) {
    head.minor_version = text.back() == '1' ? 1 : 0;
    return kNoFault;
  }
  if (is_version(text)) return {505, "a version other than HTTP/1.0 and HTTP/1.1"};
  return bad_request("the request line does not end in a version");
}

// ---- target -----------------------------------------------------------------------------------

// The length of "http://" or "https://" at the front; 0 if there is neither.
std::size_t scheme_size(std::string_view target) noexcept {
  constexpr std::string_view kSchemes[] = {"http://", "https://"};
  for (const std::string_view scheme : kSchemes) {
    if (equals_ignoring_case(target.substr(0, scheme.size()), scheme)) return scheme.size();
  }
  return 0;
}

HttpFault parse_absolute(RequestHead& head) noexcept {
  const std::size_t scheme = scheme_size(head.target);
  if (scheme == 0) return bad_request("the target is neither a path nor an address of http");
  const std::string_view rest = head.target.substr(scheme);
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  head.host = rest.substr(0, path);
  if (!is_host(head.host)) return bad_request("the host in the target is malformed");
  head.path_and_query = rest.substr(path);
  if (head.path_and_query.empty())
    head.path_and_query = is_exactly(head.method, "OPTIONS") ? "*" : "/";
  // It would have to be forwarded with a slash that is not in the buffer.
  if (head.path_and_query.front() == '?') return bad_request("the target has a query, but no path");
  return kNoFault;
}

HttpFault parse_authority(RequestHead& head) noexcept {
  if (!is_host_with_port(head.target)) return bad_request("CONNECT needs a host and a port");
  head.host = head.target;
  return kNoFault;
}

HttpFault parse_target(RequestHead& head) noexcept {
  head.path_and_query = head.target;
  if (is_exactly(head.method, "CONNECT")) return parse_authority(head);
  if (head.target.front() == '/') return kNoFault;
  if (!is_exactly(head.target, "*")) return parse_absolute(head);
  return is_exactly(head.method, "OPTIONS") ? kNoFault
                                            : bad_request("the target * is for OPTIONS alone");
}

const char* target_mistake(std::string_view rest, std::size_t end) noexcept {
  if (end == rest.size()) return "the request line has no version";
  if (end == 0) return "the request line has no target";
  return "a character that may not stand in a target";
}

}  // namespace

HttpFault long_request_line(std::string_view beginning) noexcept {
  if (find_not_a(token_character, beginning) > kMethodBytesMax) return kMethodTooLong;
  return {414, "the request line is too long"};
}

HttpFault parse_request_line(std::string_view line, RequestHead& head) noexcept {
  const std::size_t method = find_not_a(token_character, line);
  if (method == 0 || method == line.size() || line[method] != ' ') {
    return bad_request("the request line does not begin with a method");
  }
  if (method > kMethodBytesMax) return kMethodTooLong;
  if (frames_otherwise(line.substr(0, method))) {
    return {501, "HEAD, CONNECT and TRACE are written in capitals"};
  }
  const std::string_view rest = line.substr(method + 1);
  const std::size_t target = find_not_target(rest);
  if (target == 0 || target == rest.size() || rest[target] != ' ') {
    return bad_request(target_mistake(rest, target));
  }
  head.method = line.substr(0, method);
  head.target = rest.substr(0, target);
  // The version first: what follows is about requests of the versions we know.
  if (const HttpFault fault = parse_version(rest.substr(target + 1), head)) return fault;
  return parse_target(head);
}

}  // namespace sluice::net
