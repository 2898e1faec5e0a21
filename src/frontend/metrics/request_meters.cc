#include "frontend/metrics/request_meters.h"

#include "frontend/metrics/server_metrics.h"

namespace sluice::frontend {
namespace {

using metrics::Registry;
using metrics::Shard;

constexpr std::array<std::string_view, 6> kClassNames{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr std::array<std::string_view, 8> kResultNames{"1xx", "2xx",     "3xx",    "4xx",
                                                       "5xx", "timeout", "failed", "client_closed"};

// 0: no response, or none of a known class.
std::size_t class_of(std::uint16_t status) noexcept {
  const std::size_t hundreds = status / 100U;
  return hundreds < kClassNames.size() ? hundreds : 0;
}

}  // namespace

// ---- requests ---------------------------------------------------------------------------------

RequestMeters::RequestMeters(Registry& registry, std::string_view listener)
    : duration_(registry.histogram(kRequestDuration, {listener})),
      decision_duration_(registry.histogram(kDecisionDuration)),
      received_(registry.counter(kRequestBodyBytes, {listener})),
      sent_(registry.counter(kResponseBodyBytes, {listener})) {
  for (std::size_t i = 0; i < by_class_.size(); ++i) {
    by_class_[i] = registry.counter(kRequests, {listener, kClassNames[i]});
  }
}

void RequestMeters::ended(Shard shard, const AccessRecord& record) const noexcept {
  by_class_[class_of(record.status)].add(shard);
  duration_.record(shard, record.duration);
  received_.add(shard, record.bytes_in);
  sent_.add(shard, record.bytes_out);
  if (record.upstream.meters != nullptr) record.upstream.meters->ended(shard, record);
}

// ---- upstreams --------------------------------------------------------------------------------

UpstreamMeters::UpstreamMeters(Registry& registry, std::string_view upstream)
    : duration_(registry.histogram(kUpstreamDuration, {upstream})),
      retries_(registry.counter(kUpstreamRetries, {upstream})) {
  for (std::size_t i = 0; i < by_result_.size(); ++i) {
    by_result_[i] = registry.counter(kUpstreamRequests, {upstream, kResultNames[i]});
  }
}

// The gateway's status for a failed server: 504 if it timed out, 502 if it was unreachable or its
// response malformed, 503 if the gateway itself lacked something. Anything else is the client's
// doing.
std::size_t UpstreamMeters::result_of(const AccessRecord& record) noexcept {
  if (record.upstream.broke_off) return kFailed;
  if (const std::size_t answered = class_of(record.upstream.status)) return answered - 1;
  if (record.status == 504) return kTimeout;
  const bool is_nonsense = record.upstream.status != 0;
  const bool is_unreached = record.status == 502 || record.status == 503;
  return is_unreached || is_nonsense ? kFailed : kClientClosed;
}

void UpstreamMeters::ended(Shard shard, const AccessRecord& record) const noexcept {
  by_result_[result_of(record)].add(shard);
  if (record.upstream.status != 0) duration_.record(shard, record.upstream.first_byte);
  if (record.upstream.retries > 0) retries_.add(shard, record.upstream.retries);
}

}  // namespace sluice::frontend
