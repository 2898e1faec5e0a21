#include "engine/envoy_decider.h"

#include <algorithm>

namespace sluice::engine {
namespace {

using rules::EnvoyUnit;

tl::unexpected<Error> refused(const char* why) noexcept {
  return tl::unexpected(Error{.code = Errc::invalid_argument, .where = why});
}

bool is_known(EnvoyUnit unit) noexcept { return rules::seconds_of(unit) != 0; }

bool has_unknown_unit(const EnvoyDescriptor& descriptor) noexcept {
  return descriptor.limit && !is_known(descriptor.limit->unit);
}

// More hits than a counter holds fill it.
store::Cost hits_of(const EnvoyRequest& request, const EnvoyDescriptor& descriptor) noexcept {
  const std::uint64_t hits =
      descriptor.hits_addend.value_or(std::max<std::uint32_t>(request.hits_addend, 1));
  return static_cast<store::Cost>(std::min(hits, EnvoySnapshot::kCountMax));
}

// Until the end of the window, from the current second: never 0.
std::chrono::seconds until_reset(EnvoyUnit unit, Now now) noexcept {
  const std::chrono::seconds length{rules::seconds_of(unit)};
  const auto second = std::chrono::floor<std::chrono::seconds>(now.wall().time_since_epoch());
  return length - second % length;
}

bool replaces(const rules::EnvoyLimit* limit, std::string_view name) noexcept {
  return limit != nullptr && std::ranges::find(limit->replaces, name) != limit->replaces.end();
}

EnvoyStatus counted_status(const EnvoyCurrentLimit& limit, bool shadow, std::uint64_t sum,
                           Now now) noexcept {
  const std::uint64_t amount = limit.requests_per_unit;
  const bool over = sum > amount;
  return {.code = over && !shadow ? EnvoyCode::over_limit : EnvoyCode::ok,
          .current_limit = limit,
          .limit_remaining = static_cast<std::uint32_t>(over ? 0 : amount - sum),
          .duration_until_reset = until_reset(limit.unit, now)};
}

}  // namespace

Result<void> EnvoyDecider::should_rate_limit(const EnvoyRequest& request, Now now,
                                             EnvoyResponse& response) noexcept {
  if (Result<void> good = check(request); !good) {
    ++counters_.bad_requests;
    return good;
  }
  find_limits(request);
  drop_replaced();
  if (Result<void> counted = count_all(request, now); !counted) {
    ++counters_.store_failures;
    return counted;
  }
  response.count_ = count_;
  std::ranges::transform(all(), response.statuses_.begin(), [now](const Applied& one) {
    switch (one.kind) {
      case Applied::Kind::nothing: break;
      case Applied::Kind::unlimited: return EnvoyStatus{.limit_remaining = kEnvoyUnlimited};
      case Applied::Kind::counted:
        return counted_status(one.limit, one.rule != nullptr && one.rule->shadow_mode, one.sum,
                              now);
    }
    return EnvoyStatus{};
  });
  response.overall_ = overall(response.statuses());
  ++counters_.decided;
  if (response.overall_ == EnvoyCode::over_limit) ++counters_.over_limit;
  return {};
}

Result<void> EnvoyDecider::check(const EnvoyRequest& request) const noexcept {
  if (snapshot_ == nullptr) {
    return tl::unexpected(
        Error{.code = Errc::not_found, .transient = true, .where = "no rules are loaded"});
  }
  if (request.domain.empty()) return refused("the domain is empty");
  if (request.descriptors.empty()) return refused("there are no descriptors");
  if (request.descriptors.size() > kEnvoyDescriptorsMax) {
    return tl::unexpected(
        Error{.code = Errc::unsupported, .where = "there are more than 32 descriptors"});
  }
  if (std::ranges::any_of(request.descriptors, has_unknown_unit)) {
    return refused("the limit of a descriptor has no known unit");
  }
  return {};
}

// ---- find the limits ---------------------------------------------------------------------------

void EnvoyDecider::find_limits(const EnvoyRequest& request) noexcept {
  count_ = request.descriptors.size();
  if (!snapshot_->rules().has_domain(request.domain)) {  // not even for limits of the request
    ++counters_.unknown_domains;
    std::ranges::fill(all(), Applied{});
    return;
  }
  std::ranges::transform(request.descriptors, applied_.begin(),
                         [&](const EnvoyDescriptor& one) { return applied(request.domain, one); });
}

EnvoyDecider::Applied EnvoyDecider::applied(std::string_view domain,
                                            const EnvoyDescriptor& descriptor) const noexcept {
  if (descriptor.limit) {
    const auto& [amount, unit] = *descriptor.limit;
    return {.kind = Applied::Kind::counted,
            .limit = {.requests_per_unit = amount, .unit = unit, .name = {}}};
  }
  const rules::EnvoyLimit* rule = snapshot_->rules().match(domain, descriptor.entries);
  if (rule == nullptr) return {};
  if (rule->unlimited) return {.kind = Applied::Kind::unlimited, .limit = {}, .rule = rule};
  return {.kind = Applied::Kind::counted,
          .limit = {.requests_per_unit = rule->requests_per_unit,
                    .unit = rule->unit,
                    .name = rule->name},
          .rule = rule};
}

// Two limits may replace each other: each is checked as it was found, so both go. Only counted
// limits have a name here, so an unlimited descriptor stays so, whichever limit replaces it.
void EnvoyDecider::drop_replaced() noexcept {
  for (Applied& one : all()) {
    if (one.limit.name.empty()) continue;
    const bool replaced = std::ranges::any_of(
        all(), [&](const Applied& other) { return replaces(other.rule, one.limit.name); });
    if (replaced) one.kind = Applied::Kind::nothing;
  }
}

// ---- count in the store ------------------------------------------------------------------------

Result<void> EnvoyDecider::count_all(const EnvoyRequest& request, Now now) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    Applied& one = applied_[i];
    if (one.kind != Applied::Kind::counted) continue;
    const EnvoyDescriptor& descriptor = request.descriptors[i];
    const Result<std::uint64_t> sum =
        count({.key = snapshot_->key(request.domain, descriptor.entries, one.limit.unit, one.rule),
               .limit = snapshot_->counter(one.limit.unit),
               .cost = hits_of(request, descriptor)},
              now);
    if (!sum) return tl::unexpected(sum.error());
    one.sum = *sum;
  }
  return {};
}

