#include "frontend/log_secrets.h"

#include "base/characters.h"
#include "identity/fields.h"
#include <sluice/request.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace sluice::frontend {
namespace {

using identity::take_decoded;

void make_lower(std::vector<std::string>& names) {
  for (std::string& name : names) std::ranges::transform(name, name.begin(), lower);
}

bool is_one_of(const std::vector<std::string>& names, std::string_view name) noexcept {
  return std::ranges::any_of(
      names, [&](const std::string& one) { return equals_ignoring_case(one, name); });
}

// token[] and token[0] are lists named token.
bool is_same_field(std::string_view encoded, std::string_view lower_name) noexcept {
  for (const char wanted : lower_name) {
    if (encoded.empty() || lower(take_decoded(encoded)) != wanted) return false;
  }
  return encoded.empty() || take_decoded(encoded) == '[';
}

// How much of a URL is "scheme://user:password@", beginning behind the slashes.
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

std::vector<std::string> usual_secret_fields() {
  return {"access_token",
          "api-key",
          "api_key",
          "apikey",
          "auth",
          "client_secret",
          "code",
          "id_token",
          "jwt",
          "key",
          "passwd",
          "password",
          "pwd",
          "refresh_token",
          "secret",
          "sig",
          "signature",
          "token",
          "x-amz-security-token",
          "x-amz-signature"};
}

// A session is worth as much as the password that began it.
std::vector<std::string> usual_secret_cookies() {
  std::vector<std::string> names = usual_secret_fields();
  for (const char* const name :
       {"asp.net_sessionid", "connect.sid", "csrftoken", "jsessionid", "phpsessid",
        "remember_token", "session", "session_id", "sessionid", "sid", "xsrf-token"}) {
    names.emplace_back(name);
  }
  return names;
}

// Also what is a secret elsewhere, as headers spell it: api_key is Api-Key, or X-Api-Key.
std::vector<std::string> usual_secret_headers() {
  std::vector<std::string> names{
      "authorization",       "cookie",        "ocp-apim-subscription-key",
      "proxy-authorization", "set-cookie",    "x-auth-token",
      "x-csrf-token",        "x-goog-api-key"};
  for (std::string& name : usual_secret_cookies()) {
    std::ranges::replace(name, '_', '-');
    names.push_back("x-" + name);
    names.push_back(std::move(name));
  }
  return names;
}

LogSecrets::LogSecrets(std::vector<std::string> query_fields, std::vector<std::string> headers,
                       std::vector<std::string> cookies)
    : fields_(std::move(query_fields)), headers_(std::move(headers)), cookies_(std::move(cookies)) {
  make_lower(fields_);
  make_lower(headers_);
  make_lower(cookies_);
}

bool LogSecrets::is_secret_header(std::string_view name) const noexcept {
  return is_one_of(headers_, name);
}

bool LogSecrets::is_secret_cookie(std::string_view name) const noexcept {
  return is_one_of(cookies_, name);
}

bool LogSecrets::is_secret_field(std::string_view encoded_name) const noexcept {
  return std::ranges::any_of(
      fields_, [&](const std::string& secret) { return is_same_field(encoded_name, secret); });
}

// Some servers take a semicolon for a separator, most take it for a part of the value. So a name
// behind one may be a secret's, and what follows one may still belong to a secret.
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
