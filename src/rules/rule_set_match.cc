// Which rules match a request: the index's candidates, each compared with it, and of a group the
// most specific. See rule_set.cc for how rules are filed.
#include "base/characters.h"
#include "identity/fields.h"
#include "identity/headers.h"
#include "rules/rule_set.h"
#include "rules/rule_set_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice::rules {
namespace {

template <class Value, class List>
bool is_among(const Value& value, const List& list) noexcept {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

// Exact over wildcard, then longer over shorter.
std::pair<int, std::size_t> host_rank(std::string_view pattern) noexcept {
  return {pattern.starts_with('*') ? 1 : 2, pattern.size()};
}

// The same request by its decoded path.
Asked by_decoded_path(const Asked& asked) noexcept {
  Asked other = asked;
  other.path = std::exchange(other.decoded_path, {});
  return other;
}

// Drawers that a request has looked into: a field that a request repeats thousands of times is
// compared with its rules once. Some drawers are lost, which costs comparisons.
class SeenDrawers {
 public:
  // Whether it is new.
  [[nodiscard]] bool add(const RuleNumber* drawer) noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(drawer) / sizeof *drawer;
    return std::exchange(seen_[number % seen_.size()], drawer) != drawer;
  }

 private:
  std::array<const RuleNumber*, 64> seen_{};
};

}  // namespace

// ---- comparing one rule -----------------------------------------------------------------------

std::uint32_t RuleSet::domain_number(std::string_view domain) const noexcept {
  if (domain.empty() || domain == kDefaultDomain) return default_domain_;
  const std::uint32_t* const found = domains_.find(domain);
  return found == nullptr ? static_cast<std::uint32_t>(domains_.size()) : *found;
}

// Of several paths, the most specific.
bool RuleSet::examine_paths(const Compiled& compiled, std::string_view path,
                            Matched& matched) noexcept {
  bool found = compiled.paths.empty();
  for (std::size_t i = 0; i < compiled.paths.size(); ++i) {
    if (!compiled.paths[i].matches(path)) continue;
    const bool better =
        !found || compare_specificity(compiled.paths[i], compiled.paths[matched.path]) > 0;
    if (better) matched.path = static_cast<std::uint32_t>(i);
    found = true;
  }
  return found;
}

std::string_view RuleSet::examine_client(const Match& match, std::uint16_t asks,
                                         const identity::Identity& client) noexcept {
  if ((asks & asks_tier) != 0 && !is_among(client.tier, match.tiers)) return "client.tier";
  if ((asks & asks_tenant) != 0 && !is_among(client.tenant, match.tenants)) return "client.tenant";
  if ((asks & asks_country) != 0 && !is_among(client.country, match.countries)) {
    return "client.country";
  }
  if ((asks & asks_asn) != 0 && !is_among(client.asn, match.asns)) return "client.asn";
  if ((asks & asks_authenticated) != 0 && *match.authenticated != client.authenticated()) {
    return "client.authenticated";
  }
  const auto contains = [&](const IpRange& range) { return range.contains(client.address); };
  if ((asks & asks_address) != 0 && std::ranges::none_of(match.addresses, contains)) {
    return "client.ip";
  }
  return {};
}

// The conditions from cheap to costly. Returns the name of the failed condition, as in `match`.
std::string_view RuleSet::examine(RuleNumber number, const Asked& asked, std::uint32_t domain,
                                  Filed filed, Matched& matched) const noexcept {
  const Compiled& compiled = compiled_[number];
  if (compiled.domain != domain) return "domain";

  if ((compiled.asks & asks_method) != 0) {
    const std::uint32_t bit = method_bit(asked.method);
    const bool usual = (compiled.methods & bit) != 0;
    if (!usual && (bit != 0 || std::ranges::find(compiled.other_methods, asked.method) ==
                                   compiled.other_methods.end())) {
      return "method";
    }
  }

  if ((compiled.asks & asks_host) != 0) {  // of several, the most specific
    const std::vector<std::string>& hosts = list_.rules[number].match.hosts;
    bool found = false;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (!host_matches(hosts[i], asked.host)) continue;
      const bool better = !found || host_rank(hosts[i]) > host_rank(hosts[matched.host]);
      if (better) matched.host = static_cast<std::uint32_t>(i);
      found = true;
    }
    if (!found) return "host";
  }
  // A rule found at its only path need not be compared with it again.
  const bool is_at_its_path = filed == Filed::at_its_place && compiled.paths.size() == 1;
  if (!is_at_its_path && !examine_paths(compiled, asked.path, matched)) return "path";

  constexpr unsigned kOfRequest = asks_method | asks_host;
  if ((compiled.asks & ~kOfRequest) != 0) {
    const std::string_view wrong =
        examine_client(list_.rules[number].match, compiled.asks, asked.client);
    if (!wrong.empty()) return wrong;
  }

  return examine_texts(compiled, asked);
}

