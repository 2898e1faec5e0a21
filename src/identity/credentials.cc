#include "identity/credentials.h"

#include "base/base64.h"
#include "base/characters.h"
#include "identity/fields.h"
#include "identity/headers.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice::identity {
namespace {

constexpr std::string_view kTwoAuthorizations = "more than one Authorization header";
constexpr std::string_view kTwoTokens = "more than one value in the Authorization header";
constexpr std::string_view kUnreadable = "an Authorization header that cannot be read";
constexpr std::string_view kTwoKeys = "different API keys";
constexpr std::string_view kListOfKeys = "a list of API keys in one header";

// How a place writes a value.
enum class Spelling : std::uint8_t {
  plain,    // as it is: headers
  percent,  // cookies, which many servers decode
  form,     // queries: a + is a space, too
};

char take_spelled(std::string_view& text, Spelling spelling) noexcept {
  if (spelling == Spelling::form) return take_decoded(text);
  const std::optional<char> decoded =
      spelling == Spelling::percent ? decode_percent(text) : std::nullopt;
  const char c = decoded.value_or(text.front());
  text.remove_prefix(decoded ? 3 : 1);
  return c;
}

bool is_spelled(std::string_view sent, Spelling spelling, std::string_view plain) noexcept {
  for (const char c : plain) {
    if (sent.empty() || take_spelled(sent, spelling) != c) return false;
  }
  return sent.empty();
}

// Servers differ in whether the quotes around a cookie belong to its value.
std::string_view without_quotes(std::string_view value) noexcept {
  const bool is_quoted = value.size() > 1 && value.front() == '"' && value.back() == '"';
  return is_quoted ? trimmed(value.substr(1, value.size() - 2)) : value;
}

bool is_one(const std::vector<std::string>& names, std::string_view name) noexcept {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

// The credentials found so far.
class CredentialReader::Gathered {
 public:
  explicit Gathered(std::span<char, kCredentialScratchBytes> scratch) noexcept
      : decoded_(scratch.first<kApiKeyBytesMax + 1>()),
        basic_(scratch.subspan<kApiKeyBytesMax + 1>()) {}

  void add_key(std::string_view sent, Spelling spelling) noexcept {
    if (sent.empty()) return;
    if (!all_.api_key.empty()) {
      if (!is_spelled(sent, spelling, all_.api_key)) confuse(kTwoKeys);
      return;
    }
    const std::string_view special = spelling == Spelling::form ? "%+" : "%";
    const bool is_plain =
        spelling == Spelling::plain || sent.find_first_of(special) == std::string_view::npos;
    all_.api_key = is_plain ? sent : decode(sent, spelling);
  }

  void add_authorization(std::string_view value) noexcept {
    if (has_authorization_) confuse(kTwoAuthorizations);
    has_authorization_ = true;
    authorization_ = value;
  }

  void set_token(std::string_view token) noexcept { all_.token = token; }
  void confuse(std::string_view why) noexcept {
    if (all_.ambiguous.empty()) all_.ambiguous = why;
  }

  [[nodiscard]] std::string_view authorization() const noexcept { return authorization_; }
  [[nodiscard]] std::span<char> room_for_basic() const noexcept { return basic_; }
  [[nodiscard]] const Credentials& all() const noexcept { return all_; }

 private:
  // Cut where it is longer than any key, which then is unknown.
  std::string_view decode(std::string_view sent, Spelling spelling) noexcept {
    std::size_t size = 0;
    while (!sent.empty() && size < decoded_.size()) decoded_[size++] = take_spelled(sent, spelling);
    return {decoded_.data(), size};
  }

  Credentials all_;
  std::string_view authorization_;
  bool has_authorization_ = false;
  std::span<char> decoded_;
  std::span<char> basic_;
};

CredentialReader::CredentialReader(Places places) : tokens_(places.tokens) {
  for (ApiKeySource& source : places.api_keys) {
    switch (source.kind) {
      case ApiKeySource::Kind::header: headers_.push_back(std::move(source.name)); break;
      case ApiKeySource::Kind::query: queries_.push_back(std::move(source.name)); break;
      case ApiKeySource::Kind::cookie: cookies_.push_back(std::move(source.name)); break;
      case ApiKeySource::Kind::basic: basic_ = true; break;
    }
  }
  reads_headers_ = tokens_ || basic_ || !headers_.empty() || !cookies_.empty();
}

Credentials CredentialReader::read(
    const RequestView& request, std::span<char, kCredentialScratchBytes> scratch) const noexcept {
  Gathered found{scratch};
  if (reads_headers_) {
    for (const HeaderView& line : request.headers) read_header(line, found);
    read_authorization(found.authorization(), found);
  }
  const std::size_t question = queries_.empty() ? std::string_view::npos : request.target.find('?');
  if (question != std::string_view::npos) read_query(request.target.substr(question + 1), found);
  return found.all();
}

void CredentialReader::read_header(const HeaderView& line, Gathered& found) const noexcept {
  if ((tokens_ || basic_) && is_named(line, "authorization")) {
    found.add_authorization(trimmed(line.value));
  }
  for (const std::string& name : headers_) {
    if (!reads_as(line.name, name)) continue;
    if (line.value.find(',') != std::string_view::npos) found.confuse(kListOfKeys);
    found.add_key(trimmed(line.value), Spelling::plain);
  }
  if (!cookies_.empty() && is_named(line, "cookie")) read_cookies(line.value, found);
}

void CredentialReader::read_cookies(std::string_view line, Gathered& found) const noexcept {
  while (const std::optional<Field> cookie = take_cookie(line)) {
    if (is_one(cookies_, cookie->name)) {
      found.add_key(without_quotes(cookie->value), Spelling::percent);
    }
  }
}

void CredentialReader::read_query(std::string_view query, Gathered& found) const noexcept {
  while (const std::optional<Field> field = take_query_field(query)) {
    const bool is_key = std::ranges::any_of(
        queries_, [&](const std::string& name) { return decodes_to(field->name, name); });
    if (is_key) found.add_key(field->value, Spelling::form);
  }
}

// Neither a token nor base64 has blanks or commas: with them the line holds more than one, of which
// servers take the first or the last.
void CredentialReader::read_authorization(std::string_view value, Gathered& found) const noexcept {
  const std::size_t blank = value.find_first_of(" \t");
  if (blank == std::string_view::npos) return;
  const std::string_view scheme = value.substr(0, blank);
  const std::string_view shown = trimmed(value.substr(blank));
  const bool is_token = tokens_ && equals_ignoring_case(scheme, "bearer");
  const bool is_basic = basic_ && equals_ignoring_case(scheme, "basic");
  if (!is_token && !is_basic) return;
  if (shown.find_first_of(" \t,") != std::string_view::npos) found.confuse(kTwoTokens);
  if (is_token) return found.set_token(shown);
  read_basic(shown, found);
}

// The key is the user name. Of a long password only the beginning is decoded: it must not hide the
// name before it. Base64 that is decoded here in one way only may mean something to another server.
void CredentialReader::read_basic(std::string_view encoded, Gathered& found) noexcept {
  const std::span<char> room = found.room_for_basic();
  const std::size_t most = room.size() / 3 * 4;
  const std::optional<std::string_view> pair = decode_base64(encoded.substr(0, most), room);
  if (!pair) return found.confuse(kUnreadable);
  const std::size_t colon = pair->find(':');
  if (colon == std::string_view::npos && encoded.size() <= most) return;
  found.add_key(pair->substr(0, colon), Spelling::plain);
}

}  // namespace sluice::identity
