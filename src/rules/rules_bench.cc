// What it costs to find the rules that concern a request, by how many rules there are.
//
// A third of the rules have exact paths, a third templates, a third conditions on a header or the
// client. Requests go through all sorts, with a dozen headers; one in four is concerned by nothing.

#include "base/random.h"
#include "rules/rule_set.h"

#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::rules;

Rule mixed_rule(std::uint32_t i) {
  Rule rule;
  const std::string number = std::to_string(i);
  rule.name = "rule-" + number;
  switch (i % 6) {
    case 0:
    case 1: rule.match.paths = {"/v1/things-" + number}; break;
    case 2: rule.match.paths = {"/v1/users/{id}/of-" + number}; break;
    case 3: rule.match.paths = {"/v2/of-" + number + "/**"}; break;
    case 4:
      rule.match.paths = {"/v1/**"};
      rule.match.headers = {
          {.name = "x-plan", .value = {.kind = TextMatch::Kind::exact, .text = "p" + number}}};
      break;
    default: rule.match.tenants = {"tenant-" + number}; break;
  }
  return rule;
}

// What a request was made of; the views stay good.
struct Made {
  std::string path;
  std::string plan;
  std::string tenant;
  std::vector<HeaderView> headers;
  RequestView request;
  identity::Identity client;
};

std::unique_ptr<Made> made_for(std::uint32_t i, bool concerned) {
  auto made = std::make_unique<Made>();
  const std::string number = std::to_string(i) + (concerned ? "" : "-not");
  made->path = "/v1/nothing/in/particular";
  switch (i % 6) {
    case 0:
    case 1: made->path = "/v1/things-" + number; break;
    case 2: made->path = "/v1/users/4711/of-" + number; break;
    case 3: made->path = "/v2/of-" + number + "/a/b"; break;
    case 4: made->plan = "p" + number; break;
    default: made->tenant = "tenant-" + number; break;
  }
  made->headers = {{"Host", "api.example.com"},
                   {"User-Agent", "bench/1.0"},
                   {"Accept", "*/*"},
                   {"Accept-Encoding", "gzip"},
                   {"Accept-Language", "en"},
                   {"X-Plan", made->plan},
                   {"Cookie", "a=1; b=2"},
                   {"Connection", "close"},
                   {"X-Request-Id", "7"},
                   {"Content-Length", "0"},
                   {"Referer", "/"},
                   {"Origin", "null"}};
  made->request = {.method = "GET",
                   .host = "api.example.com",
                   .target = made->path,
                   .headers = made->headers,
                   .peer = {},
                   .tls_subject = {},
                   .domain = "default",
                   .descriptor = {}};
  made->client.tenant = made->tenant;
  made->client.tier = "free";
  return made;
}

void match_one_request(benchmark::State& state) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  RuleList list;
  for (std::uint32_t i = 0; i < count; ++i) list.rules.push_back(mixed_rule(i));
  const RuleSet set{std::move(list)};
  Random random{1};
  std::vector<std::unique_ptr<Made>> requests;
  for (int i = 0; i < 256; ++i) {
    requests.push_back(
        made_for(static_cast<std::uint32_t>(random.below(count)), random.below(4) != 0));
  }
  Matches matches;
  std::size_t at = 0;
  for (auto _ : state) {
    const Made& made = *requests[at++ % requests.size()];
    set.match({.request = made.request,
               .domain = "default",
               .host = "api.example.com",
               .path = made.path,
               .query = {},
               .client = made.client},
              Phase::after_auth, matches);
    benchmark::DoNotOptimize(matches.count);
  }
}
BENCHMARK(match_one_request)->Arg(10)->Arg(1000)->Arg(10'000);

void compile_rules(benchmark::State& state) {
  RuleList list;
  for (std::uint32_t i = 0; i < 10'000; ++i) list.rules.push_back(mixed_rule(i));
  for (auto _ : state) {
    const RuleSet set{list};
    benchmark::DoNotOptimize(set.rules().size());
  }
}
BENCHMARK(compile_rules)->Unit(benchmark::kMillisecond);

}  // namespace
