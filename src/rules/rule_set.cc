#include "rules/rule_set.h"

#include "base/characters.h"
#include "identity/fields.h"
#include "identity/headers.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace sluice::rules {
namespace {

// Names of this length and more are compared, not indexed.
constexpr std::size_t kIndexedNameMax = 64;

// A bit for how a header's name looks at first sight, by its length and its last letter in any
// case: most headers are not asked for by any rule, and this tells without reading them.
std::uint64_t look_of(std::string_view name) noexcept {
  const unsigned last = name.empty() ? 0U : static_cast<unsigned char>(name.back()) & 0x1fU;
  return std::uint64_t{1} << ((name.size() * 7 + last) & 63U);
}

// Of a longer value of a query field that has to be decoded, the beginning is looked at.
constexpr std::size_t kFieldBytesMax = 1024;

constexpr std::array<std::string_view, 9> kMethods{"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                                   "CONNECT", "OPTIONS", "TRACE", "PATCH"};

// 0: none of the usual ones.
std::uint32_t method_bit(std::string_view method) noexcept {
  const auto found = std::ranges::find(kMethods, method);
  return found == kMethods.end() ? 0 : 1U << static_cast<unsigned>(found - kMethods.begin());
}

template <class Value, class List>
bool is_among(const Value& value, const List& list) noexcept {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

// What a name and the bytes of a masked address are filed under.
IndexKey address_key(const IpAddress& address, unsigned bits) noexcept {
  const IpAddress masked = address.masked(bits);
  const char head[2] = {address.is_v4 ? '4' : '6', static_cast<char>(bits)};
  return index_key(Asks::address, {head, sizeof head},
                   {reinterpret_cast<const char*>(masked.bytes.data()), masked.bytes.size()});
}

std::string_view bytes_of(const std::uint32_t& number) noexcept {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// Exact over wildcard, then longer over shorter.
std::pair<int, std::size_t> host_rank(std::string_view pattern) noexcept {
  return {pattern.starts_with('*') ? 1 : 2, pattern.size()};
}

// What a condition on a named value is filed under.
enum class FiledBy : std::uint8_t { nothing, name, value, prefix };

FiledBy filed_by(const NamedMatch& wanted) noexcept {
  using Kind = TextMatch::Kind;
  if (wanted.name.size() >= kIndexedNameMax) return FiledBy::nothing;  // looked for by no request
  if (wanted.value.text.size() >= kFieldBytesMax) return FiledBy::name;
  if (wanted.value.kind == Kind::exact) return FiledBy::value;
  return wanted.value.kind == Kind::prefix ? FiledBy::prefix : FiledBy::name;
}

// Drawers that a request has looked into: one that repeats a field thousands of times is not
// compared as often with the rules that ask for it. Some are forgotten, which costs comparisons.
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

// Collects what rules ask of names, then tells it to the rule set.
class RuleSet::NameCollector {
 public:
  void add(Asks kind, std::span<const NamedMatch> wanted) {
    for (const NamedMatch& one : wanted) {
      const FiledBy by = filed_by(one);
      if (by == FiledBy::nothing) continue;
      Name& name = names_[index_key(kind, one.name)];
      if (by == FiledBy::name) name.asked.any_value = true;
      if (by == FiledBy::value) name.asked.exact_value = true;
      if (by == FiledBy::prefix) {
        name.lengths.insert(static_cast<std::uint32_t>(one.value.text.size()));
      }
    }
  }
  void tell(RuleSet& set) {
    for (auto& [key, name] : names_) {
      name.asked.first_length = static_cast<std::uint32_t>(set.prefix_lengths_.size());
      name.asked.lengths = static_cast<std::uint32_t>(name.lengths.size());
      set.prefix_lengths_.insert(set.prefix_lengths_.end(), name.lengths.begin(),
                                 name.lengths.end());
      set.asked_names_.emplace(key, name.asked);
    }
  }

 private:
  struct Name {
    AskedName asked;
    std::set<std::uint32_t> lengths;
  };
  std::map<IndexKey, Name> names_;
};

// ---- compiling --------------------------------------------------------------------------------

RuleSet::RuleSet(RuleList list) : list_(std::move(list)) {
  has_path_options_ =
      list_.ignore_case.holds_anywhere() || list_.ignore_parameters.holds_anywhere();
  std::vector<RuleIndex::Conditions> conditions;
  boost::unordered_flat_map<std::string_view, std::uint32_t> groups{{"", 0}};  // 0 is none
  NameCollector names;
  std::set<std::uint8_t> v4_lengths;
  std::set<std::uint8_t> v6_lengths;
  const auto number_in = [](auto& numbers, std::string_view name) {
    return numbers.try_emplace(name, static_cast<std::uint32_t>(numbers.size())).first->second;
  };
  for (const Rule& rule : list_.rules) {
    Compiled& compiled = compiled_.emplace_back(compile(rule, list_.ignore_case));
    compiled.domain = number_in(domains_, rule.domain);
    compiled.group = number_in(groups, rule.group);
    phases_ |= compiled.phases;
    names.add(Asks::header, rule.match.headers);
    names.add(Asks::query, rule.match.query);
    names.add(Asks::cookie, rule.match.cookies);
    names.add(Asks::descriptor, rule.match.descriptor);
    names.add(Asks::attribute, rule.match.attributes);
    for (const NamedMatch& header : rule.match.headers) header_looks_ |= look_of(header.name);
    for (const IpRange& range : rule.match.addresses) {
      (range.first.is_v4 ? v4_lengths : v6_lengths)
          .insert(static_cast<std::uint8_t>(range.prefix_bits));
    }
  }
  names.tell(*this);
  for (std::size_t i = 0; i < compiled_.size(); ++i) {
    const Rule& rule = list_.rules[i];
    names_.emplace(index_key(Asks::domain, rule.domain, rule.name), static_cast<RuleNumber>(i));
    conditions.push_back(conditions_of(list_.rules[i], compiled_[i]));
  }
  const auto usual = domains_.find(kDefaultDomain);
  default_domain_ =
      usual == domains_.end() ? static_cast<std::uint32_t>(domains_.size()) : usual->second;
  v4_lengths_.assign(v4_lengths.begin(), v4_lengths.end());
  v6_lengths_.assign(v6_lengths.begin(), v6_lengths.end());
  index_ = RuleIndex{conditions};
}

RuleSet::Compiled RuleSet::compile(const Rule& rule, const IgnoringHosts& ignore) {
  const Match& match = rule.match;
  Compiled compiled;
  compiled.phases = phase_bit(rule.before_auth ? Phase::before_auth : Phase::after_auth);
  if (blocks_early(rule)) compiled.phases |= phase_bit(Phase::blocks);
  compiled.shadow = rule.over.kind == Over::Kind::shadow;
  const auto asks_if = [&](bool asks, Question what) {
    if (asks) compiled.asks = static_cast<std::uint16_t>(compiled.asks | what);
  };
  asks_if(!match.methods.empty(), asks_method);
  asks_if(!match.hosts.empty(), asks_host);
  asks_if(!match.tiers.empty(), asks_tier);
  asks_if(!match.tenants.empty(), asks_tenant);
  asks_if(!match.countries.empty(), asks_country);
  asks_if(!match.asns.empty(), asks_asn);
  asks_if(match.authenticated.has_value(), asks_authenticated);
  asks_if(!match.addresses.empty(), asks_address);
  for (const std::string& method : match.methods) {
    const std::uint32_t bit = method_bit(method);
    compiled.methods |= bit;
    if (bit == 0) compiled.other_methods.push_back(method);
  }
  const bool ignores = ignore.holds_for_all(match.hosts);
  for (const std::string& path : match.paths) {
    compiled.paths.push_back(PathTemplate::parse(path, ignores).value());
  }
  const auto texts = [](const std::vector<NamedMatch>& from) {
    std::vector<Text> to;
    for (const NamedMatch& one : from) {
      to.push_back({.name = one.name, .value = TextMatcher{one.value}});
    }
    return to;
  };
  compiled.headers = texts(match.headers);
  compiled.query = texts(match.query);
  compiled.cookies = texts(match.cookies);
  compiled.descriptor = texts(match.descriptor);
  compiled.attributes = texts(match.attributes);
  compiled.fields = static_cast<std::uint32_t>(
      std::popcount(compiled.asks) + (match.paths.empty() ? 0 : 1) +
      static_cast<int>(match.headers.size() + match.query.size() + match.cookies.size() +
                       match.descriptor.size() + match.attributes.size()));
  return compiled;
}

RuleIndex::Conditions RuleSet::conditions_of(const Rule& rule, const Compiled& compiled) const {
  const Match& match = rule.match;
  RuleIndex::Conditions conditions;

  Condition location;
  static const std::vector<std::string> kAnyHost{""};
  for (const std::string& host : match.hosts.empty() ? kAnyHost : match.hosts) {
    for (const PathTemplate& path : compiled.paths) {
      location.locations.push_back({.host = host, .path = &path});
    }
    if (compiled.paths.empty() && !host.empty()) location.locations.push_back({.host = host});
  }
  if (!location.locations.empty()) conditions.push_back(std::move(location));

  const auto named = [&](Asks kind, const std::vector<NamedMatch>& all) {
    for (const NamedMatch& one : all) {
      const FiledBy by = filed_by(one);
      if (by == FiledBy::nothing) continue;
      const IndexKey name = index_key(kind, one.name);
      const IndexKey key = by == FiledBy::value    ? with_value(name, one.value.text)
                           : by == FiledBy::prefix ? with_prefix(name, one.value.text)
                                                   : name;
      conditions.push_back({.kind = kind, .keys = {key}, .locations = {}});
    }
  };
  named(Asks::header, match.headers);
  named(Asks::query, match.query);
  named(Asks::cookie, match.cookies);
  named(Asks::descriptor, match.descriptor);
  named(Asks::attribute, match.attributes);

  const auto listed = [&](Asks kind, const auto& all, auto&& key_of) {
    if (all.empty()) return;
    Condition& condition = conditions.emplace_back(Condition{.kind = kind});
    for (const auto& one : all) condition.keys.push_back(key_of(one));
  };
  const auto by_text = [](Asks kind) {
    return [kind](const std::string& value) { return index_key(kind, value); };
  };
  listed(Asks::tier, match.tiers, by_text(Asks::tier));
  listed(Asks::tenant, match.tenants, by_text(Asks::tenant));
  listed(Asks::country, match.countries, by_text(Asks::country));
  listed(Asks::method, match.methods, by_text(Asks::method));
  listed(Asks::asn, match.asns,
         [](std::uint32_t asn) { return index_key(Asks::asn, bytes_of(asn)); });
  listed(Asks::address, match.addresses,
         [](const IpRange& range) { return address_key(range.first, range.prefix_bits); });
  conditions.push_back(
      {.kind = Asks::domain, .keys = {index_key(Asks::domain, rule.domain)}, .locations = {}});
  return conditions;
}

std::optional<RuleNumber> RuleSet::find(std::string_view name,
                                        std::string_view domain) const noexcept {
  const auto found = names_.find(index_key(Asks::domain, domain, name));
  if (found == names_.end()) return std::nullopt;
  const Rule& rule = list_.rules[found->second];
  return rule.name == name && rule.domain == domain ? std::optional{found->second} : std::nullopt;
}

// ---- matching ---------------------------------------------------------------------------------

std::uint32_t RuleSet::domain_number(std::string_view domain) const noexcept {
  if (domain.empty() || domain == kDefaultDomain) return default_domain_;
  const auto found = domains_.find(domain);
  return found == domains_.end() ? static_cast<std::uint32_t>(domains_.size()) : found->second;
}

// Of several paths, the one that says most.
bool RuleSet::examine_paths(const Compiled& compiled, std::string_view path,
                            Matched& matched) noexcept {
  bool found = compiled.paths.empty();
  for (std::size_t i = 0; i < compiled.paths.size(); ++i) {
    if (!compiled.paths[i].matches(path)) continue;
    const bool better =
        !found || compare_specificity(compiled.paths[i], compiled.paths[matched.path]) > 0;
    if (better) matched.path = static_cast<std::uint8_t>(i);
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

// The conditions from cheap to dear. What does not hold is named; the same words are in `match`.
std::string_view RuleSet::examine(RuleNumber number, const Asked& asked, std::uint32_t domain,
                                  Filed filed, Matched& matched) const noexcept {
  const Compiled& compiled = compiled_[number];
  if (compiled.domain != domain) return "domain";

  if ((compiled.asks & asks_method) != 0) {
    const std::uint32_t bit = method_bit(asked.request.method);
    const bool usual = (compiled.methods & bit) != 0;
    if (!usual && (bit != 0 || std::ranges::find(compiled.other_methods, asked.request.method) ==
                                   compiled.other_methods.end())) {
      return "method";
    }
  }

  if ((compiled.asks & asks_host) != 0) {  // of several, the one that says most
    const std::vector<std::string>& hosts = list_.rules[number].match.hosts;
    bool found = false;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (!host_matches(hosts[i], asked.host)) continue;
      const bool better = !found || host_rank(hosts[i]) > host_rank(hosts[matched.host]);
      if (better) matched.host = static_cast<std::uint8_t>(i);
      found = true;
    }
    if (!found) return "host";
  }
  // Who was found at its only path need not be compared with it again.
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

// Of a name that is sent repeatedly, any value will do: nobody escapes a rule by adding another.
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

std::string_view RuleSet::mismatch(RuleNumber rule, const Asked& asked) const noexcept {
  Matched matched;
  return examine(rule, asked, domain_number(asked.domain), Filed::elsewhere, matched);
}

void RuleSet::look(std::span<const RuleNumber> candidates, Filed filed, const Asked& asked,
                   std::uint32_t domain, Phase phase, Matches& matches) const noexcept {
  for (const RuleNumber number : candidates) {
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

// Shadow rules never take the place of one that may refuse.
void RuleSet::add(const Matched& matched, Matches& matches) const noexcept {
  if (compiled_[matched.rule].shadow) {
    if (matches.shadows == kMatchesMax) {
      ++matches.shadows_left_out;
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
  matches.clear();
  const std::uint32_t domain = domain_number(asked.domain);
  visit_candidates(asked, [&](std::span<const RuleNumber> candidates, Filed filed) {
    if (!candidates.empty()) look(candidates, filed, asked, domain, phase, matches);
  });
  if (matches.count < 2) return;
  std::ranges::sort(std::span{matches.all}.first(matches.count), {}, &Matched::rule);
}

std::size_t RuleSet::candidates(const Asked& asked) const noexcept {
  std::size_t count = 0;
  visit_candidates(
      asked, [&](std::span<const RuleNumber> candidates, Filed) { count += candidates.size(); });
  return count;
}

// Calls visit(rules, where they were found) for every drawer that a request has to look into.
template <class Visit>
void RuleSet::visit_candidates(const Asked& asked, Visit&& visit) const noexcept {
  const auto look_into = [&](std::span<const RuleNumber> candidates) {
    visit(candidates, Filed::elsewhere);
  };
  look_into(index_.everywhere());
  if (index_.uses(Asks::domain)) {
    const std::string_view named = asked.domain.empty() ? kDefaultDomain : asked.domain;
    look_into(index_.under(index_key(Asks::domain, named)));
  }
  index_.at(asked.host, asked.path, [&](std::span<const RuleNumber> candidates) {
    visit(candidates, Filed::at_its_place);
  });
  if (index_.uses(Asks::method)) {
    look_into(index_.under(index_key(Asks::method, asked.request.method)));
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
  const auto found = asked_names_.find(named);
  return found == asked_names_.end() ? nullptr : &found->second;
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

// Header names come in any case, the index has them in lower case.
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

// Of the rules of one group, the most specific stays: the newcomer, or the one it finds, so that a
// group never takes more room than what applies of it. Shadow rules win against none.
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

const PathTemplate* RuleSet::path(const Matched& matched) const noexcept {
  const Compiled& compiled = compiled_[matched.rule];
  return compiled.paths.empty() ? nullptr : &compiled.paths[matched.path];
}

}  // namespace sluice::rules
