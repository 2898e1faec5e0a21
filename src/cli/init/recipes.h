// Configurations to begin with.
//
// Each is a plain file under recipes/, part of the program by way of the build, so that tests,
// documents and users see the same text. What belongs to a recipe beyond its text stands here: keys
// that are made afresh for everybody who uses it, and commands that show what it does.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct RecipeKey {
  std::string_view name;  // and user
  std::string_view tier;
};

struct Recipe {
  std::string_view name;
  std::string_view summary;              // one line
  std::vector<RecipeKey> keys;           // for the key file; none: it has no such file
  std::vector<std::string_view> trials;  // commands; {file} is the configuration, KEY a key
};

[[nodiscard]] std::span<const Recipe> recipes();

// The configuration: src/cli/init/recipes/NAME.yaml. Empty for a name that is not known.
[[nodiscard]] std::string_view recipe_text(std::string_view name) noexcept;

}  // namespace sluice::cli
