#include "frontend/access_log/log_secrets.h"

#include "base/characters.h"
#include "identity/fields.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::frontend {
namespace {

using identity::take_decoded;

constexpr bool is_separator(char c) noexcept { return c == '-' || c == '_' || c == '.'; }

// A name in the spelling for comparison: accessToken, Access-Token and access_token are
// accesstoken.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (!is_separator(c)) plain += lower(c);
  }
  return plain;
}

void make_plain(std::vector<std::string>& names) {
  for (std::string& name : names) name = plain_name(name);
  std::erase(names, std::string{});  // would match every name of separators
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
}

// Whether the sent name is among the plain names. In a query it is decoded; token[] and token[0]
// are lists named token. A name longer than any secret's is cut, and then matches by its prefix:
// hiding too much does no harm.
enum class Written : std::uint8_t { as_it_is, in_query };
bool is_secret_name(const std::vector<std::string>& names, std::string_view sent,
                    Written written) noexcept {
  std::array<char, 128> room;
  std::size_t size = 0;
  while (!sent.empty() && size < room.size()) {
    char c = sent.front();
    if (written == Written::in_query) {
      c = take_decoded(sent);
      if (c == '[') break;
    } else {
      sent.remove_prefix(1);
    }
    if (!is_separator(c)) room[size++] = lower(c);
  }
  const std::string_view name{room.data(), size};
  const auto found = std::ranges::lower_bound(names, name);
  if (found == names.end()) return false;
  return *found == name || (size == room.size() && found->starts_with(name));
}

// The part "user:password@" of "scheme://user:password@", from behind the slashes.
struct UserPart {
  std::size_t begin = 0;
  std::size_t size = 0;  // with the @
};

UserPart user_part(std::string_view url) noexcept {
  constexpr std::string_view kSlashes = "://";
  const std::size_t path = url.find_first_of("/?");
  const std::size_t slashes = url.find(kSlashes);
  if (slashes == std::string_view::npos || slashes > path) return {};
  const std::size_t begin = slashes + kSlashes.size();
  const std::string_view authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? UserPart{} : UserPart{.begin = begin, .size = at + 1};
}

}  // namespace

// In any case, with any separators, and with x- before them. A session is worth as much as the
// password that began it.
std::vector<std::string> usual_secret_fields() {
  std::vector<std::string> names{
      // keys
      "access_key", "api_key", "api_secret", "app_key", "app_secret", "auth_key", "client_secret",
      "key", "private_key", "secret", "secret_access_key", "secret_key", "subscription_key",
      // tokens
      "access_token", "api_token", "assertion", "auth", "auth_token", "authorization", "bearer",
      "bearer_token", "client_assertion", "code", "code_verifier", "credential", "credentials",
      "csrf", "csrf_token", "id_token", "jwt", "oauth_signature", "oauth_token", "oauth_verifier",
      "otp", "private_token", "refresh_token", "remember_token", "samlresponse", "ticket", "token",
      "user_token", "xsrf_token",
      // passwords
      "pass", "passcode", "passphrase", "passwd", "password", "pin", "pwd",
      // sessions
      "asp.net_sessionid", "connect.sid", "jsessionid", "phpsessid", "sess", "sessid", "session",
      "session_id", "session_key", "session_token", "sid",
      // signed URLs
      "hmac", "sig", "signature", "x-amz-security-token", "x-amz-signature", "x-goog-signature"};
  const std::size_t count = names.size();
  for (std::size_t i = 0; i < count; ++i) names.push_back("x-" + names[i]);
  return names;
}

// Browsers define two prefixes that are part of a cookie's name.
std::vector<std::string> usual_secret_cookies() {
  std::vector<std::string> names = usual_secret_fields();
  const std::size_t count = names.size();
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back("__Host-" + names[i]);
    names.push_back("__Secure-" + names[i]);
  }
  return names;
}

std::vector<std::string> usual_secret_headers() {
  std::vector<std::string> names = usual_secret_fields();
  for (const char* const name : {"cookie", "ocp-apim-subscription-key", "proxy-authorization",
                                 "set-cookie", "x-goog-api-key"}) {
    names.emplace_back(name);
  }
  return names;
}

LogSecrets::LogSecrets(std::vector<std::string> query_fields, std::vector<std::string> headers,
                       std::vector<std::string> cookies)
    : fields_(std::move(query_fields)), headers_(std::move(headers)), cookies_(std::move(cookies)) {
  make_plain(fields_);
  make_plain(headers_);
  make_plain(cookies_);
}

bool LogSecrets::is_secret_header(std::string_view name) const noexcept {
  return is_secret_name(headers_, name, Written::as_it_is);
}

bool LogSecrets::is_secret_cookie(std::string_view name) const noexcept {
  return is_secret_name(cookies_, name, Written::as_it_is);
}

bool LogSecrets::is_secret_field(std::string_view encoded_name) const noexcept {
  return is_secret_name(fields_, encoded_name, Written::in_query);
}

// Some servers take a semicolon for a separator, most for a part of the value. So a name after it
// may be a secret's, and text after it may still belong to a secret.
void LogSecrets::write_query(TextWriter& writer, std::string_view query) const noexcept {
  bool is_in_secret = false;
  while (true) {
    const std::size_t end = std::min(query.find_first_of("&;"), query.size());
    const std::string_view field = query.substr(0, end);
    const std::size_t equals = field.find('=');
    const bool begins_secret =
        equals != std::string_view::npos && is_secret_field(field.substr(0, equals));
    if (begins_secret) {
      writer.put(field.substr(0, equals + 1));
      writer.put(kHidden);
    } else {
      writer.put(is_in_secret ? kHidden : field);
    }
    is_in_secret |= begins_secret;
    if (end == query.size()) return;
    if (query[end] == '&') is_in_secret = false;
    writer.put(query[end]);
    query.remove_prefix(end + 1);
  }
}

void LogSecrets::write_target(TextWriter& writer, std::string_view target) const noexcept {
  const UserPart user = user_part(target);
  if (user.size > 0) {
    writer.put(target.substr(0, user.begin));
    writer.put(kHidden);
    writer.put('@');
    target.remove_prefix(user.begin + user.size);
  }
  const std::size_t question = target.find('?');
  writer.put(target.substr(0, question));
  if (question == std::string_view::npos) return;
  writer.put('?');
  write_query(writer, target.substr(question + 1));
}

}  // namespace sluice::frontend
