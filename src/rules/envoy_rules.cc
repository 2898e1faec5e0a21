#include "rules/envoy_rules.h"

#include "rules/envoy_tree.h"

#include <algorithm>
#include <utility>

namespace sluice::rules {
namespace {

// Compares a text with `key_value`, without building the latter.
int compare(std::string_view text, std::string_view key, std::string_view value) noexcept {
  const int by_key = text.substr(0, key.size()).compare(key);
  if (by_key != 0) return by_key;
  const std::string_view rest = text.substr(key.size());
  if (rest.empty()) return -1;
  if (rest.front() != '_') return static_cast<unsigned char>(rest.front()) < '_' ? -1 : 1;
  return rest.substr(1).compare(value);
}

// The characters of `key_value` by position.
class Composite {
 public:
  Composite(std::string_view key, std::string_view value) noexcept : key_(key), value_(value) {}
  [[nodiscard]] std::size_t size() const noexcept { return key_.size() + 1 + value_.size(); }
  [[nodiscard]] char operator[](std::size_t i) const noexcept {
    if (i < key_.size()) return key_[i];
    return i == key_.size() ? '_' : value_[i - key_.size() - 1];
  }

 private:
  std::string_view key_;
  std::string_view value_;
};

void collect(const EnvoyRules::Node& node, std::vector<const EnvoyLimit*>& limits) {
  if (node.limit) limits.push_back(&*node.limit);
  for (const EnvoyRules::Node* child : node.in_file_order) collect(*child, limits);
}

}  // namespace

std::uint32_t seconds_of(EnvoyUnit unit) noexcept {
  constexpr std::uint32_t kDay = 24 * 3600;
  switch (unit) {
    case EnvoyUnit::unknown: return 0;
    case EnvoyUnit::second: return 1;
    case EnvoyUnit::minute: return 60;
    case EnvoyUnit::hour: return 3600;
    case EnvoyUnit::day: return kDay;
    case EnvoyUnit::week: return 7 * kDay;
    case EnvoyUnit::month: return 30 * kDay;
    case EnvoyUnit::year: return 365 * kDay;
  }
  return 0;
}

std::string_view to_string(EnvoyUnit unit) noexcept {
  switch (unit) {
    case EnvoyUnit::unknown: break;
    case EnvoyUnit::second: return "second";
    case EnvoyUnit::minute: return "minute";
    case EnvoyUnit::hour: return "hour";
    case EnvoyUnit::day: return "day";
    case EnvoyUnit::week: return "week";
    case EnvoyUnit::month: return "month";
    case EnvoyUnit::year: return "year";
  }
  return "unknown";
}

// The usual walk with one point to backtrack to: the last *, and how much it has matched. A later *
// makes an earlier one's choice final, so the time is at most quadratic.
bool matches_composite(std::string_view pattern, std::string_view key,
                       std::string_view value) noexcept {
  const Composite text{key, value};
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// ---- Node ---------------------------------------------------------------------------------------

const EnvoyRules::Node* EnvoyRules::Node::find(std::string_view key) const noexcept {
  const auto found = std::lower_bound(
      children.begin(), children.end(), key,
      [](const auto& child, std::string_view wanted) { return child->composite < wanted; });
  return found != children.end() && (*found)->composite == key ? found->get() : nullptr;
}

const EnvoyRules::Node* EnvoyRules::Node::find(std::string_view key,
                                               std::string_view value) const noexcept {
  const auto found = std::partition_point(children.begin(), children.end(), [&](const auto& child) {
    return compare(child->composite, key, value) < 0;
  });
  return found != children.end() && compare((*found)->composite, key, value) == 0 ? found->get()
                                                                                  : nullptr;
}

EnvoyRules::Node* EnvoyRules::Node::add(std::string composite_text) {
  const auto place = std::lower_bound(
      children.begin(), children.end(), composite_text,
      [](const auto& child, const std::string& wanted) { return child->composite < wanted; });
  if (place != children.end() && (*place)->composite == composite_text) return nullptr;
  auto node = std::make_unique<Node>();
  node->composite = std::move(composite_text);
  Node* added = children.insert(place, std::move(node))->get();
  in_file_order.push_back(added);
  if (added->composite.find('*') != std::string::npos) wildcards.push_back(added);
  return added;
}

// ---- EnvoyRules ---------------------------------------------------------------------------------

EnvoyRules::EnvoyRules() = default;
EnvoyRules::EnvoyRules(EnvoyRules&&) noexcept = default;
EnvoyRules& EnvoyRules::operator=(EnvoyRules&&) noexcept = default;
EnvoyRules::~EnvoyRules() = default;

const EnvoyRules::Domain* EnvoyRules::find(std::string_view domain) const noexcept {
  const auto found =
      std::lower_bound(domains_.begin(), domains_.end(), domain,
                       [](const auto& one, std::string_view wanted) { return one->name < wanted; });
  return found != domains_.end() && (*found)->name == domain ? found->get() : nullptr;
}

bool EnvoyRules::has_domain(std::string_view domain) const noexcept {
  return find(domain) != nullptr;
}

std::vector<std::string_view> EnvoyRules::domains() const {
  std::vector<std::string_view> names;
  for (const auto& domain : domains_) names.push_back(domain->name);
  return names;
}

const EnvoyLimit* EnvoyRules::match(std::string_view domain,
                                    std::span<const DescriptorEntry> entries) const noexcept {
  const Domain* tree = find(domain);
  if (tree == nullptr) return nullptr;
  const Node* level = &tree->root;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [key, value] = entries[i];
    const Node* next = level->find(key, value);
    for (std::size_t w = 0; next == nullptr && w < level->wildcards.size(); ++w) {
      if (matches_composite(level->wildcards[w]->composite, key, value)) next = level->wildcards[w];
    }
    if (next == nullptr) next = level->find(key);
    if (next == nullptr) return nullptr;
    if (i + 1 == entries.size()) return next->limit ? &*next->limit : nullptr;
    if (next->children.empty()) return nullptr;
    level = next;
  }
  return nullptr;
}

std::vector<const EnvoyLimit*> EnvoyRules::limits() const {
  std::vector<const EnvoyLimit*> limits;
  for (const auto& domain : domains_) collect(domain->root, limits);
  return limits;
}

}  // namespace sluice::rules