// Of a repeated name any value may match, so a second value does not evade a rule.
std::string_view RuleSet::examine_texts(const Compiled& compiled, const Asked& asked) noexcept {
  for (const Text& wanted : compiled.headers) {
    const auto is_it = [&](const HeaderView& one) {
      return identity::is_named(one, wanted.name) && wanted.value.matches(one.value);
    };
    if (std::ranges::none_of(asked.request.headers, is_it)) return "header";
  }
  for (const Text& wanted : compiled.descriptor) {
    const auto is_it = [&](const DescriptorEntry& one) {
      return one.key == wanted.name && wanted.value.matches(one.value);
    };
    if (std::ranges::none_of(asked.request.descriptor, is_it)) return "descriptor";
  }
  for (const Text& wanted : compiled.attributes) {
    const identity::Attributes* const all = asked.client.attributes;
    const std::string_view value = all != nullptr ? all->find(wanted.name) : std::string_view{};
    if (value.empty() || !wanted.value.matches(value)) return "client.attribute";
  }
  for (const Text& wanted : compiled.query) {
    if (!examine_query(wanted, asked.query)) return "query";
  }
  for (const Text& wanted : compiled.cookies) {
    if (!examine_cookies(wanted, asked.request.headers)) return "cookie";
  }
  return {};
}

bool RuleSet::examine_query(const Text& wanted, std::string_view query) noexcept {
  std::array<char, kFieldBytesMax> scratch;
  while (const auto field = identity::take_query_field(query)) {
    if (!identity::decodes_to(field->name, wanted.name)) continue;
    const identity::Decoded value = identity::decode_field(field->value, scratch);
    if (value.whole ? wanted.value.matches(value.text)
                    : wanted.value.may_match_beginning(value.text)) {
      return true;
    }
  }
  return false;
}

bool RuleSet::examine_cookies(const Text& wanted, std::span<const HeaderView> headers) noexcept {
  for (const HeaderView& header : headers) {
    if (!identity::is_named(header, "cookie")) continue;
    std::string_view line = header.value;
    while (const auto cookie = identity::take_cookie(line)) {
      if (cookie->name == wanted.name && wanted.value.matches(cookie->value)) return true;
    }
  }
  return false;
}

// ---- comparing candidates ---------------------------------------------------------------------

std::string_view RuleSet::mismatch(RuleNumber rule, const Asked& asked) const noexcept {
  Matched matched;
  const std::uint32_t domain = domain_number(asked.domain);
  const std::string_view wrong = examine(rule, asked, domain, Filed::elsewhere, matched);
  if (wrong.empty() || asked.decoded_path.empty()) return wrong;
  const bool other =
      examine(rule, by_decoded_path(asked), domain, Filed::elsewhere, matched).empty();
  return other ? std::string_view{} : wrong;
}

void RuleSet::look(std::span<const RuleNumber> candidates, Filed filed, const Asked& asked,
                   std::uint32_t domain, Phase phase, Matches& matches) const noexcept {
  for (const RuleNumber number : candidates) {
    if (matches.too_many) return;  // the request is shed, whichever rules match
    const Compiled& compiled = compiled_[number];
    if ((compiled.phases & phase_bit(phase)) == 0) continue;
    const auto is_it = [number](const Matched& one) { return one.rule == number; };
    if (std::ranges::any_of(matches.span(), is_it)) continue;  // found by two of its alternatives
    Matched matched{.rule = number};
    if (!examine(number, asked, domain, filed, matched).empty()) continue;
    matches.enforced |= !compiled.shadow;
    if (compiled.group == 0 || !loses(matched, matches)) add(matched, matches);
  }
}

// Shadow rules never displace an enforcing rule.
void RuleSet::add(const Matched& matched, Matches& matches) const noexcept {
  if (compiled_[matched.rule].shadow) {
    if (matches.shadows == kMatchesMax) {
      ++matches.shadow_checks_skipped;
      return;
    }
    ++matches.shadows;
  } else if (matches.count - matches.shadows == kMatchesMax) {
    matches.too_many = true;
    return;
  }
  matches.all[matches.count++] = matched;
}

void RuleSet::match(const Asked& asked, Phase phase, Matches& matches) const noexcept {
  match_reading(asked, phase, matches);
  if (!asked.decoded_path.empty()) [[unlikely]]
    match_decoded(asked, phase, matches);
  if (matches.count < 2) return;
  std::ranges::sort(std::span{matches.all}.first(matches.count), {}, &Matched::rule);
}

