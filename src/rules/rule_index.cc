#include "rules/rule_index.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::rules {
namespace {

std::uint64_t seed_of(Asks kind) noexcept {
  return (static_cast<std::uint64_t>(kind) + 1) * 0xff51afd7ed558ccdULL;
}

}  // namespace

IndexKey index_key(Asks kind, std::string_view name) noexcept {
  return hash_text(seed_of(kind), name);
}

IndexKey index_key(Asks kind, std::string_view name, std::string_view value) noexcept {
  return with_value(index_key(kind, name), value);
}

IndexKey with_value(IndexKey named, std::string_view value) noexcept {
  return hash_text(~named, value);
}

IndexKey with_prefix(IndexKey named, std::string_view prefix) noexcept {
  return hash_text(named ^ 0xa0761d6478bd642fULL, prefix);
}

std::uint64_t RuleIndex::Steps::Step::with_rest(std::uint64_t hash) const noexcept {
  return hash_text(hash, {text + sizeof first, size() - sizeof first});
}

std::uint32_t& RuleIndex::Steps::at(std::uint32_t node, std::string_view segment) {
  const Step step{node, segment};
  std::size_t place = place_of(step);
  if (slots_[place].child == kNone) {
    if (++used_ * 2 > slots_.size()) grow();
    place = place_of(step);
    slots_[place].step = step;
  }
  return slots_[place].child;
}

void RuleIndex::Steps::grow() {
  std::vector<Slot> before(4 * slots_.size());
  before.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.child != kNone) slots_[place_of(slot.step)] = slot;
  }
}

// Builds the tree of places and counts the rules of each condition. Then files every rule under the
// condition that the fewest share, and lays the drawers out one behind the other.
struct RuleIndex::Builder {
  struct Place {
    std::uint32_t node = 0;
    bool below = false;
  };
  struct Filed {
    std::vector<RuleNumber> here;
    std::vector<RuleNumber> below;
  };

  RuleIndex& index;
  FlatMap<IndexKey, std::uint32_t> asked;              // how many rules have it
  std::vector<std::array<std::uint32_t, 2>> asked_at;  // by node: here, below
  FlatMap<IndexKey, std::vector<RuleNumber>> filed;
  std::vector<Filed> filed_at;

  std::uint32_t new_node() {
    index.nodes_.emplace_back();
    asked_at.emplace_back();
    filed_at.emplace_back();
    return static_cast<std::uint32_t>(index.nodes_.size() - 1);
  }

  std::uint32_t root_of(std::string_view host) {
    if (host.starts_with('*')) host.remove_prefix(1);
    const auto [root, is_new] = index.roots_.insert(index_key(Asks::host, host), kNone);
    if (is_new) root = new_node();
    return root;
  }

  Place place_of(const Location& location) {
    std::uint32_t node = root_of(location.host);
    if (location.path == nullptr) return {.node = node, .below = true};
    for (const PathSegment& segment : location.path->segments()) {
      if (segment.kind == PathSegment::Kind::rest) return {.node = node, .below = true};
      node = child_of(node, segment);
    }
    return {.node = node, .below = false};
  }

  std::uint32_t child_of(std::uint32_t node, const PathSegment& segment) {
    if (segment.kind != PathSegment::Kind::literal) {
      if (index.nodes_[node].any == kNone) {
        const std::uint32_t child = new_node();
        index.nodes_[node].any = child;
      }
      return index.nodes_[node].any;
    }
    index.nodes_[node].has_literals = true;
    std::uint32_t& child = index.steps_.at(node, segment.text);
    if (child == kNone) child = new_node();
    return child;
  }

  void count(const Conditions& conditions) {
    for (const Condition& condition : conditions) {
      for (const IndexKey key : condition.keys) ++asked[key];
      for (const Location& location : condition.locations) {
        const Place place = place_of(location);
        ++asked_at[place.node][place.below ? 1 : 0];
      }
    }
  }

  // How many rules would share the fullest drawer with a rule.
  std::uint32_t crowd(const Condition& condition) {
    std::uint32_t most = 0;
    for (const IndexKey key : condition.keys) most = std::max(most, asked[key]);
    for (const Location& location : condition.locations) {
      const Place place = place_of(location);
      most = std::max(most, asked_at[place.node][place.below ? 1 : 0]);
    }
    return most;
  }

  void file(RuleNumber rule, const Conditions& conditions) {
    assert(!conditions.empty() && "every rule asks for its domain");
    const Condition& rarest = *std::ranges::min_element(
        conditions, {}, [this](const Condition& condition) { return crowd(condition); });
    for (const IndexKey key : rarest.keys) filed[key].push_back(rule);
    if (!rarest.keys.empty()) index.used_[static_cast<std::size_t>(rarest.kind)] = true;
    for (const Location& location : rarest.locations) {
      const Place place = place_of(location);
      (place.below ? filed_at[place.node].below : filed_at[place.node].here).push_back(rule);
      if (location.host.empty()) index.any_host_ = root_of({});
      index.has_hosts_ |= !location.host.empty();
      index.has_wildcards_ |= location.host.starts_with('*');
    }
  }

  Drawer lay_out(const std::vector<RuleNumber>& rules) {
    const Drawer drawer{.first = static_cast<std::uint32_t>(index.numbers_.size()),
                        .count = static_cast<std::uint32_t>(rules.size())};
    index.numbers_.insert(index.numbers_.end(), rules.begin(), rules.end());
    return drawer;
  }

  void lay_out_all() {
    filed.for_each([this](IndexKey key, const std::vector<RuleNumber>& rules) {
      index.drawers_.insert(key, lay_out(rules));
    });
    for (std::size_t node = 0; node < filed_at.size(); ++node) {
      index.nodes_[node].here = lay_out(filed_at[node].here);
      index.nodes_[node].below = lay_out(filed_at[node].below);
    }
  }
};

RuleIndex::RuleIndex(std::span<const Conditions> rules) {
  Builder builder{.index = *this};
  for (const Conditions& conditions : rules) builder.count(conditions);
  for (RuleNumber rule = 0; rule < rules.size(); ++rule) builder.file(rule, rules[rule]);
  builder.lay_out_all();
}

}  // namespace sluice::rules
