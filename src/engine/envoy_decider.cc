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

bool is_quota(const EnvoyModes& modes, const EnvoyApplied& applied) noexcept {
  if (applied.kind == EnvoyApplied::Kind::unlimited) return false;
  if (modes.quota_mode) return true;
  const bool counted = applied.kind == EnvoyApplied::Kind::counted;
  return counted && applied.rule != nullptr && applied.rule->quota_mode;
}

EnvoyStatus status_of(const EnvoyApplied& one, Now now) noexcept {
  switch (one.kind) {
    case EnvoyApplied::Kind::nothing: break;
    case EnvoyApplied::Kind::unlimited: return {.limit_remaining = kEnvoyUnlimited};
    case EnvoyApplied::Kind::counted:
      return counted_status(one.limit, one.rule != nullptr && one.rule->shadow_mode, one.sum, now);
  }
  return {};
}

}  // namespace

store::Completion EnvoyDecider::should_rate_limit(EnvoyOp& op, const EnvoyRequest& request,
                                                  Now now) noexcept {
  op.result = check(request);
  if (!op.result) {
    ++counters_.bad_requests;
    return store::Completion::now;
  }
  EnvoyDeciding& deciding = pool_.take();
  deciding.now = now;
  find_limits(deciding, request);
  drop_replaced(deciding);
  collect_checks(deciding, request);
  store::Call& call = deciding.call;
  call.owner = &op;
  call.completed = &EnvoyDecider::later;
  if (call.count > 0 && store_.decide_all(call, now) == store::Completion::later) {
    deciding.snapshot = snapshot_;  // its names and modes are needed then
    op.deciding_ = &deciding;
    op.worker_ = this;
    return store::Completion::later;
  }
  conclude(op, deciding);
  pool_.give_back(deciding);
  return store::Completion::now;
}

void EnvoyDecider::later(store::Call& call) noexcept {
  EnvoyOp& op = *static_cast<EnvoyOp*>(call.owner);
  EnvoyDecider& self = *op.worker_;
  EnvoyDeciding& deciding = *op.deciding_;
  self.conclude(op, deciding);
  op.deciding_ = nullptr;
  if (op.completed != nullptr) op.completed(op);
  deciding.snapshot.reset();
  self.pool_.give_back(deciding);
}

void EnvoyDecider::abandon(EnvoyOp& op, Now now) noexcept {
  if (!op.waiting()) return;
  EnvoyDeciding& deciding = *std::exchange(op.deciding_, nullptr);
  store_.cancel(deciding.call, now);
  deciding.snapshot.reset();
  pool_.give_back(deciding);
}

