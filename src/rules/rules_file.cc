#include "rules/rules_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace sluice::rules {

Parsed<std::string> read_rules_file(const std::string& path, const ReadLimits& limits) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  const std::string shown = error ? path : whole.string();
  auto text = read_settled_file(shown, limits);
  if (!text) return tl::unexpected(std::move(text.error().what));
  if (text->empty()) {
    return mistake(fmt::format("{} is empty", shown),
                   "to have no rules at all, write an empty list of them");
  }
  return *std::move(text);
}

}  // namespace sluice::rules
