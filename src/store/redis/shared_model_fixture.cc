#include "store/redis/shared_model_fixture.h"

#include <sluice/int128.h>

#include <utility>

namespace sluice::store {
namespace {

using core::Cost;

Now now_for(const SharedLimit& limit, std::int64_t micros) {
  return {.mono = MonoTime{Nanos{limit.counts_micros ? micros : micros * 1'000}}};
}

Nanos whole_micros(const SharedLimit& limit, Nanos time) {
  if (limit.counts_micros) return time * 1'000;
  return Nanos{ceil_div(time.count(), std::int64_t{1'000}) * 1'000};
}

Decision in_micros(const SharedLimit& limit, Decision decision) {
  decision.reset_after = whole_micros(limit, decision.reset_after);
  decision.delay = whole_micros(limit, decision.delay);
  if (decision.retry_after) decision.retry_after = whole_micros(limit, *decision.retry_after);
  return decision;
}

const core::GcraLimit* bucket_of(const SharedLimit& limit) {
  return std::get_if<core::GcraLimit>(&limit.steps);
}

bool stands_in(const SharedLimit& limit) { return limit.limit.stands_in; }

}  // namespace

// ---- state ------------------------------------------------------------------------------------

core::GcraState ModelState::meter_at(const SharedLimit& limit, std::int64_t micros) const {
  return meter_ ? *meter_ : core::gcra_idle(*bucket_of(limit), now_for(limit, micros).mono);
}

core::Outcome ModelState::decide(const SharedLimit& limit, std::int64_t micros, Cost cost) {
  const Now now = now_for(limit, micros);
  const core::GcraLimit* const bucket = bucket_of(limit);
  if (bucket == nullptr) return cell_.decide(limit.steps, now, cost);
  auto step = core::gcra_step(*bucket, meter_at(limit, micros), now.mono, cost);
  const bool wrote = step.receipt.cost > 0 || step.decision.verdict == Verdict::rejected;
  if (wrote) meter_ = step.state;
  step.receipt.edition = edition_;
  return {.decision = step.decision, .receipt = step.receipt};
}

core::Outcome ModelState::charge(const SharedLimit& limit, std::int64_t micros, Cost cost) {
  const Now now = now_for(limit, micros);
  const core::GcraLimit* const bucket = bucket_of(limit);
  if (bucket == nullptr) return cell_.charge(limit.steps, now, cost);
  auto step = core::gcra_charge(*bucket, meter_at(limit, micros), now.mono, cost);
  meter_ = step.state;
  step.receipt.edition = edition_;
  return {.decision = step.decision, .receipt = step.receipt};
}

void ModelState::refund(const SharedLimit& limit, std::int64_t micros, core::Receipt receipt,
                        Cost amount) {
  const Now now = now_for(limit, micros);
  const core::GcraLimit* const bucket = bucket_of(limit);
  if (bucket == nullptr) return cell_.refund(limit.steps, now, receipt, amount);
  if (receipt.edition != edition_ || receipt.cost == 0) return;
  meter_ = core::gcra_refund(*bucket, meter_at(limit, micros), now.mono, receipt, amount);
}

core::Receipt ModelState::renew(const SharedLimit& limit, std::int64_t micros,
                                core::Receipt lease) {
  return cell_.renew(limit.steps, now_for(limit, micros), lease);
}

void ModelState::convert(const SharedLimit& from, const SharedLimit& to, std::int64_t micros,
                         OnChange change) {
  const Now now = now_for(to, micros);
  const core::GcraLimit* const bucket = bucket_of(to);
  if (bucket == nullptr) return cell_.convert(from.steps, to.steps, now, change);
  meter_ = core::gcra_convert(*bucket_of(from), *bucket, meter_at(from, micros), now.mono, change);
  meter_->refunded = 0;
  ++edition_;
}

Decision ModelState::peek(const SharedLimit& limit, std::int64_t micros) const {
  return ModelState{*this}.decide(limit, micros, 0).decision;
}

// ---- field ------------------------------------------------------------------------------------

bool ModelField::is_under(const SharedLimitPtr& limit) const {
  return limit_ != nullptr && limit_->text == limit->text;
}

bool ModelField::settle(std::int64_t micros) {
  ModelState settled = state_;
  settled.charge(*limit_, micros, 0);
  if (settled.peek(*limit_, micros) == state_.peek(*limit_, micros)) return false;
  state_ = settled;
  return true;
}

void ModelField::convert(const SharedLimitPtr& to, OnChange change, std::int64_t micros) {
  if (stands_in(*limit_) || stands_in(*to)) change = OnChange::keep;
  const SharedLimitPtr from = std::exchange(limit_, to);
  if (from->steps.index() == to->steps.index()) {
    return state_.convert(*from, *to, micros, change);
  }
  // As Cell::convert() does, which knows one unit of time only.
  const Decision before = state_.peek(*from, micros);
  const auto used = static_cast<Cost>(before.limit - before.remaining);
  state_ = {};
  ++life_;
  state_.charge(*to, micros, core::converted_count(from->capacity, to->capacity, used, change));
}

ModelField::Trial ModelField::decide(const SharedLimitPtr& limit, OnChange change,
                                     std::int64_t micros, Cost cost) const {
  Trial trial{.answer = {}, .after = *this};
  ModelField& after = trial.after;
  const bool converts = limit_ != nullptr && !is_under(limit);
  bool set_back = false;
  if (converts && cost > 0 && cost <= limit->capacity) set_back = after.settle(micros);
  if (converts) after.convert(limit, change, micros);
  after.limit_ = limit;
  const core::Outcome outcome = after.state_.decide(*limit, micros, cost);
  trial.answer = {.decision = in_micros(*limit, outcome.decision),
                  .charge = {.receipt = outcome.receipt, .life = after.life_}};
  const bool rejected = outcome.decision.verdict == Verdict::rejected;
  const bool writes = outcome.receipt.cost > 0 ||
                      (rejected && (limit->limit.count_rejected || set_back)) || is_under(limit);
  if (!writes) after = *this;
  return trial;
}

Decision ModelField::peek(const SharedLimitPtr& limit, OnChange change, std::int64_t micros) const {
  return decide(limit, change, micros, 0).answer.decision;
}

ModelAnswer ModelField::charge(const SharedLimitPtr& limit, OnChange change, std::int64_t micros,
                               Cost cost) {
  if (limit_ != nullptr && !is_under(limit)) {
    settle(micros);
    convert(limit, change, micros);
  }
  limit_ = limit;
  const core::Outcome outcome = state_.charge(*limit, micros, cost);
  return {.decision = in_micros(*limit, outcome.decision),
          .charge = {.receipt = outcome.receipt, .life = life_}};
}

void ModelField::refund(std::int64_t micros, const ModelCharge& charge, Cost amount) {
  if (limit_ == nullptr || charge.life != life_) return;
  state_.refund(*limit_, micros, charge.receipt, amount);
}

ModelCharge ModelField::renew(std::int64_t micros, const ModelCharge& lease) {
  if (limit_ == nullptr) return {};
  const bool slots = limit_->limit.algorithm == Algorithm::concurrency;
  if (!slots) return lease;
  if (lease.life != life_) return {};
  return {.receipt = state_.renew(*limit_, micros, lease.receipt), .life = life_};
}

bool ModelField::is_idle(std::int64_t micros) const {
  if (limit_ == nullptr) return true;
  const Decision decision = state_.peek(*limit_, micros);
  return decision.remaining == decision.limit && decision.reset_after == Nanos{0};
}

void ModelField::expire() {
  limit_ = nullptr;
  state_ = {};
  ++life_;
}

}  // namespace sluice::store
