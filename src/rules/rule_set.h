// Rules, compiled: finds the rules that match a request.
//
// Immutable; workers share one and replace it as a whole.
#pragma once

#include "base/flat_map.h"
#include "identity/identity.h"
#include "identity/path.h"
#include "rules/path_template.h"
#include "rules/rule.h"
#include "rules/rule_index.h"
#include "rules/text_matcher.h"
#include <sluice/diagnostic.h>
#include <sluice/request.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::rules {

// The request as rules match it.
struct Asked {
  const RequestView& request;                // headers, descriptor
  std::string_view method = request.method;  // in upper case
  std::string_view domain;                   // empty: the default one
  std::string_view host;                     // normalised: lower case, without port
  std::string_view path;                     // normalised
  std::string_view query;                    // as sent
  const identity::Identity& client;
  std::string_view decoded_path;  // with slashes for escaped ones; empty: it has none, or
                                  // those are no slashes on this host
};

// Rules on facts known before tokens are verified, and the others; of these, the rules whose blocks
// can be checked without a token.
enum class Phase : std::uint8_t { before_auth, after_auth, blocks };

// One rule that matches a request.
struct Matched {
  RuleNumber rule = 0;
  std::uint32_t host = 0;  // which of the rule's hosts and paths matched
  std::uint32_t path = 0;
  bool decoded = false;  // that path is a template of the decoded path
};

// How the path of a request was matched.
struct MatchedPath {
  const PathTemplate* pattern = nullptr;  // null: the rule names no path
  std::string_view text;                  // the form of the path that it matches
};

// At most so many rules match one request, and so many shadow rules beside them. More than the
// limits that a request may have, since rules may not count it (`on_missing: skip`).
inline constexpr std::size_t kMatchesMax = 128;

struct Matches {
  std::array<Matched, 2 * kMatchesMax> all;  // in the order of the rules
  std::size_t count = 0;
  std::size_t shadows = 0;                // among them
  std::size_t shadow_checks_skipped = 0;  // for lack of room
  bool too_many = false;                  // enforcing rules: the request is shed
  bool enforced = false;                  // a rule matched by the path is not a shadow
  bool enforced_decoded = false;          // ... by the decoded path; where there is none, as above

  void clear() noexcept {
    count = shadows = shadow_checks_skipped = 0;
    too_many = enforced = enforced_decoded = false;
  }
  [[nodiscard]] std::span<const Matched> span() const noexcept {
    return std::span{all}.first(count);
  }
};

class RuleSet {
 public:
  // Requires rules that were parsed without a mistake.
  explicit RuleSet(RuleList list);
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;
  ~RuleSet() = default;

  [[nodiscard]] std::span<const Rule> rules() const noexcept { return list_.rules; }
  [[nodiscard]] Unmatched unmatched() const noexcept { return list_.unmatched; }

  // Whether paths of some hosts are normalised otherwise than by default, and how.
  [[nodiscard]] bool has_path_options() const noexcept { return has_path_options_; }
  [[nodiscard]] identity::PathOptions path_options(std::string_view host) const noexcept {
    return {.case_insensitive_paths = list_.case_insensitive_paths.holds_for(host),
            .ignore_path_parameters = list_.ignore_path_parameters.holds_for(host)};
  }
  [[nodiscard]] identity::EscapedSlashes escaped_slashes(std::string_view host) const noexcept {
    return list_.escaped_slashes.of(host);
  }

  // By its name; nothing if there is none.
  [[nodiscard]] std::optional<RuleNumber> find(
      std::string_view name, std::string_view domain = kDefaultDomain) const noexcept;

  // Whether the phase has any rule.
  [[nodiscard]] bool has(Phase phase) const noexcept {
    return (phases_ & phase_bit(phase)) != 0 || phase == Phase::after_auth;
  }

  // All rules of the phase that match the request, except losers of their group.
  //
  // If there is a decoded path: all rules that would apply to either of the two. A group has a
  // winner for each, so that neither path buys a more generous limit for the other. A rule that
  // both match occurs once, with the decoded path: its spellings are one there, and a client could
  // have any number of path parameters otherwise (/users/7%2Fx, /users/7%2F%2Fx, ...).
  void match(const Asked& asked, Phase phase, Matches& matches) const noexcept;

  // The first condition of a rule that does not hold: "method", "path", ... Empty: it matches.
  [[nodiscard]] std::string_view mismatch(RuleNumber rule, const Asked& asked) const noexcept;

  // How many rules a request is compared with, of all phases; rules found by two of their
  // alternatives count twice. This must not grow with the number of rules.
  [[nodiscard]] std::size_t candidates(const Asked& asked) const noexcept;

  [[nodiscard]] MatchedPath path(const Asked& asked, const Matched& matched) const noexcept;

