// A condition on a text, ready to be asked: any, exact, prefix or regular expression.
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

 private:
  TextMatch::Kind kind_;
  std::string text_;
  std::unique_ptr<const re2::RE2> regex_;
};

}  // namespace sluice::rules
