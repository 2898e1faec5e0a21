// For tests of a RuleSet: rules of some conditions, requests, and the names of those that match.
#pragma once

#include "rules/rule_set.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::rules {

// A request, and who sent it.
struct Sent {
  std::string method = "GET";
  std::string host = "api.example.com";
  std::string path = "/";
  std::string query;
  std::vector<HeaderView> headers;
  std::vector<DescriptorEntry> descriptor;
  std::string domain = "default";
  identity::Identity client;
};

inline RequestView view_of(const Sent& sent) {
  return {.method = sent.method,
          .host = sent.host,
          .target = sent.path,
          .headers = sent.headers,
          .peer = {},
          .tls_subject = {},
          .domain = sent.domain,
          .descriptor = sent.descriptor};
}

inline Asked asked_by(const Sent& sent, const RequestView& request) {
  return {.request = request,
          .domain = sent.domain,
          .host = sent.host,
          .path = sent.path,
          .query = sent.query,
          .client = sent.client};
}

inline std::size_t candidates(const RuleSet& set, const Sent& sent) {
  const RequestView request = view_of(sent);
  return set.candidates(asked_by(sent, request));
}

inline std::vector<std::string> matching(const RuleSet& set, const Sent& sent,
                                         Phase phase = Phase::after_auth) {
  const RequestView request = view_of(sent);
  const Asked asked = asked_by(sent, request);
  Matches matches;
  set.match(asked, phase, matches);
  std::vector<std::string> names;
  for (const Matched& one : matches.span()) {
    names.push_back(set.rules()[one.rule].name);
    const PathTemplate* const path = set.path(asked, one).pattern;
    EXPECT_TRUE(path == nullptr || path->matches(sent.path)) << names.back();
  }
  return names;
}

inline Rule rule(std::string name, Match match) {
  Rule made;
  made.name = std::move(name);
  made.match = std::move(match);
  return made;
}

inline NamedMatch named(std::string name, TextMatch::Kind kind, std::string text = {}) {
  return {.name = std::move(name), .value = {.kind = kind, .text = std::move(text)}};
}

// Of a key.
class SentAttributes final : public identity::Attributes {
 public:
  explicit SentAttributes(std::vector<Named> all) : all_(std::move(all)) {}
  std::string_view find(std::string_view name) const noexcept override {
    for (const Named& one : all_) {
      if (one.first == name) return one.second;
    }
    return {};
  }
  std::span<const Named> all() const noexcept override { return all_; }

 private:
  std::vector<Named> all_;
};

inline const SentAttributes kGold{{{"plan", "gold"}, {"n", "7"}}};
inline const SentAttributes kSilver{{{"plan", "silver"}}};

}  // namespace sluice::rules
