// Inside of EnvoyRules, shared by the loader and the matcher.
#pragma once

#include "rules/envoy_rules.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::rules {

struct EnvoyRules::Node {
  std::string composite;
  std::optional<EnvoyLimit> limit;
  std::vector<std::unique_ptr<Node>> children;  // in the order of their composites
  std::vector<const Node*> wildcards;           // of the children, in the order of the file
  std::vector<const Node*> in_file_order;

  [[nodiscard]] const Node* find(std::string_view key) const noexcept;
  [[nodiscard]] const Node* find(std::string_view key, std::string_view value) const noexcept;

  // Null if there is a child with that composite already.
  [[nodiscard]] Node* add(std::string composite_text);
};

struct EnvoyRules::Domain {
  std::string name;
  std::string file;
  Node root;
};

}  // namespace sluice::rules