// Not inlined: its matches need some kilobytes of stack, which most requests do not need.
[[gnu::noinline]] void RuleSet::match_decoded(const Asked& asked, Phase phase,
                                              Matches& matches) const noexcept {
  Matches others;
  match_reading(by_decoded_path(asked), phase, others);
  matches.enforced_decoded = others.enforced;
  matches.too_many |= others.too_many;
  matches.shadow_checks_skipped += others.shadow_checks_skipped;
  const std::size_t before = matches.count;
  for (Matched one : others.span()) {
    if (matches.too_many) return;
    one.decoded = true;
    const auto of_path = std::span{matches.all}.first(before);
    const auto same = std::ranges::find(of_path, one.rule, &Matched::rule);
    if (same == of_path.end()) {
      add(one, matches);
    } else {
      *same = one;
    }
  }
}

void RuleSet::match_reading(const Asked& asked, Phase phase, Matches& matches) const noexcept {
  matches.clear();
  const std::uint32_t domain = domain_number(asked.domain);
  visit_candidates(asked, [&](std::span<const RuleNumber> candidates, Filed filed) {
    if (!candidates.empty()) look(candidates, filed, asked, domain, phase, matches);
  });
  matches.enforced_decoded = matches.enforced;
}

std::size_t RuleSet::candidates(const Asked& asked) const noexcept {
  std::size_t count = 0;
  const auto add_up = [&](std::span<const RuleNumber> candidates, Filed) {
    count += candidates.size();
  };
  visit_candidates(asked, add_up);
  if (!asked.decoded_path.empty()) visit_candidates(by_decoded_path(asked), add_up);
  return count;
}

// ---- looking for candidates -------------------------------------------------------------------

// Calls visit(rules, how they were found) for every drawer that a request has to look into.
template <class Visit>
void RuleSet::visit_candidates(const Asked& asked, Visit&& visit) const noexcept {
  const auto look_into = [&](std::span<const RuleNumber> candidates) {
    visit(candidates, Filed::elsewhere);
  };
  if (index_.uses(Asks::domain)) {
    const std::string_view named = asked.domain.empty() ? kDefaultDomain : asked.domain;
    look_into(index_.under(index_key(Asks::domain, named)));
  }
  index_.at(asked.host, asked.path, [&](std::span<const RuleNumber> candidates) {
    visit(candidates, Filed::at_its_place);
  });
  if (index_.uses(Asks::method)) {
    look_into(index_.under(index_key(Asks::method, asked.method)));
  }
  if (index_.uses(Asks::header)) {
    for (const HeaderView& header : asked.request.headers) look_into_header(header, look_into);
  }
  if (index_.uses(Asks::query)) look_into_query(asked.query, look_into);
  if (index_.uses(Asks::cookie)) look_into_cookies(asked.request.headers, look_into);
  if (index_.uses(Asks::descriptor)) {
    for (const DescriptorEntry& entry : asked.request.descriptor) {
      const IndexKey named = index_key(Asks::descriptor, entry.key);
      if (const AskedName* name = asked_name(named)) {
        look_under(*name, named, entry.value, look_into);
      }
    }
  }
  const identity::Identity& client = asked.client;
  if (client.attributes != nullptr && index_.uses(Asks::attribute)) {
    for (const auto& [name, value] : client.attributes->all()) {
      const IndexKey named = index_key(Asks::attribute, name);
      if (const AskedName* asked_for = asked_name(named)) {
        look_under(*asked_for, named, value, look_into);
      }
    }
  }
  const auto look_for = [&](Asks kind, std::string_view value) {
    if (!value.empty() && index_.uses(kind)) look_into(index_.under(index_key(kind, value)));
  };
  look_for(Asks::tier, client.tier);
  look_for(Asks::tenant, client.tenant);
  look_for(Asks::country, client.country);
  if (index_.uses(Asks::asn)) look_into(index_.under(index_key(Asks::asn, bytes_of(client.asn))));
  if (index_.uses(Asks::address)) {
    for (const unsigned bits : client.address.is_v4 ? v4_lengths_ : v6_lengths_) {
      look_into(index_.under(address_key(client.address, bits)));
    }
  }
}

const RuleSet::AskedName* RuleSet::asked_name(IndexKey named) const noexcept {
  return asked_names_.find(named);
}

// The drawers of a name and its value.
template <class Visit>
void RuleSet::look_under(const AskedName& name, IndexKey named, std::string_view value,
                         Visit&& visit) const noexcept {
  if (name.any_value) visit(index_.under(named));
  if (name.exact_value) visit(index_.under(with_value(named, value)));
  for (std::uint32_t i = 0; i < name.lengths; ++i) {
    const std::size_t length = prefix_lengths_[name.first_length + i];
    if (length > value.size()) break;
    visit(index_.under(with_prefix(named, value.substr(0, length))));
  }
}

