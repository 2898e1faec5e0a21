// A rule as written: parsed and checked, not compiled yet.
//
// Plain data, from any source: a YAML file, a database row, another service. Every field has the
// default of the rule language, so an absent key equals its default.
#pragma once

#include "config/place.h"
#include "identity/path.h"
#include <sluice/address.h>
#include <sluice/limit.h>
#include <sluice/sharing.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::rules {

// The domain of rules and requests that name none.
inline constexpr std::string_view kDefaultDomain = "default";

using config::Place;  // the position of a text, for messages

// ---- match ------------------------------------------------------------------------------------

struct TextMatch {
  enum class Kind : std::uint8_t { present, exact, prefix, regex };
  Kind kind = Kind::present;
  std::string text;
};

struct NamedMatch {
  std::string name;  // headers in lower case
  TextMatch value;
};

// Matches any item of a list, and all of the lists that are not empty.
struct Match {
  std::vector<std::string> methods;  // upper case
  std::vector<std::string> hosts;    // lower case, without port; *.example.com for all below it
  std::vector<std::string> paths;    // templates: /v1/users/{id}, /static/**
  std::vector<NamedMatch> headers;   // all of these
  std::vector<NamedMatch> query;
  std::vector<NamedMatch> cookies;
  std::vector<IpRange> addresses;
  std::vector<std::string> countries;  // two letters, upper case
  std::vector<std::uint32_t> asns;
  std::vector<std::string> tiers;
  std::vector<std::string> tenants;
  std::vector<NamedMatch> attributes;  // of the client's API key
  std::optional<bool> authenticated;
  std::vector<NamedMatch> descriptor;  // entries that must be present
};

// ---- per --------------------------------------------------------------------------------------

// One part of a counter's key. The numbers go into digests of keys: never change them.
struct Per {
  enum class Kind : std::uint8_t {
    user = 1,
    api_key = 2,
    tenant = 3,
    ip = 4,
    country = 5,
    asn = 6,
    method = 7,
    route = 8,  // the path template that matched
    path = 9,   // one of its parameters
    header = 10,
    query = 11,
    claim = 12,
    descriptor = 13,
    attribute = 14,  // of an API key
  };
  Kind kind = Kind::ip;
  std::string name;           // of the path parameter, header, query field, claim, attribute
  std::uint8_t v4_bits = 32;  // ip
  std::uint8_t v6_bits = 64;
};

// If a value is absent.
enum class OnMissing : std::uint8_t { ip, skip, shared, reject };

// ---- limits -----------------------------------------------------------------------------------

// The source of an amount that is not in the rule.
struct AmountFrom {
  enum class Kind : std::uint8_t { claim, attribute, header };
  Kind kind = Kind::claim;
  std::string name;
  std::uint64_t max = 0;
};

struct RuleLimit {
  Limit limit;
  std::string name;                // empty: derived from its numbers
  std::optional<AmountFrom> from;  // absent, or its value is: limit.amount
  Place place;
};

struct Tiers {
  // client.tier, client.tenant, client.country, client.asn, client.authenticated, claim.NAME,
  // attribute.NAME: only authenticated values. A header is chosen by the client and cannot select a
  // limit.
  std::string by;
  std::vector<std::pair<std::string, std::vector<RuleLimit>>> values;
};

// ---- cost, count, action, block ---------------------------------------------------------------

struct CostRule {
  enum class Kind : std::uint8_t { constant, header, query, method };
  Kind kind = Kind::constant;
  std::uint32_t constant = 1;  // also if the named value is absent or invalid
  std::string name;
  std::uint32_t max = 1;  // header, query: values are clamped to 1..max
  std::vector<std::pair<std::string, std::uint32_t>> by_method;  // upper case
};

// Which responses count. Absent: every request does.
struct Count {
  std::vector<std::pair<std::uint16_t, std::uint16_t>> statuses;  // first to last
  std::vector<std::uint8_t> grpc_statuses;
  std::optional<NamedMatch> header;
  bool after = false;  // checks whether it would fit, charges when the response arrives
};

struct Action {
  enum class Kind : std::uint8_t { reject, queue, drop, shadow };
  Kind kind = Kind::reject;
  std::uint16_t status = 429;
  std::string body;  // empty: the default problem document
  std::vector<std::pair<std::string, std::string>> headers;
  Nanos max_delay{0};               // queue
  std::uint32_t max_queued = 1000;  // queue: at once, of all keys together
};

