#include "frontend/metrics/request_meters.h"

#include "frontend/metrics/server_metrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::frontend {
namespace {

using namespace std::chrono_literals;

class Meters : public ::testing::Test {
 protected:
  void ended(std::uint16_t status, std::uint16_t of_upstream, std::uint32_t retries = 0,
             bool broke_off = false) {
    AccessRecord record;
    record.status = status;
    record.duration = 3ms;
    record.bytes_in = 10;
    record.bytes_out = 20;
    record.upstream = {.name = "app",
                       .address = {},
                       .status = of_upstream,
                       .broke_off = broke_off,
                       .first_byte = 2ms,
                       .retries = retries,
                       .meters = &upstream_};
    requests_.ended(shard_++ % 2, record);
  }
  double value(const Metric& metric, const std::vector<std::string>& values) const {
    const metrics::FamilyReading family = registry_.read(metric);
    for (const metrics::SeriesReading& series : family.series) {
      if (series.values == values) return series.value;
    }
    return -1;
  }
  std::uint64_t count(const Metric& metric) const {
    const metrics::FamilyReading family = registry_.read(metric);
    std::uint64_t all = 0;
    for (const std::uint64_t one : family.series.at(0).buckets) all += one;
    return all;
  }

  metrics::Registry registry_{2};
  RequestMeters requests_{registry_, "gateway"};
  UpstreamMeters upstream_{registry_, "app"};
  metrics::Shard shard_ = 0;
};

TEST_F(Meters, CountRequestsByWhatWasAnswered) {
  for (const int status : {200, 204, 302, 429, 503, 0, 999}) {
    ended(static_cast<std::uint16_t>(status), 0);
  }
  EXPECT_EQ(value(kRequests, {"gateway", "2xx"}), 2);
  EXPECT_EQ(value(kRequests, {"gateway", "3xx"}), 1);
  EXPECT_EQ(value(kRequests, {"gateway", "4xx"}), 1);
  EXPECT_EQ(value(kRequests, {"gateway", "5xx"}), 1);
  EXPECT_EQ(value(kRequests, {"gateway", "none"}), 2) << "of no class";
  EXPECT_EQ(count(kRequestDuration), 7U);
  EXPECT_EQ(value(kRequestBodyBytes, {"gateway"}), 70);
  EXPECT_EQ(value(kResponseBodyBytes, {"gateway"}), 140);
}

TEST_F(Meters, CountWhatServersDid) {
  ended(200, 200);
  ended(404, 404, 1);
  ended(504, 0);
  ended(502, 0, 2);
  ended(503, 0);  // the gateway lacked something
  ended(0, 0);
  ended(600, 600);  // no class that anybody knows
  ended(200, 200, 0, true);
  EXPECT_EQ(value(kUpstreamRequests, {"app", "2xx"}), 1);
  EXPECT_EQ(value(kUpstreamRequests, {"app", "4xx"}), 1);
  EXPECT_EQ(value(kUpstreamRequests, {"app", "timeout"}), 1);
  EXPECT_EQ(value(kUpstreamRequests, {"app", "failed"}), 4);
  EXPECT_EQ(value(kUpstreamRequests, {"app", "client_closed"}), 1);
  EXPECT_EQ(value(kUpstreamRetries, {"app"}), 3);
  EXPECT_EQ(count(kUpstreamDuration), 4U) << "only of those that answered";
}

}  // namespace
}  // namespace sluice::frontend
