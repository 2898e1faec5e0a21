#include "base/folder.h"
#include "base/read_file.h"
#include "base/text.h"
#include "config/document.h"
#include "config/json.h"
#include "rules/envoy_rules.h"
#include "rules/envoy_tree.h"
#include "rules/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

namespace sluice::rules {
namespace {

using config::Diagnostics;
using config::Node;

// Allowed everywhere. A key without a meaning at its place is ignored, as in that service.
constexpr std::array<std::string_view, 16> kKnownKeys{"domain",
                                                      "descriptors",
                                                      "key",
                                                      "value",
                                                      "rate_limit",
                                                      "unit",
                                                      "requests_per_unit",
                                                      "unlimited",
                                                      "name",
                                                      "replaces",
                                                      "shadow_mode",
                                                      "quota_mode",
                                                      "detailed_metric",
                                                      "value_to_metric",
                                                      "share_threshold",
                                                      "metadata"};

constexpr std::array kUnits{EnvoyUnit::second, EnvoyUnit::minute, EnvoyUnit::hour, EnvoyUnit::day,
                            EnvoyUnit::week,   EnvoyUnit::month,  EnvoyUnit::year};

// Source text of a scalar; empty for a null or absent node.
std::string_view text_of(const Node* node) noexcept {
  return node != nullptr && node->is_scalar() ? std::string_view{node->text} : std::string_view{};
}

// A boolean, in any of the spellings of YAML 1.1, which that service accepts.
std::optional<bool> parse_flag(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const std::string_view word : {"true", "yes", "on", "y"}) {
    if (lower == word) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "n"}) {
    if (lower == word) return false;
  }
  return std::nullopt;
}