struct Block {
  Nanos duration{0};
  std::uint32_t threshold = 1;  // rejections
};

// How a limit is kept on many nodes.
using sluice::Mode;
using sluice::OnFailure;

// ---- rule -------------------------------------------------------------------------------------

struct Rule {
  std::string name;
  std::string domain{kDefaultDomain};
  Match match;
  std::vector<Per> per;
  OnMissing on_missing = OnMissing::ip;
  std::vector<RuleLimit> limits;
  std::optional<Tiers> tiers;
  CostRule cost;
  std::optional<Count> count;
  Action action;
  std::optional<Block> block;
  std::string group;
  bool before_auth = false;
  OnChange on_change = OnChange::keep;
  OnTableFull on_table_full = OnTableFull::approximate;
  bool thread_leases = false;
  Sharing sharing{.mode = Mode::automatic};
  Place place;
};

// Known of every request, without authentication.
[[nodiscard]] constexpr bool known_before_verification(Per::Kind kind) noexcept {
  return kind != Per::Kind::user && kind != Per::Kind::api_key && kind != Per::Kind::tenant &&
         kind != Per::Kind::claim && kind != Per::Kind::attribute;
}

// Whether its blocks need address and request alone; they are then checked before anything is
// charged or verified. Not for a rule of a group: whether it applies depends on the other rules,
// and they may depend on the user.
[[nodiscard]] bool blocks_early(const Rule& rule) noexcept;

// The decision on a request that no enforcing rule matches.
enum class Unmatched : std::uint8_t { allow, reject };

// The pattern is a host, or *.example.com for all below one.
[[nodiscard]] inline bool host_matches(std::string_view pattern, std::string_view host) noexcept {
  if (!pattern.starts_with('*')) return host == pattern;
  pattern.remove_prefix(1);  // .example.com, with a label before it
  return host.size() > pattern.size() && host.ends_with(pattern);
}

// Hosts whose servers treat two spellings of a path as one: /LOGIN as /login, or /login;x=1.
struct IgnoringHosts {
  bool everywhere = false;
  std::vector<std::string> hosts;  // or *.example.com

  [[nodiscard]] bool holds_anywhere() const noexcept { return everywhere || !hosts.empty(); }
  [[nodiscard]] bool holds_for(std::string_view host) const noexcept {
    return everywhere || (!hosts.empty() && names(host));
  }
  // For each host that a rule or a route names; if it names none, for every host.
  [[nodiscard]] bool holds_for_all(std::span<const std::string> named) const noexcept;
  [[nodiscard]] bool holds_for_some(std::span<const std::string> named) const noexcept {
    return everywhere || holds_for_all(named) || divides(named);
  }
  // For case-insensitive hosts: the path has capitals, and only some of the named hosts ignore
  // case, so that it would match on some and never on others.
  [[nodiscard]] bool makes_unclear(std::string_view path,
                                   std::span<const std::string> named) const noexcept;

 private:
  [[nodiscard]] bool names(std::string_view host) const noexcept;
  [[nodiscard]] bool divides(std::span<const std::string> named) const noexcept;
};

// How servers read %2F and %5C in a path. Some decode them, others distinguish them from slashes.
struct SlashesByHost {
  using Setting = identity::EscapedSlashes;
  struct Host {
    std::string pattern;  // or *.example.com
    Setting setting = Setting::decode;

    friend bool operator==(const Host&, const Host&) = default;
  };
  Setting otherwise = Setting::decode;  // for hosts that are not listed
  std::vector<Host> hosts;

  // The most specific pattern wins: an exact one over a wildcard, the longer one over the shorter.
  [[nodiscard]] Setting of(std::string_view host) const noexcept;
  // Whether escaped slashes are ordinary characters on each host that a rule or a route names; if
  // it names none, on hosts that are not listed.
  [[nodiscard]] bool are_kept_on_all(std::span<const std::string> named) const noexcept;

  friend bool operator==(const SlashesByHost&, const SlashesByHost&) = default;
};

struct RuleList {
  std::vector<Rule> rules;
  Unmatched unmatched = Unmatched::allow;
  IgnoringHosts case_insensitive_paths;  // paths are compared in lower case
  IgnoringHosts ignore_path_parameters;  // and without the text after a semicolon
  SlashesByHost escaped_slashes;
};

}  // namespace sluice::rules
