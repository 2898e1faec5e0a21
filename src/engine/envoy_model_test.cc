// Random histories, answered by the worker and by a slow obvious reference with a map of counters.
#include "engine/envoy_fixture.h"
#include "support/property.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice::engine {
namespace {

using rules::EnvoyUnit;
using std::chrono::seconds;

constexpr std::string_view kTree = R"(
domain: d
descriptors:
  - {key: tight, rate_limit: {unit: second, requests_per_unit: 2, name: t}}
  - {key: zero, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: wide, rate_limit: {unit: minute, requests_per_unit: 7, name: w, replaces: [{name: t}]}}
  - {key: free, rate_limit: {unlimited: true, name: w, replaces: [{name: q}]}}
  - {key: dark, rate_limit: {unit: minute, requests_per_unit: 1}, shadow_mode: true}
  - {key: quota, rate_limit: {unit: minute, requests_per_unit: 3, name: q}, quota_mode: true}
  - key: path
    value: /s/*
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 20}
    quota_mode: true
)";

// The tree again, as the reference knows it.
struct Rule {
  std::string key;
  std::uint32_t amount = 0;
  EnvoyUnit unit = EnvoyUnit::unknown;
  std::string name;
  std::string replaces;
  bool unlimited = false;
  bool shadow = false;
  bool quota = false;
  bool shared = false;
};

const std::vector<Rule> kRules{
    {.key = "tight", .amount = 2, .unit = EnvoyUnit::second, .name = "t"},
    {.key = "zero", .amount = 0, .unit = EnvoyUnit::hour},
    {.key = "wide", .amount = 7, .unit = EnvoyUnit::minute, .name = "w", .replaces = "t"},
    {.key = "free", .name = "w", .replaces = "q", .unlimited = true},
    {.key = "dark", .amount = 1, .unit = EnvoyUnit::minute, .shadow = true},
    {.key = "quota", .amount = 3, .unit = EnvoyUnit::minute, .name = "q", .quota = true},
    {.key = "path", .amount = 20, .unit = EnvoyUnit::day, .quota = true, .shared = true},
};

struct Descriptor {
  std::string key;
  std::string value;
  std::optional<EnvoyOverride> limit;
  std::optional<std::uint64_t> hits;
};

struct Request {
  std::string domain;
  std::vector<Descriptor> descriptors;
  std::uint32_t hits = 0;
};

std::int64_t length_of(EnvoyUnit unit) {
  const std::map<EnvoyUnit, std::int64_t> lengths{
      {EnvoyUnit::second, 1},         {EnvoyUnit::minute, 60},      {EnvoyUnit::hour, 3600},
      {EnvoyUnit::day, 86400},        {EnvoyUnit::week, 7 * 86400}, {EnvoyUnit::month, 30 * 86400},
      {EnvoyUnit::year, 365 * 86400},
  };
  return lengths.at(unit);
}

class Reference {
 public:
  explicit Reference(EnvoyModes modes) : modes_(modes) {}

  EnvoyFixture::Answered answer(const Request& request, std::int64_t second) {
    std::vector<std::optional<Rule>> rules;
    std::set<std::string> replaced;
    for (const Descriptor& one : request.descriptors) {
      rules.push_back(find(request.domain, one));
      if (rules.back()) replaced.insert(rules.back()->replaces);
    }
    for (std::optional<Rule>& rule : rules) {
      const bool goes = rule && !rule->unlimited && !rule->name.empty();
      if (goes && replaced.contains(rule->name)) rule.reset();
    }
    EnvoyFixture::Answered answered;
    int refused = 0;
    int quotas = 0;
    int quotas_left = 0;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const EnvoyStatus status = this->status(request, i, rules[i], second);
      answered.statuses.push_back(status);
      if (rules[i] && rules[i]->unlimited) continue;
      const bool over = status.code == EnvoyCode::over_limit;
      if (modes_.quota_mode || (rules[i] && rules[i]->quota)) {
        ++quotas;
        quotas_left += over ? 0 : 1;
      } else {
        refused += over ? 1 : 0;
      }
    }
    const bool over = refused > 0 || (quotas > 0 && quotas_left == 0);
    answered.overall = over && !modes_.shadow_mode ? EnvoyCode::over_limit : EnvoyCode::ok;
    return answered;
  }

 private:
  static std::optional<Rule> find(const std::string& domain, const Descriptor& descriptor) {
    if (domain != "d") return std::nullopt;
    if (descriptor.limit) {
      return Rule{.amount = descriptor.limit->requests_per_unit, .unit = descriptor.limit->unit};
    }
    for (const Rule& rule : kRules) {
      if (rule.key != descriptor.key) continue;
      if (rule.key == "path" && !descriptor.value.starts_with("/s/")) continue;
      return rule;
    }
    return std::nullopt;
  }

  EnvoyStatus status(const Request& request, std::size_t i, const std::optional<Rule>& rule,
                     std::int64_t second) {
    if (!rule) return {};
    if (rule->unlimited) return {.limit_remaining = 4294967295U};
    const Descriptor& descriptor = request.descriptors[i];
    const std::int64_t length = length_of(rule->unit);
    std::uint64_t& sum =
        sums_[fmt::format("{}|{}|{}|{}|{}", request.domain, descriptor.key,
                          rule->shared ? "/s/*" : descriptor.value, length, second / length)];
    sum += descriptor.hits ? *descriptor.hits : std::max<std::uint64_t>(1, request.hits);
    const bool over = sum > rule->amount;
    return {.code = over && !rule->shadow ? EnvoyCode::over_limit : EnvoyCode::ok,
            .current_limit = EnvoyCurrentLimit{rule->amount, rule->unit, name_of(*rule)},
            .limit_remaining = over ? 0 : static_cast<std::uint32_t>(rule->amount - sum),
            .duration_until_reset = seconds{length - second % length}};
  }

  // A text that outlives the rule.
  static std::string_view name_of(const Rule& rule) {
    return rule.name == "t" ? "t" : rule.name == "w" ? "w" : rule.name == "q" ? "q" : "";
  }

  EnvoyModes modes_;
  std::map<std::string, std::uint64_t> sums_;
};

Descriptor any_descriptor() {
  Descriptor one;
  one.key = *rc::gen::element<std::string>("tight", "zero", "wide", "free", "dark", "quota", "path",
                                           "path", "unheard-of");
  one.value = one.key == "path" ? *rc::gen::element<std::string>("/s/1", "/s/2", "/s/*", "/other")
                                : *rc::gen::element<std::string>("1", "2");
  if (*rc::gen::inRange(0, 4) == 0) {
    one.limit = EnvoyOverride{.requests_per_unit = *rc::gen::inRange<std::uint32_t>(0, 12),
                              .unit = static_cast<EnvoyUnit>(*rc::gen::inRange(1, 8))};
  }
  if (*rc::gen::inRange(0, 3) == 0) one.hits = *rc::gen::inRange<std::uint64_t>(0, 4);
  return one;
}

Request any_request() {
  Request request;
  request.domain = *rc::gen::weightedElement<std::string>({{9, "d"}, {1, "e"}});
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) request.descriptors.push_back(any_descriptor());
  request.hits = *rc::gen::inRange<std::uint32_t>(0, 4);
  return request;
}

EnvoyFixture::Answered answer_of(EnvoyFixture& service, const Request& request) {
  std::vector<EnvoyFixture::Asked> asked;
  for (const Descriptor& one : request.descriptors) {
    asked.push_back({.entries = {{one.key, one.value}}, .limit = one.limit, .hits = one.hits});
  }
  return service.ask(asked, request.hits, request.domain);
}

// Every status and the whole, at every step of a history.
TEST(EnvoyModel, AnswersAsTheObviousReferenceDoes) {
  testing::check_property(300, [] {
    const EnvoyModes modes{.shadow_mode = *rc::gen::inRange(0, 4) == 0,
                           .quota_mode = *rc::gen::inRange(0, 4) == 0};
    EnvoyFixture service;
    service.use(kTree, modes);
    Reference reference{modes};
    Nanos time = seconds{1'700'000'000};
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      const int pause_ms = *rc::gen::element(0, 0, 0, 1, 400, 1000, 20'000, 3'600'000);
      time += std::chrono::milliseconds{pause_ms};
      service.now = EnvoyFixture::at(time);
      const Request request = any_request();
      const EnvoyFixture::Answered answered = answer_of(service, request);
      const auto second = std::chrono::floor<seconds>(time).count();
      const EnvoyFixture::Answered expected = reference.answer(request, second);
      RC_ASSERT(answered.statuses.size() == expected.statuses.size());
      for (std::size_t s = 0; s < expected.statuses.size(); ++s) {
        RC_LOG() << "step " << i << ", descriptor " << request.descriptors[s].key << "\n";
        RC_ASSERT(answered.statuses[s] == expected.statuses[s]);
      }
      RC_ASSERT(answered.overall == expected.overall);
    }
  });
}

}  // namespace
}  // namespace sluice::engine
