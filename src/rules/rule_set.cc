#include "rules/rule_set.h"

#include "rules/rule_set_keys.h"

#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace sluice::rules {
namespace {

// The key of a condition on a named value.
enum class FiledBy : std::uint8_t { nothing, name, value, prefix };

FiledBy filed_by(const NamedMatch& wanted) noexcept {
  using Kind = TextMatch::Kind;
  if (wanted.name.size() >= kIndexedNameMax) return FiledBy::nothing;  // no request looks it up
  if (wanted.value.text.size() >= kFieldBytesMax) return FiledBy::name;
  if (wanted.value.kind == Kind::exact) return FiledBy::value;
  return wanted.value.kind == Kind::prefix ? FiledBy::prefix : FiledBy::name;
}

}  // namespace

// Collects the rules' conditions on names, then adds them to the rule set.
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
      set.asked_names_.insert(key, name.asked);
    }
  }

 private:
  struct Name {
    AskedName asked;
    std::set<std::uint32_t> lengths;
  };
  std::map<IndexKey, Name> names_;
};

RuleSet::RuleSet(RuleList list) : list_(std::move(list)) {
  has_path_options_ = list_.case_insensitive_paths.holds_anywhere() ||
                      list_.ignore_path_parameters.holds_anywhere();
  std::vector<RuleIndex::Conditions> conditions;
  FlatMap<std::string_view, std::uint32_t> groups;
  groups.insert("", 0);  // none
  NameCollector names;
  std::set<std::uint8_t> v4_lengths;
  std::set<std::uint8_t> v6_lengths;
  const auto number_in = [](auto& numbers, std::string_view name) {
    return numbers.insert(name, static_cast<std::uint32_t>(numbers.size())).value;
  };
  for (const Rule& rule : list_.rules) {
    Compiled& compiled = compiled_.emplace_back(compile(rule, list_.case_insensitive_paths));
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
    names_.insert(index_key(Asks::domain, rule.domain, rule.name), static_cast<RuleNumber>(i));
    conditions.push_back(conditions_of(list_.rules[i], compiled_[i]));
  }
  const std::uint32_t* const usual = domains_.find(kDefaultDomain);
  default_domain_ = usual == nullptr ? static_cast<std::uint32_t>(domains_.size()) : *usual;
  v4_lengths_.assign(v4_lengths.begin(), v4_lengths.end());
  v6_lengths_.assign(v6_lengths.begin(), v6_lengths.end());
  index_ = RuleIndex{conditions};
}

RuleSet::Compiled RuleSet::compile(const Rule& rule, const IgnoringHosts& ignore) {
  const Match& match = rule.match;
  Compiled compiled;
  compiled.phases = phase_bit(rule.before_auth ? Phase::before_auth : Phase::after_auth);
  if (blocks_early(rule)) compiled.phases |= phase_bit(Phase::blocks);
  compiled.shadow = rule.action.kind == Action::Kind::shadow;
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
  const RuleNumber* const found = names_.find(index_key(Asks::domain, domain, name));
  if (found == nullptr) return std::nullopt;
  const Rule& rule = list_.rules[*found];
  return rule.name == name && rule.domain == domain ? std::optional{*found} : std::nullopt;
}

}  // namespace sluice::rules