 private:
  struct Text {
    std::string name;
    TextMatcher value;
  };
  // The kinds of conditions of a rule. Other fields are not even read: the rule itself is large,
  // and with thousands of rules it is not in any cache.
  enum Question : std::uint16_t {
    asks_method = 1U << 0U,
    asks_host = 1U << 1U,
    asks_tier = 1U << 2U,
    asks_tenant = 1U << 3U,
    asks_country = 1U << 4U,
    asks_asn = 1U << 5U,
    asks_authenticated = 1U << 6U,
    asks_address = 1U << 7U,
  };
  struct Compiled {
    std::uint16_t asks = 0;
    std::uint8_t phases = 0;  // bits
    bool shadow = false;
    std::uint32_t domain = 0;   // its number among all
    std::uint32_t methods = 0;  // bits
    std::uint32_t fields = 0;   // the number of its conditions
    std::uint32_t group = 0;    // 0: none
    std::vector<PathTemplate> paths;
    std::vector<Text> headers;
    std::vector<Text> query;
    std::vector<Text> cookies;
    std::vector<Text> descriptor;
    std::vector<Text> attributes;
    std::vector<std::string> other_methods;
  };

  // The rules' conditions on a header, query field, cookie, attribute or descriptor entry of one
  // name. Each kind of condition has drawers of its own.
  struct AskedName {
    bool any_value = false;  // or one by a regular expression
    bool exact_value = false;
    std::uint32_t first_length = 0;  // of prefixes, in prefix_lengths_
    std::uint32_t lengths = 0;
  };
  class NameCollector;

  // How a candidate was found: by its host and path, or by another condition.
  enum class Filed : std::uint8_t { at_its_place, elsewhere };

  [[nodiscard]] static Compiled compile(const Rule& rule, const IgnoringHosts& ignore);
  [[nodiscard]] RuleIndex::Conditions conditions_of(const Rule& rule,
                                                    const Compiled& compiled) const;
  [[nodiscard]] std::uint32_t domain_number(std::string_view domain) const noexcept;
  [[nodiscard]] std::string_view examine(RuleNumber number, const Asked& asked,
                                         std::uint32_t domain, Filed filed,
                                         Matched& matched) const noexcept;
  [[nodiscard]] static bool examine_paths(const Compiled& compiled, std::string_view path,
                                          Matched& matched) noexcept;
  [[nodiscard]] static std::string_view examine_texts(const Compiled& compiled,
                                                      const Asked& asked) noexcept;
  [[nodiscard]] static bool examine_query(const Text& wanted, std::string_view query) noexcept;
  [[nodiscard]] static bool examine_cookies(const Text& wanted,
                                            std::span<const HeaderView> headers) noexcept;
  [[nodiscard]] static std::string_view examine_client(const Match& match, std::uint16_t asks,
                                                       const identity::Identity& client) noexcept;
  void match_reading(const Asked& asked, Phase phase, Matches& matches) const noexcept;
  void match_decoded(const Asked& asked, Phase phase, Matches& matches) const noexcept;
  void look(std::span<const RuleNumber> candidates, Filed filed, const Asked& asked,
            std::uint32_t domain, Phase phase, Matches& matches) const noexcept;
  template <class Visit>
  void visit_candidates(const Asked& asked, Visit&& visit) const noexcept;
  template <class Visit>
  void look_into_header(const HeaderView& header, Visit&& visit) const noexcept;
  template <class Visit>
  void look_into_query(std::string_view query, Visit&& visit) const noexcept;
  template <class Visit>
  void look_into_cookies(std::span<const HeaderView> headers, Visit&& visit) const noexcept;
  template <class Visit>
  void look_under(const AskedName& name, IndexKey named, std::string_view value,
                  Visit&& visit) const noexcept;
  [[nodiscard]] const AskedName* asked_name(IndexKey named) const noexcept;
  [[nodiscard]] static constexpr std::uint8_t phase_bit(Phase phase) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(phase));
  }
  void add(const Matched& matched, Matches& matches) const noexcept;
  [[nodiscard]] bool loses(const Matched& newcomer, Matches& matches) const noexcept;
  [[nodiscard]] bool is_more_specific(const Matched& a, const Matched& b) const noexcept;

  RuleList list_;
  std::vector<Compiled> compiled_;
  RuleIndex index_;
  FlatMap<IndexKey, RuleNumber> names_;
  FlatMap<std::string_view, std::uint32_t> domains_;  // their numbers
  std::uint32_t default_domain_ = 0;
  std::uint8_t phases_ = 0;  // of all rules
  bool has_path_options_ = false;
  FlatMap<IndexKey, AskedName> asked_names_;   // of each kind
  std::vector<std::uint32_t> prefix_lengths_;  // of each name, in rising order
  std::uint64_t header_looks_ = 0;             // of all headers in there
  std::vector<std::uint8_t> v4_lengths_;       // of networks in rules
  std::vector<std::uint8_t> v6_lengths_;
};

}  // namespace sluice::rules
