// An answer to Envoy allocates nothing. Part of a program of its own, since it counts every `new`.
#include "engine/envoy_fixture.h"
#include "support/counted_new.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::engine {
namespace {

using rules::EnvoyUnit;

constexpr std::string_view kTree = R"(
domain: a domain whose name does not fit into a short string
descriptors:
  - {key: a, rate_limit: {unit: second, requests_per_unit: 3, name: a name that is longer than that,
     replaces: [{name: another name that is longer than that}]}}
  - {key: b, rate_limit: {unit: day, requests_per_unit: 9,
     name: another name that is longer than that}}
  - {key: free, rate_limit: {unlimited: true}}
  - key: path
    value: /some/long/path/with/a/*/in/the/middle
    share_threshold: true
    descriptors:
      - {key: user, rate_limit: {unit: year, requests_per_unit: 5}, quota_mode: true}
)";

// All that a descriptor can be, within limits and over them, and requests that are errors.
TEST(EnvoyAllocations, AreNotMadeByAnswers) {
  EnvoyFixture service;
  service.use(kTree);
  const std::array a{DescriptorEntry{"a", "a value that does not fit into a short string"}};
  const std::array b{DescriptorEntry{"b", "v"}};
  const std::array free{DescriptorEntry{"free", "v"}};
  const std::array nested{DescriptorEntry{"path", "/some/long/path/with/a/star/in/the/middle"},
                          DescriptorEntry{"user", "ann"}};
  const std::array descriptors{
      EnvoyDescriptor{.entries = b, .limit = {}, .hits_addend = {}},
      EnvoyDescriptor{.entries = free, .limit = {}, .hits_addend = {}},
      EnvoyDescriptor{.entries = nested, .limit = {}, .hits_addend = 2},
      EnvoyDescriptor{.entries = b, .limit = EnvoyOverride{4, EnvoyUnit::month}, .hits_addend = {}},
      EnvoyDescriptor{.entries = a, .limit = {}, .hits_addend = 0},
  };
  int over = 0;
  int errors = 0;
  const auto ask_often = [&] {
    for (std::size_t i = 0; i < 100; ++i) {
      const EnvoyRequest request{
          .domain =
              i % 9 == 0 ? "elsewhere" : "a domain whose name does not fit into a short string",
          .descriptors = std::span{descriptors}.first(i % (descriptors.size() + 1)),
          .hits_addend = 1};
      (void)service.worker.should_rate_limit(service.op, request, service.now);
      if (!service.op.result) {
        ++errors;
      } else if (service.op.response.overall_code() == EnvoyCode::over_limit) {
        ++over;
      }
    }
  };
  const std::uint64_t before = sluice::testing::allocations();
  ask_often();
  EXPECT_EQ(sluice::testing::allocations(), before);
  EXPECT_GT(over, 0);
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace sluice::engine
