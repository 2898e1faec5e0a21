#include "rules/formats.h"

#include "base/characters.h"
#include "base/duration.h"
#include "base/text.h"
#include "rules/path_template.h"
#include <sluice/core/limit_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <re2/re2.h>

namespace sluice::rules {
namespace {

using Problem = std::optional<Diagnostic>;

constexpr std::size_t kLongestName = 64;
constexpr std::size_t kLongestRegex = 1024;
constexpr std::int64_t kRegexMemory = 1 << 20;  // bytes; a larger program is a mistake or an attack

template <class T>
Problem problem_of(const Parsed<T>& parsed) {
  if (parsed) return std::nullopt;
  return parsed.error();
}

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_alphanumeric(char c) noexcept { return is_letter(c) || is_digit(c); }

bool consists_of(std::string_view text, std::string_view others) noexcept {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

bool has_control_character(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Problem check_name(std::string_view text) {
  if (!text.empty() && text.size() <= kLongestName && is_alphanumeric(text.front()) &&
      consists_of(text, "._-")) {
    return std::nullopt;
  }
  return Diagnostic{fmt::format("{} is no name", quoted(text)),
                    "use 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or "
                    "digit"};
}

Problem check_domain(std::string_view text) {
  if (!text.empty() && text.size() <= 255 && is_alphanumeric(text.front()) &&
      consists_of(text, "._-/:")) {
    return std::nullopt;
  }
  return Diagnostic{fmt::format("{} is no name of a domain", quoted(text)),
                    "use 1 to 255 letters, digits, '.', '_', '-', '/' and ':'"};
}

Problem check_method(std::string_view text) {
  if (text == "*") return Diagnostic{"every method matches already", "leave 'method' out"};
  if (!text.empty() && text.size() <= 32 && is_letter(text.front()) && consists_of(text, "-_")) {
    return std::nullopt;
  }
  return Diagnostic{fmt::format("{} is no method", quoted(text)),
                    "write one method, or a list of them, as in [GET, POST]"};
}

Problem check_host(std::string_view text) {
  if (text.find("://") != std::string_view::npos || text.find('/') != std::string_view::npos) {
    return Diagnostic{fmt::format("{} is more than a host", quoted(text)),
                      "leave out the scheme and the path"};
  }
  if (text == "*") return Diagnostic{"every host matches already", "leave 'host' out"};
  const bool is_v6 = text.starts_with('[') && text.ends_with(']');
  if (is_v6 && IpAddress::parse(text.substr(1, text.size() - 2))) return std::nullopt;
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    return Diagnostic{
        fmt::format("the host {} has a port, and ports are not compared", quoted(text)),
        fmt::format("write {}", text.substr(0, colon))};
  }
  std::string_view name = text;
  if (name.starts_with("*.")) name.remove_prefix(2);
  if (name.find('*') != std::string_view::npos) {
    return Diagnostic{fmt::format("the '*' in {} is not its whole first part", quoted(text)),
                      "write *.example.com for all hosts below one"};
  }
  if (name.empty() || name.size() > 253 || !consists_of(name, ".-_") || name.starts_with('.') ||
      name.find("..") != std::string_view::npos) {
    return Diagnostic{fmt::format("{} is no host", quoted(text)),
                      "write a name, as in api.example.com or *.example.com"};
  }
  return std::nullopt;
}

Problem check_header_name(std::string_view text) {
  if (!text.empty() && text.size() <= 256 && consists_of(text, "!#$%&'*+-.^_`|~")) {
    return std::nullopt;
  }
  return Diagnostic{fmt::format("{} is no name of a header", quoted(text)),
                    "use letters, digits and '-', without a colon"};
}

Problem check_field_name(std::string_view text) {
  if (!text.empty() && text.size() <= 256 && !has_control_character(text)) return std::nullopt;
  return Diagnostic{fmt::format("{} is no name", quoted(text)), "use 1 to 256 characters"};
}

Problem check_header_value(std::string_view text) {
  if (text.size() <= 4096 && !has_control_character(text)) return std::nullopt;
  return Diagnostic{fmt::format("{} cannot be sent in a header", quoted(text)),
                    "use one line of at most 4096 characters"};
}

Problem check_country(std::string_view text) {
  const std::string upper = upper_case(text);
  if (upper == "UK") return Diagnostic{"'UK' is not the code of a country", "write GB"};
  if (text.size() == 2 && is_letter(text[0]) && is_letter(text[1])) return std::nullopt;
  return Diagnostic{fmt::format("{} is not the code of a country", quoted(text)),
                    "use its two letters, as in DE"};
}

Problem check_tier_by(std::string_view text) {
  for (const std::string_view known :
       {"client.tier", "client.tenant", "client.country", "client.asn", "client.authenticated"}) {
    if (text == known) return std::nullopt;
  }
  for (const std::string_view of : {"claim.", "attribute."}) {
    if (text.starts_with(of) && text.size() > of.size()) {
      return check_field_name(text.substr(of.size()));
    }
  }
  for (const std::string_view own : {"header.", "query.", "cookie.", "path.", "descriptor."}) {
    if (!text.starts_with(own)) continue;
    return Diagnostic{
        fmt::format("{} is chosen by the client, which would choose the largest limit",
                    quoted(text)),
        "use client.tier, a claim of a verified token, as in claim.plan, or an attribute of an API "
        "key, as in attribute.plan"};
  }
  constexpr std::string_view kKnown[] = {"client.tier",   "client.tenant",        "client.country",
                                         "client.asn",    "client.authenticated", "claim.NAME",
                                         "attribute.NAME"};
  const std::string_view nearest = nearest_word("client." + std::string{text}, kKnown);
  return Diagnostic{fmt::format("unknown attribute {}", quoted(text)),
                    nearest.empty() ? fmt::format("known are {}", join_words(kKnown))
                                    : fmt::format("did you mean '{}'? known are {}", nearest,
                                                  join_words(kKnown))};
}

Problem check_regex(std::string_view text) {
  if (text.empty() || text.size() > kLongestRegex) {
    return Diagnostic{"the regular expression is empty or too long",
                      fmt::format("use 1 to {} characters", kLongestRegex)};
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kRegexMemory);
  const re2::RE2 regex{re2::StringPiece{text.data(), text.size()}, options};
  if (regex.ok()) return std::nullopt;
  const bool looks_around = text.find("(?=") != std::string_view::npos ||
                            text.find("(?!") != std::string_view::npos ||
                            text.find("(?<") != std::string_view::npos;
  return Diagnostic{
      fmt::format("the regular expression {}: {}", quoted(text), regex.error()),
      looks_around ? "RE2 has no look-around; write two rules" : "use the syntax of RE2"};
}

Problem check_timezone(std::string_view text) {
  if (!text.empty() && text.size() <= 64 && consists_of(text, "/_+-")) return std::nullopt;
  return Diagnostic{fmt::format("{} is no time zone", quoted(text)),
                    "use a name of the tz database, as in Europe/Berlin"};
}

Problem check_body(std::string_view text) {
  if (!text.empty() && text.size() <= 65536) return std::nullopt;
  return Diagnostic{"the body is empty or too long", "use 1 to 65536 bytes"};
}

// N or N/M behind `ip/`.
Parsed<Per> parse_ip(std::string_view bits, std::string_view whole) {
  const std::size_t slash = bits.find('/');
  const auto v4 = parse_number(bits.substr(0, slash));
  const auto v6 = slash == std::string_view::npos ? 64 : parse_number(bits.substr(slash + 1));
  if (!v4 || *v4 < 1 || *v4 > 32 || !v6 || *v6 < 1 || *v6 > 128) {
    return mistake(fmt::format("{} keeps no valid number of bits", quoted(whole)),
                   "write ip/N with N of 1 to 32 for IPv4, or ip/N/M with M of 1 to 128 for IPv6");
  }
  return Per{.kind = Per::Kind::ip,
             .name = {},
             .v4_bits = static_cast<std::uint8_t>(*v4),
             .v6_bits = static_cast<std::uint8_t>(*v6)};
}

struct PerWord {
  std::string_view text;
  Per::Kind kind;
};
constexpr PerWord kPerWords[] = {
    {"user", Per::Kind::user},     {"api_key", Per::Kind::api_key}, {"tenant", Per::Kind::tenant},
    {"ip", Per::Kind::ip},         {"country", Per::Kind::country}, {"asn", Per::Kind::asn},
    {"method", Per::Kind::method}, {"route", Per::Kind::route},
};
constexpr PerWord kPerPrefixes[] = {
    {"path.", Per::Kind::path},           {"header.", Per::Kind::header},
    {"query.", Per::Kind::query},         {"claim.", Per::Kind::claim},
    {"attribute.", Per::Kind::attribute}, {"descriptor.", Per::Kind::descriptor},
};

Parsed<Per> unknown_per(std::string_view text) {
  constexpr std::string_view kKnown[] = {"user",    "api_key", "tenant",      "ip",
                                         "ip/N",    "ip/N/M",  "country",     "asn",
                                         "method",  "route",   "path.ID",     "header.X",
                                         "query.X", "claim.X", "attribute.X", "descriptor.X"};
  std::string_view nearest = nearest_word(text, kKnown);
  for (const std::string_view address : {"client_ip", "remote_addr", "remote_address", "address"}) {
    if (text == address) nearest = "ip";
  }
  return mistake(fmt::format("nothing can be counted per {}", quoted(text)),
                 nearest.empty() ? fmt::format("known are {}", join_words(kKnown))
                                 : fmt::format("did you mean '{}'?", nearest));
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result{text};
  for (char& c : result) c = lower(c);
  return result;
}

std::string host_name(std::string_view text) {
  std::string name = lower_case(text);
  if (name.ends_with('.')) name.pop_back();
  return name;
}

std::string upper_case(std::string_view text) {
  std::string upper{text};
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

Parsed<Per> parse_per(std::string_view text) {
  if (text.starts_with("ip/")) return parse_ip(text.substr(3), text);
  for (const PerWord& word : kPerWords) {
    if (word.text == text) return Per{.kind = word.kind};
  }
  for (const PerWord& prefix : kPerPrefixes) {
    if (!text.starts_with(prefix.text) || text.size() == prefix.text.size()) continue;
    const std::string_view name = text.substr(prefix.text.size());
    const bool is_header = prefix.kind == Per::Kind::header;
    const Problem problem = is_header ? check_header_name(name) : check_field_name(name);
    if (problem) return tl::unexpected(*problem);
    return Per{.kind = prefix.kind, .name = is_header ? lower_case(name) : std::string{name}};
  }
  return unknown_per(text);
}

Parsed<StatusRange> parse_status(std::string_view text) {
  const auto wrong = [&] {
    return mistake(fmt::format("{} is no status", quoted(text)),
                   "write one as in 401, a range as in 500-599, or a class as in 5xx");
  };
  if (text.size() == 3 && (text.substr(1) == "xx" || text.substr(1) == "XX")) {
    if (text[0] < '1' || text[0] > '5') return wrong();
    const auto first = static_cast<std::uint16_t>((text[0] - '0') * 100);
    return StatusRange{first, static_cast<std::uint16_t>(first + 99)};
  }
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1));
  const bool is_long = text.size() != 3 && (text.size() != 7 || dash != 3);  // 0401, 401-0499
  if (is_long || !first || !last || *first < 100 || *last > 599) return wrong();
  if (*first > *last) {
    return mistake(fmt::format("the range {} ends before it begins", quoted(text)),
                   fmt::format("write {}-{}", *last, *first));
  }
  return StatusRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

Parsed<std::uint32_t> parse_permille(std::string_view text) {
  const auto wrong = [&](std::string_view remedy) {
    return mistake(fmt::format("{} is no share", quoted(text)), std::string{remedy});
  };
  constexpr std::string_view kRange = "use 0.1% to 100%, in steps of 0.1%";
  if (!text.ends_with('%')) {
    return wrong(parse_number(text) ? fmt::format("write {}%", text) : std::string{kRange});
  }
  const std::string_view number = text.substr(0, text.size() - 1);
  const std::size_t dot = number.find('.');
  const auto whole = parse_number(number.substr(0, dot));
  const std::string_view tenths = dot == std::string_view::npos ? "0" : number.substr(dot + 1);
  if (!whole || number.size() > 5 || *whole > 100 || tenths.size() != 1 || !is_digit(tenths[0]))
    return wrong(kRange);
  const std::uint64_t permille = *whole * 10 + static_cast<std::uint64_t>(tenths[0] - '0');
  if (permille < 1 || permille > 1000) return wrong(kRange);
  return static_cast<std::uint32_t>(permille);
}

Parsed<IpRange> parse_address_range(std::string_view text) {
  if (const auto range = IpRange::parse(text)) return *range;
  const std::size_t slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  const auto bits =
      slash == std::string_view::npos ? std::nullopt : parse_number(text.substr(slash + 1));
  if (address && bits && *bits <= address->bits()) {
    const IpAddress first = address->masked(static_cast<unsigned>(*bits));
    return mistake(fmt::format("{} has bits behind its prefix", quoted(text)),
                   fmt::format("write {}/{}, or {} for the one address", first.text(), *bits,
                               address->text()));
  }
  return mistake(fmt::format("{} is no range of addresses", quoted(text)),
                 "write an address or a prefix, as in 10.0.0.0/8 or 2001:db8::/32");
}

const config::Format kNameFormat{"NAME", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", check_name};
const config::Format kDomainFormat{"DOMAIN", "^[A-Za-z0-9][A-Za-z0-9._/:-]{0,254}$", check_domain};
const config::Format kMethodFormat{"METHOD", "^[A-Za-z][A-Za-z0-9_-]{0,31}$", check_method};
const config::Format kHostFormat{"HOST", "^[^/*]+$|^\\*\\.[^/*]+$", check_host};
const config::Format kPathFormat{"PATH", "^/[^?# ]*$", [](std::string_view text) {
                                   return problem_of(parse_path_template(text));
                                 }};
const config::Format kHeaderNameFormat{"HEADER", "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$",
                                       check_header_name};
const config::Format kFieldNameFormat{"FIELD", "^.{1,256}$", check_field_name};
const config::Format kHeaderValueFormat{"text", "", check_header_value};
const config::Format kAddressFormat{
    "ADDRESS/BITS", "^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$",
    [](std::string_view text) { return problem_of(parse_address_range(text)); }};
const config::Format kCountryFormat{"COUNTRY", "^[A-Za-z]{2}$", check_country};
const config::Format kPerFormat{"PER",
                                "^(user|api_key|tenant|ip(/[0-9]+){0,2}|country|asn|method|route|"
                                "(path|header|query|claim|attribute|descriptor)\\..+)$",
                                [](std::string_view text) { return problem_of(parse_per(text)); }};
const config::Format kTierByFormat{
    "ATTRIBUTE", "^(client\\.(tier|tenant|country|asn|authenticated)|(claim|attribute)\\..+)$",
    check_tier_by};
const config::Format kRateFormat{
    "RATE", "^(0|[1-9][0-9]*)/(([0-9]+[a-z]+)+|day|week|month|year)$",
    [](std::string_view text) { return problem_of(core::parse_limit(text, std::nullopt)); }};
const config::Format kDurationFormat{
    "DURATION", "^([0-9]+(ns|us|ms|s|m|h|d|w))+$",
    [](std::string_view text) { return problem_of(parse_duration(text)); }};
const config::Format kStatusFormat{
    "STATUS", "^([1-5][0-9]{2}(-[1-5][0-9]{2})?|[1-5](xx|XX))$",
    [](std::string_view text) { return problem_of(parse_status(text)); }};
const config::Format kPercentFormat{
    "PERCENT", "^[0-9]{1,5}(\\.[0-9])?%$",
    [](std::string_view text) { return problem_of(parse_permille(text)); }};
const config::Format kRegexFormat{"REGEX", "^[\\s\\S]{1,1024}$", check_regex};
const config::Format kTimezoneFormat{"TIMEZONE", "^[A-Za-z0-9/_+-]{1,64}$", check_timezone};
const config::Format kBodyFormat{"text", "", check_body};

}  // namespace sluice::rules
