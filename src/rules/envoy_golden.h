// For tests: descriptors and the limits that envoyproxy/ratelimit finds for them.
#pragma once

#include <sluice/request.h>

#include <string_view>
#include <vector>

namespace sluice::rules {

// The letters are the names of limits; A has an amount of 1, B of 2, and so on.
inline constexpr std::string_view kEnvoyGolden = R"(
domain: d
descriptors:
  - key: ip
    rate_limit: {unit: second, requests_per_unit: 1, name: A}
  - key: ip
    value: 10.0.0.1
  - key: ip
    value: 10.9.*
    rate_limit: {unit: second, requests_per_unit: 2, name: B}
  - key: ip
    value: 10.*
    rate_limit: {unit: second, requests_per_unit: 3, name: C}
  - key: tenant
    value: gold
    descriptors:
      - key: path
        value: /a
        rate_limit: {unit: minute, requests_per_unit: 4, name: D}
  - key: tenant
    rate_limit: {unit: minute, requests_per_unit: 5, name: E}
    descriptors:
      - key: path
        rate_limit: {unit: hour, requests_per_unit: 6, name: F}
  - key: plan_free
    rate_limit: {unit: day, requests_per_unit: 7, name: G}
  - key: svc
    descriptors:
      - key: op
        value: get*item
        rate_limit: {unit: week, requests_per_unit: 8, name: H}
)";

struct EnvoyGoldenCase {
  const char* name;
  std::vector<DescriptorEntry> entries;
  const char* limit;
};

inline const std::vector<EnvoyGoldenCase> kEnvoyGoldenCases{
    {"key_only_default", {{"ip", "8.8.8.8"}}, "A"},
    {"allow_list_entry", {{"ip", "10.0.0.1"}}, "none"},
    {"first_wildcard_in_file_order", {{"ip", "10.9.1.1"}}, "B"},
    {"second_wildcard", {{"ip", "10.2.1.1"}}, "C"},
    {"deeper_than_the_file", {{"ip", "10.9.1.1"}, {"path", "/a"}}, "none"},
    {"inner_node_without_limit", {{"tenant", "gold"}}, "none"},
    {"inner_node_with_limit", {{"tenant", "silver"}}, "E"},
    {"nested_exact", {{"tenant", "gold"}, {"path", "/a"}}, "D"},
    {"no_way_back", {{"tenant", "gold"}, {"path", "/b"}}, "none"},
    {"keys_alone_at_both_levels", {{"tenant", "silver"}, {"path", "/b"}}, "F"},
    {"composites_are_strings", {{"plan", "free"}}, "G"},
    {"star_for_nothing", {{"svc", "x"}, {"op", "getitem"}}, "H"},
    {"star_in_the_middle", {{"svc", "x"}, {"op", "get-one-item"}}, "H"},
    {"suffix_is_anchored", {{"svc", "x"}, {"op", "get-items"}}, "none"},
    {"case_matters", {{"IP", "8.8.8.8"}}, "none"}};

}  // namespace sluice::rules
