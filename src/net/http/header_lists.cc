#include "net/http/header_lists.h"

#include "net/http/characters.h"
#include "net/http/known_header.h"

#include <algorithm>
#include <array>

namespace sluice::net {
namespace {

template <std::size_t Size>
bool is_one_of(const std::array<std::string_view, Size>& words, std::string_view text) noexcept {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return word.size() == text.size() && equals_ignoring_case(word, text);
  });
}

// Also X-Forwarded-Host, -Proto and whatever else begins so.
bool is_forwarded(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "x-forwarded-";
  return reads_as(name.substr(0, kPrefix.size()), kPrefix);
}

constexpr std::array<std::string_view, 21> kKept{"authorization",
                                                 "cache-control",
                                                 "content-encoding",
                                                 "content-length",
                                                 "content-range",
                                                 "content-type",
                                                 "cookie",
                                                 "date",
                                                 "etag",
                                                 "expect",
                                                 "forwarded",
                                                 "host",
                                                 "location",
                                                 "max-forwards",
                                                 "origin",
                                                 "set-cookie",
                                                 "www-authenticate",
                                                 "true-client-ip",
                                                 "via",
                                                 "x-client-ip",
                                                 "x-real-ip"};

constexpr std::array<std::string_view, 12> kNeverInTrailers{
    "authorization", "cache-control", "content-encoding",
    "content-range", "content-type",  "cookie",
    "max-forwards",  "range",         "set-cookie",
    "vary",          "via",           "www-authenticate"};

constexpr std::array<std::string_view, 8> kWordsOfProxies{
    "forwarded",      "true-client-ip", "x-client-ip",  "x-cluster-client-ip",
    "x-original-url", "x-real-ip",      "x-request-id", "x-rewrite-url"};

template <std::size_t Size>
bool reads_as_one_of(const std::array<std::string_view, Size>& words,
                     std::string_view name) noexcept {
  return std::ranges::any_of(words, [name](std::string_view word) { return reads_as(name, word); });
}

}  // namespace

bool is_word_of_proxies(std::string_view name) noexcept {
  return is_forwarded(name) || reads_as_one_of(kWordsOfProxies, name);
}

std::optional<std::string_view> ListWalk::next() noexcept {
  while (!rest_.empty()) {
    const std::size_t comma = std::min(rest_.find(','), rest_.size());
    const std::string_view element = trimmed(rest_.substr(0, comma));
    rest_.remove_prefix(std::min(comma + 1, rest_.size()));
    if (!element.empty()) return element;
  }
  return std::nullopt;
}

bool is_token_list(std::string_view value) noexcept {
  ListWalk walk{value};
  while (const std::optional<std::string_view> element = walk.next()) {
    if (!is_token(*element)) return false;
  }
  return true;
}

bool list_contains(std::string_view value, std::string_view lower_token) noexcept {
  ListWalk walk{value};
  while (const std::optional<std::string_view> element = walk.next()) {
    if (equals_ignoring_case(*element, lower_token)) return true;
  }
  return false;
}

std::optional<std::string_view> ConnectionOptions::next() noexcept {
  for (;;) {
    if (const std::optional<std::string_view> option = options_.next()) return option;
    if (headers_.empty()) return std::nullopt;
    const HeaderView& header = headers_.front();
    if (known_header(header.name) == KnownHeader::connection) options_ = ListWalk{header.value};
    headers_ = headers_.subspan(1);
  }
}

bool is_plain_option(std::string_view option) noexcept {
  return equals_ignoring_case(option, "close") ||
         (is_token(option) && is_hop_by_hop(known_header(option)));
}

bool is_kept_from_connection(std::string_view name) noexcept {
  return is_one_of(kKept, name) || is_forwarded(name);
}

bool is_hop_by_hop(std::string_view name, std::span<const HeaderView> all) noexcept {
  if (is_hop_by_hop(known_header(name))) return true;
  if (is_kept_from_connection(name)) return false;
  ConnectionOptions options{all};
  while (const std::optional<std::string_view> option = options.next()) {
    if (equals_ignoring_case(*option, name)) return true;
  }
  return false;
}

bool is_forbidden_trailer(std::string_view name) noexcept {
  return known_header(name) != KnownHeader::other || imitates_known(name) ||
         reads_as_one_of(kNeverInTrailers, name) || is_word_of_proxies(name);
}

}  // namespace sluice::net
