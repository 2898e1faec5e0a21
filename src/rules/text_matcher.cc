#include "rules/text_matcher.h"

#include <re2/re2.h>

namespace sluice::rules {

TextMatcher::TextMatcher(const TextMatch& wanted) : kind_(wanted.kind), text_(wanted.text) {
  if (kind_ == TextMatch::Kind::regex) {
    regex_ = std::make_unique<const re2::RE2>(text_, re2::RE2::Quiet);
  }
}

TextMatcher::TextMatcher(TextMatcher&&) noexcept = default;
TextMatcher& TextMatcher::operator=(TextMatcher&&) noexcept = default;
TextMatcher::~TextMatcher() = default;

bool TextMatcher::matches(std::string_view value) const noexcept {
  switch (kind_) {
    case TextMatch::Kind::present: return true;
    case TextMatch::Kind::exact: return value == text_;
    case TextMatch::Kind::prefix: return value.starts_with(text_);
    case TextMatch::Kind::regex:
      return re2::RE2::FullMatch(re2::StringPiece{value.data(), value.size()}, *regex_);
  }
  return false;
}

bool TextMatcher::may_match_beginning(std::string_view beginning) const noexcept {
  const bool goes_on = text_.size() > beginning.size() && text_.starts_with(beginning);
  switch (kind_) {
    case TextMatch::Kind::present:
    case TextMatch::Kind::regex: return true;
    case TextMatch::Kind::exact: return goes_on;
    case TextMatch::Kind::prefix: return goes_on || beginning.starts_with(text_);
  }
  return true;
}

}  // namespace sluice::rules
