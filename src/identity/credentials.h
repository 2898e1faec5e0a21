// What a request presents as proof of who is asking: a token, an API key.
//
// Servers differ in which of two credentials they use. A client that knows the server could show it
// one credential and the gateway another, and so evade its limits and the deny list. So a request
// with two readings is ambiguous, and authenticates no client:
//
//   - a second Authorization line, even an equal one; several tokens in one line; broken base64
//   - different API keys, over all places that are configured; equal ones are one key
//   - a list of API keys in one header
//
// An empty value hides no other one. Headers and query are read once each. Nothing allocates.
#pragma once

#include "identity/api_keys.h"
#include <sluice/request.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {

// Room for a key that has to be decoded (one byte more tells that it is too long), and for a user
// name with its password.
inline constexpr std::size_t kCredentialScratchBytes = kApiKeyBytesMax + 1 + 2 * kApiKeyBytesMax;

// Views into the request or the scratch.
struct Credentials {
  std::string_view token;      // empty: none
  std::string_view api_key;    // empty: none
  std::string_view ambiguous;  // why they cannot be told, for people; static text; empty: they can
};

// Immutable, so threads may share it.
class CredentialReader {
 public:
  struct Places {
    bool tokens = false;                 // Authorization: Bearer
    std::vector<ApiKeySource> api_keys;  // empty: keys are not looked at
  };

  explicit CredentialReader(Places places);

  // No place is configured: there is nothing to read.
  [[nodiscard]] bool is_idle() const noexcept { return !reads_headers_ && queries_.empty(); }

  [[nodiscard]] Credentials read(const RequestView& request,
                                 std::span<char, kCredentialScratchBytes> scratch) const noexcept;

 private:
  class Gathered;

  void read_header(const HeaderView& line, Gathered& found) const noexcept;
  void read_cookies(std::string_view line, Gathered& found) const noexcept;
  void read_query(std::string_view query, Gathered& found) const noexcept;
  void read_authorization(std::string_view value, Gathered& found) const noexcept;
  static void read_basic(std::string_view encoded, Gathered& found) noexcept;

  bool tokens_ = false;
  bool basic_ = false;
  bool reads_headers_ = false;
  std::vector<std::string> headers_;  // lower case
  std::vector<std::string> queries_;
  std::vector<std::string> cookies_;
};

}  // namespace sluice::identity
