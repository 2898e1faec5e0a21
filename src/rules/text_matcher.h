// A compiled condition on a text: any, exact, prefix or regular expression.
//
// Immutable.
#pragma once

#include "rules/rule.h"

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace sluice::rules {

class TextMatcher {
 public:
  explicit TextMatcher(const TextMatch& wanted);
  TextMatcher(const TextMatcher&) = delete;
  TextMatcher& operator=(const TextMatcher&) = delete;
  TextMatcher(TextMatcher&&) noexcept;
  TextMatcher& operator=(TextMatcher&&) noexcept;
  ~TextMatcher();

  [[nodiscard]] bool matches(std::string_view value) const noexcept;
  // Whether a longer value with this beginning may match. False only if it certainly cannot: a
  // value too long to be read does not evade a condition.
  [[nodiscard]] bool may_match_beginning(std::string_view beginning) const noexcept;

 private:
  TextMatch::Kind kind_;
  std::string text_;
  std::unique_ptr<const re2::RE2> regex_;
};

}  // namespace sluice::rules