// A whole number, in any of the bases of YAML 1.1: 1_000, 0x3e8, 0o17, 017, 0b11.
std::optional<std::uint64_t> parse_integer(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  std::string_view rest = digits;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  int base = 10;
  for (const auto& [prefix, value] :
       {std::pair<std::string_view, int>{"0x", 16}, {"0X", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}}) {
    if (rest.size() <= prefix.size() || !rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    base = value;
    break;
  }
  std::uint64_t number = 0;
  const char* end = rest.data() + rest.size();
  const auto [stopped, error] = std::from_chars(rest.data(), end, number, base);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

class EnvoyLoader {
 public:
  EnvoyLoader(Diagnostics& diagnostics, const EnvoyOptions& options)
      : diagnostics_(diagnostics), options_(options) {}

  void load(const EnvoyFile& file) {
    const auto document = config::parse_document(
        file.text, file.name, diagnostics_,
        {.lenient = true, .bytes_max = options_.bytes_max, .depth_max = 100});
    if (!document) return;
    const Node& root = document->root;
    if (!root.is_map()) {
      diagnostics_.error(root, "the file has no domain", "write domain: NAME and descriptors:");
      return;
    }
    check_keys(root);
    EnvoyRules::Domain* domain = open_domain(root, file.name);
    if (domain == nullptr) return;
    std::vector<EnvoyLevel> way;
    load_descriptors(root.find("descriptors"), domain->root, way, domain->name);
  }

  [[nodiscard]] EnvoyRules take() {
    std::sort(rules_.domains_.begin(), rules_.domains_.end(),
              [](const auto& a, const auto& b) { return a->name < b->name; });
    return std::move(rules_);
  }

 private:
  // Keys and lists anywhere in the file but in metadata, whose contents are free.
  void check_keys(const Node& node) {
    if (node.is_list()) {
      for (const Node& item : node.items()) check_item(item);
    }
    if (!node.is_map()) return;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Node& key = node.key(i);
      if (std::find(kKnownKeys.begin(), kKnownKeys.end(), key.text) == kKnownKeys.end()) {
        const std::string_view nearest = nearest_word(key.text, kKnownKeys);
        diagnostics_.error(key, fmt::format("unknown key {}", sluice::quoted(key.text)),
                           nearest.empty() ? "see the configuration of envoyproxy/ratelimit"
                                           : fmt::format("did you mean '{}'?", nearest));
      } else if (key.text != "metadata") {
        check_keys(node.value(i));
      }
    }
  }

  void check_item(const Node& item) {
    if (item.is_map()) {
      check_keys(item);
    } else {
      diagnostics_.error(item, "an item of a list must be a map", "write - key: value");
    }
  }

  [[nodiscard]] EnvoyRules::Domain* open_domain(const Node& root, const std::string& file) {
    const std::string_view name = text_of(root.find("domain"));
    if (name.empty()) {
      diagnostics_.error(root, "the file has no domain", "write domain: NAME");
      return nullptr;
    }
    for (const auto& known : rules_.domains_) {
      if (known->name != name) continue;
      if (options_.merge_domains) return known.get();
      diagnostics_.error(
          *root.find("domain"),
          fmt::format("the domain {} is already in {}", sluice::quoted(name), known->file),
          "keep a domain in one file, or allow merging");
      return nullptr;
    }
    auto domain = std::make_unique<EnvoyRules::Domain>();
    domain->name = name;
    domain->file = file;
    rules_.domains_.push_back(std::move(domain));
    return rules_.domains_.back().get();
  }

  void load_descriptors(const Node* list, EnvoyRules::Node& parent, std::vector<EnvoyLevel>& way,
                        const std::string& domain) {
    if (list == nullptr || list->is_null()) return;
    if (!list->is_list()) {
      diagnostics_.error(*list, "'descriptors' must be a list", "write - key: NAME below it");
      return;
    }
    for (const Node& item : list->items()) {
      if (item.is_map()) load_descriptor(item, parent, way, domain);
    }
  }

  void load_descriptor(const Node& map, EnvoyRules::Node& parent, std::vector<EnvoyLevel>& way,
                       const std::string& domain) {
    const std::string_view key = text_of(map.find("key"));
    if (key.empty()) {
      diagnostics_.error(map, "a descriptor has no key", "write key: NAME");
      return;
    }
    const std::string_view value = text_of(map.find("value"));
    std::string composite = value.empty() ? std::string{key} : fmt::format("{}_{}", key, value);
    EnvoyRules::Node* node = parent.add(composite);
    if (node == nullptr) {
      diagnostics_.error(
          *map.find("key"),
          fmt::format("the descriptor {} is written twice", sluice::quoted(composite)),
          "put both below one");
      return;
    }
    way.push_back({.composite = std::move(composite),
                   .value_to_metric = read_flag(map.find("value_to_metric")),
                   .share_threshold = read_share_threshold(map, value),
                   .value_pattern = std::string{value}});
    load_limit(map, *node, way, domain);
    load_descriptors(map.find("descriptors"), *node, way, domain);
    way.pop_back();
  }

  // Absent and null are false.
  [[nodiscard]] bool read_flag(const Node* node) {
    if (node == nullptr || node->is_null()) return false;
    const auto flag = parse_flag(text_of(node));
    if (!flag) {
      diagnostics_.error(*node,
                         fmt::format("{} is neither true nor false", sluice::quoted(text_of(node))),
                         "write true or false");
    }
    return flag.value_or(false);
  }

  [[nodiscard]] bool read_share_threshold(const Node& map, std::string_view value) {
    const Node* node = map.find("share_threshold");
    if (!read_flag(node)) return false;
    if (value.find('*') != std::string_view::npos) return true;
    diagnostics_.error(*node, "share_threshold is for values with a *",
                       "leave it out, or write a wildcard");
    return false;
  }

  void load_limit(const Node& map, EnvoyRules::Node& node, const std::vector<EnvoyLevel>& way,
                  const std::string& domain) {
    EnvoyLimit limit;
    limit.shadow_mode = read_flag(map.find("shadow_mode"));
    limit.quota_mode = read_flag(map.find("quota_mode"));
    limit.detailed_metric = read_flag(map.find("detailed_metric"));
    const Node* rate = map.find("rate_limit");
    if (rate == nullptr || rate->is_null()) return;
    if (!rate->is_map()) {
      diagnostics_.error(*rate, "'rate_limit' must be a map",
                         "write {unit: second, requests_per_unit: 10}");
      return;
    }
    limit.unlimited = read_flag(rate->find("unlimited"));
    limit.unit = read_unit(*rate, limit.unlimited);
    limit.requests_per_unit = read_amount(rate->find("requests_per_unit"));
    limit.name = text_of(rate->find("name"));
    limit.replaces = read_replaces(rate->find("replaces"), limit.name);
    if (const Node* metadata = map.find("metadata"); metadata != nullptr && !metadata->is_null()) {
      limit.metadata_json = config::to_json(*metadata);
    }
    limit.domain = domain;
    limit.metric = domain;
    for (const EnvoyLevel& level : way) limit.metric += "." + level.composite;
    limit.levels = way;
    node.limit = std::move(limit);
  }

  [[nodiscard]] EnvoyUnit read_unit(const Node& rate, bool unlimited) {
    const Node* node = rate.find("unit");
    const std::string_view text = text_of(node);
    if (unlimited) {
      if (!text.empty()) {
        diagnostics_.error(*node, "what is unlimited has no unit", "remove 'unit' or 'unlimited'");
      }
      return EnvoyUnit::unknown;
    }
    for (const EnvoyUnit unit : kUnits) {
      if (lower_case(text) == to_string(unit)) return unit;
    }
    diagnostics_.error(node == nullptr ? rate : *node,
                       fmt::format("invalid unit {}", sluice::quoted(text)),
                       "use second, minute, hour, day, week, month or year");
    return EnvoyUnit::unknown;
  }

  [[nodiscard]] std::uint32_t read_amount(const Node* node) {
    if (node == nullptr || node->is_null()) return 0;
    const auto number = parse_integer(text_of(node));
    if (number && *number <= std::numeric_limits<std::uint32_t>::max()) {
      return static_cast<std::uint32_t>(*number);
    }
    diagnostics_.error(
        *node,
        fmt::format("requests_per_unit: {} is no such number", sluice::quoted(text_of(node))),
        "use 0 to 4294967295");
    return 0;
  }

  [[nodiscard]] std::vector<std::string> read_replaces(const Node* list, std::string_view own) {
    std::vector<std::string> names;
    if (list == nullptr || list->is_null()) return names;
    if (!list->is_list()) {
      diagnostics_.error(*list, "'replaces' must be a list", "write - name: NAME below it");
      return names;
    }
    for (const Node& item : list->items()) {
      if (!item.is_map()) continue;  // reported with the keys
      const std::string_view name = text_of(item.find("name"));
      if (name.empty()) {
        diagnostics_.error(item, "'replaces' has an empty name", "write - name: NAME");
      } else if (name == own) {
        diagnostics_.error(item, fmt::format("the limit {} replaces itself", sluice::quoted(name)),
                           "name another one");
      } else {
        names.emplace_back(name);
      }
    }
    return names;
  }

  Diagnostics& diagnostics_;
  const EnvoyOptions& options_;
  EnvoyRules rules_;
};

namespace {

// Regular files below a folder, also through links, in the order of their paths.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder,
                                               Diagnostics& diagnostics) {
  const FolderContent content = visible_below(folder);
  if (content.error) {
    diagnostics.error(
        {.message = fmt::format("cannot read the folder {} with all below it: {}",
                                sluice::quoted(folder.string()), content.error.message()),
         .remedy = "name a folder that this program's user may read"});
  }
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::directory_entry& entry : content.entries) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

EnvoyRules load_envoy_rules(std::span<const EnvoyFile> files, Diagnostics& diagnostics,
                            const EnvoyOptions& options) {
  EnvoyLoader loader{diagnostics, options};
  for (const EnvoyFile& file : files) loader.load(file);
  return loader.take();
}

EnvoyRules load_envoy_directory(const std::filesystem::path& folder, Diagnostics& diagnostics,
                                const EnvoyOptions& options) {
  std::vector<EnvoyFile> files;
  for (const auto& path : files_below(folder, diagnostics)) {
    auto text = read_settled_file(path.string(), {.bytes_max = options.bytes_max});
    if (text) {
      files.push_back({path.string(), *std::move(text)});
    } else {
      diagnostics.error(std::move(text.error().what));
    }
  }
  return load_envoy_rules(files, diagnostics, options);
}

}  // namespace sluice::rules
