#include "cli/load/http/policies.h"

#include "base/characters.h"
#include "base/text.h"

#include <algorithm>

namespace sluice::cli {
namespace {

// Takes what stands before the mark, outside of quotes, off the front of the text.
std::string_view take_until(std::string_view& text, char mark) noexcept {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (quoted && text[end] == '\\') {
      ++end;
    } else if (text[end] == '"') {
      quoted = !quoted;
    } else if (text[end] == mark && !quoted) {
      break;
    }
  }
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(taken);
}

// A string of structured fields, or a token.
std::string bare_name(std::string_view item) {
  if (item.size() < 2 || item.front() != '"' || item.back() != '"') return std::string{item};
  std::string name;
  for (std::size_t i = 1; i + 1 < item.size(); ++i) {
    if (item[i] == '\\' && i + 2 < item.size()) ++i;
    name += item[i];
  }
  return name;
}

std::optional<StatedPolicy> parse_policy(std::string_view item) {
  StatedPolicy policy{.name = bare_name(take_until(item, ';'))};
  while (!item.empty()) {
    const std::string_view parameter = take_until(item, ';');
    const std::optional<std::uint64_t> number =
        parse_number(parameter.substr(std::min<std::size_t>(2, parameter.size())));
    if (parameter.starts_with("q=") && number) policy.quota = *number;
    if (parameter.starts_with("w=") && number) policy.window_seconds = *number;
  }
  if (policy.name.empty() || policy.window_seconds == 0) return std::nullopt;
  return policy;
}

}  // namespace

std::vector<StatedPolicy> parse_policies(std::string_view value) {
  std::vector<StatedPolicy> policies;
  while (!value.empty()) {
    if (auto policy = parse_policy(take_until(value, ','))) policies.push_back(*std::move(policy));
  }
  return policies;
}

StatedPolicy* PolicyBook::find_or_add(const StatedPolicy& policy) {
  const auto known = std::ranges::find_if(policies_, [&](const StatedPolicy& one) {
    return one.name == policy.name && one.quota == policy.quota &&
           one.window_seconds == policy.window_seconds;
  });
  if (known != policies_.end()) return &*known;
  if (policies_.size() == kMost) return nullptr;
  policies_.push_back({policy.name, policy.quota, policy.window_seconds, 0});
  return &policies_.back();
}

void PolicyBook::note(std::string_view value) {
  if (value != last_value_) {
    last_value_ = value;
    last_.clear();
    for (const StatedPolicy& policy : parse_policies(value)) {
      const StatedPolicy* const kept = find_or_add(policy);
      if (kept != nullptr) last_.push_back(static_cast<std::size_t>(kept - policies_.data()));
    }
  }
  for (const std::size_t place : last_) ++policies_[place].answers;
}

void PolicyBook::add(const PolicyBook& other) {
  for (const StatedPolicy& policy : other.policies_) {
    if (StatedPolicy* const kept = find_or_add(policy)) kept->answers += policy.answers;
  }
}

}  // namespace sluice::cli