// Header names have any case, the index has them in lower case.
template <class Visit>
void RuleSet::look_into_header(const HeaderView& header, Visit&& visit) const noexcept {
  std::array<char, kIndexedNameMax> lower_name;
  const std::size_t size = header.name.size();
  if (size >= lower_name.size() || (header_looks_ & look_of(header.name)) == 0) return;
  std::ranges::transform(header.name, lower_name.begin(), lower);
  const IndexKey named = index_key(Asks::header, {lower_name.data(), size});
  if (const AskedName* name = asked_name(named)) look_under(*name, named, header.value, visit);
}

template <class Visit>
void RuleSet::look_into_query(std::string_view query, Visit&& visit) const noexcept {
  std::array<char, kIndexedNameMax> name_scratch;
  std::array<char, kFieldBytesMax> value_scratch;
  SeenDrawers seen;
  const auto visit_once = [&](std::span<const RuleNumber> candidates) {
    if (!candidates.empty() && seen.add(candidates.data())) visit(candidates);
  };
  while (const auto field = identity::take_query_field(query)) {
    const identity::Decoded name = identity::decode_field(field->name, name_scratch);
    const IndexKey named = index_key(Asks::query, name.text);
    const AskedName* const asked = asked_name(named);
    if (asked == nullptr) continue;
    const identity::Decoded value = identity::decode_field(field->value, value_scratch);
    look_under(*asked, named, value.text, visit_once);
  }
}

template <class Visit>
void RuleSet::look_into_cookies(std::span<const HeaderView> headers, Visit&& visit) const noexcept {
  SeenDrawers seen;
  const auto visit_once = [&](std::span<const RuleNumber> candidates) {
    if (!candidates.empty() && seen.add(candidates.data())) visit(candidates);
  };
  for (const HeaderView& header : headers) {
    if (!identity::is_named(header, "cookie")) continue;
    std::string_view line = header.value;
    while (const auto cookie = identity::take_cookie(line)) {
      const IndexKey named = index_key(Asks::cookie, cookie->name);
      if (const AskedName* name = asked_name(named)) {
        look_under(*name, named, cookie->value, visit_once);
      }
    }
  }
}

// ---- groups -----------------------------------------------------------------------------------

// Exact host over wildcard over any, then the path, then more fields over fewer, then the order of
// the file.
bool RuleSet::is_more_specific(const Matched& a, const Matched& b) const noexcept {
  const auto rank_of = [this](const Matched& one) -> std::pair<int, std::size_t> {
    const auto& hosts = list_.rules[one.rule].match.hosts;
    return hosts.empty() ? std::pair{0, std::size_t{0}} : host_rank(hosts[one.host]);
  };
  if (rank_of(a) != rank_of(b)) return rank_of(a) > rank_of(b);
  const Compiled& mine = compiled_[a.rule];
  const Compiled& theirs = compiled_[b.rule];
  if (mine.paths.empty() != theirs.paths.empty()) return theirs.paths.empty();
  if (!mine.paths.empty()) {
    const int order = compare_specificity(mine.paths[a.path], theirs.paths[b.path]);
    if (order != 0) return order > 0;
  }
  if (mine.fields != theirs.fields) return mine.fields > theirs.fields;
  return a.rule < b.rule;
}

// Of the rules of one group, the most specific stays: the newcomer, or the present one, so that a
// group never takes more room than the rules of it that apply. Shadow rules displace none.
bool RuleSet::loses(const Matched& newcomer, Matches& matches) const noexcept {
  const auto wins = [this](const Matched& one, const Matched& other) {
    const Compiled& compiled = compiled_[one.rule];
    return !compiled.shadow && compiled.group == compiled_[other.rule].group &&
           is_more_specific(one, other);
  };
  for (const Matched& found : matches.span()) {
    if (wins(found, newcomer)) return true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < matches.count; ++i) {
    const Matched found = matches.all[i];
    if (!wins(newcomer, found)) {
      matches.all[kept++] = found;
    } else if (compiled_[found.rule].shadow) {
      --matches.shadows;
    }
  }
  matches.count = kept;
  return false;
}

MatchedPath RuleSet::path(const Asked& asked, const Matched& matched) const noexcept {
  const Compiled& compiled = compiled_[matched.rule];
  if (compiled.paths.empty()) return {};
  return {.pattern = &compiled.paths[matched.path],
          .text = matched.decoded ? asked.decoded_path : asked.path};
}

}  // namespace sluice::rules