void EnvoyDecider::conclude(EnvoyOp& op, EnvoyDeciding& deciding) noexcept {
  op.result = read_sums(deciding);
  if (!op.result) {
    ++counters_.store_failures;
    return;
  }
  EnvoyResponse& response = op.response;
  response.count_ = deciding.count;
  std::ranges::transform(deciding.all(), response.statuses_.begin(),
                         [&](const EnvoyApplied& one) { return status_of(one, deciding.now); });
  const EnvoySnapshot& snapshot = deciding.snapshot ? *deciding.snapshot : *snapshot_;
  response.overall_ = overall(snapshot.modes(), deciding.all(), response.statuses());
  ++counters_.decided;
  if (response.overall_ == EnvoyCode::over_limit) ++counters_.over_limit;
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

void EnvoyDecider::find_limits(EnvoyDeciding& deciding, const EnvoyRequest& request) noexcept {
  deciding.count = request.descriptors.size();
  if (!snapshot_->rules().has_domain(request.domain)) {  // not even for limits of the request
    ++counters_.unknown_domains;
    std::ranges::fill(deciding.all(), EnvoyApplied{});
    return;
  }
  std::ranges::transform(request.descriptors, deciding.applied.begin(),
                         [&](const EnvoyDescriptor& one) { return applied(request.domain, one); });
}

EnvoyApplied EnvoyDecider::applied(std::string_view domain,
                                   const EnvoyDescriptor& descriptor) const noexcept {
  if (descriptor.limit) {
    const auto& [amount, unit] = *descriptor.limit;
    return {.kind = EnvoyApplied::Kind::counted,
            .limit = {.requests_per_unit = amount, .unit = unit, .name = {}}};
  }
  const rules::EnvoyLimit* rule = snapshot_->rules().match(domain, descriptor.entries);
  if (rule == nullptr) return {};
  if (rule->unlimited) return {.kind = EnvoyApplied::Kind::unlimited, .limit = {}, .rule = rule};
  return {.kind = EnvoyApplied::Kind::counted,
          .limit = {.requests_per_unit = rule->requests_per_unit,
                    .unit = rule->unit,
                    .name = rule->name},
          .rule = rule};
}

// Two limits may replace each other: each is checked as it was found, so both go. Only counted
// limits have a name here, so an unlimited descriptor stays so, whichever limit replaces it.
void EnvoyDecider::drop_replaced(EnvoyDeciding& deciding) noexcept {
  for (EnvoyApplied& one : deciding.all()) {
    if (one.limit.name.empty()) continue;
    const bool replaced = std::ranges::any_of(deciding.all(), [&](const EnvoyApplied& other) {
      return replaces(other.rule, one.limit.name);
    });
    if (replaced) one.kind = EnvoyApplied::Kind::nothing;
  }
}

// ---- count in the store ------------------------------------------------------------------------

void EnvoyDecider::collect_checks(EnvoyDeciding& deciding,
                                  const EnvoyRequest& request) const noexcept {
  store::Call& call = deciding.call;
  call.clear();
  call.kind = store::Call::Kind::independent;
  for (std::size_t i = 0; i < deciding.count; ++i) {
    const EnvoyApplied& one = deciding.applied[i];
    if (one.kind != EnvoyApplied::Kind::counted) continue;
    const EnvoyDescriptor& descriptor = request.descriptors[i];
    call.checks[call.count] = {
        .key = snapshot_->key(request.domain, descriptor.entries, one.limit.unit, one.rule),
        .limit = snapshot_->counter(one.limit.unit),
        .cost = hits_of(request, descriptor)};
    call.group_from(call.count++);
  }
}

// The sums after these hits, which are added even if over the limit. A descriptor that does not
// count while the store fails is as one without a limit.
Result<void> EnvoyDecider::read_sums(EnvoyDeciding& deciding) noexcept {
  const store::Call& call = deciding.call;
  std::size_t next = 0;
  for (EnvoyApplied& one : deciding.all()) {
    if (one.kind != EnvoyApplied::Kind::counted) continue;
    const store::Group& group = call.groups[next];
    const std::uint64_t left = call.answers[next++].decision.remaining;
    if (group.has_answers()) {
      one.sum = EnvoySnapshot::kCountMax - left;
    } else if (group.verdict == store::GroupVerdict::open) {
      one.kind = EnvoyApplied::Kind::nothing;
    } else {
      return tl::unexpected(
          Error{.code = Errc::io, .transient = true, .where = "the store does not answer"});
    }
  }
  return {};
}

// ---- compare the sums --------------------------------------------------------------------------

// Over: one ordinary limit is exceeded, or all quotas are used up. Under the global mode a
// descriptor without a limit is a quota that is never used up; an unlimited descriptor is none.
EnvoyCode EnvoyDecider::overall(const EnvoyModes& modes, std::span<const EnvoyApplied> applied,
                                std::span<const EnvoyStatus> statuses) noexcept {
  bool refused = false;
  std::size_t quotas = 0;
  std::size_t used_up = 0;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const bool over = statuses[i].code == EnvoyCode::over_limit;
    if (is_quota(modes, applied[i])) {
      ++quotas;
      if (over) ++used_up;
    } else {
      refused = refused || over;
    }
  }
  const bool over = refused || (quotas > 0 && used_up == quotas);
  return over && !modes.shadow_mode ? EnvoyCode::over_limit : EnvoyCode::ok;
}

}  // namespace sluice::engine