// The sum after these hits, which are added even if over the limit.
Result<std::uint64_t> EnvoyDecider::count(const store::Check& check, Now now) noexcept {
  call_.checks[0] = check;
  call_.count = 1;
  const bool late = store_.decide_all(call_, now) == store::Completion::later;
  if (late) store_.cancel(call_);
  if (late || call_.failed) {
    return tl::unexpected(
        Error{.code = Errc::io, .transient = true, .where = "the store does not answer"});
  }
  return EnvoySnapshot::kCountMax - call_.answers[0].decision.remaining;
}

// ---- compare the sums --------------------------------------------------------------------------

// Over: one ordinary limit is exceeded, or all quotas are used up. Under the global mode a
// descriptor without a limit is a quota that is never used up; an unlimited descriptor is none.
EnvoyCode EnvoyDecider::overall(std::span<const EnvoyStatus> statuses) const noexcept {
  bool refused = false;
  std::size_t quotas = 0;
  std::size_t used_up = 0;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const bool over = statuses[i].code == EnvoyCode::over_limit;
    if (is_quota(applied_[i])) {
      ++quotas;
      if (over) ++used_up;
    } else {
      refused = refused || over;
    }
  }
  const bool over = refused || (quotas > 0 && used_up == quotas);
  return over && !snapshot_->modes().shadow_mode ? EnvoyCode::over_limit : EnvoyCode::ok;
}

bool EnvoyDecider::is_quota(const Applied& applied) const noexcept {
  if (applied.kind == Applied::Kind::unlimited) return false;
  if (snapshot_->modes().quota_mode) return true;
  const bool counted = applied.kind == Applied::Kind::counted;
  return counted && applied.rule != nullptr && applied.rule->quota_mode;
}

}  // namespace sluice::engine
