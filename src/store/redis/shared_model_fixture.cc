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

Decision peek_at(core::Cell cell, const SharedLimit& limit, std::int64_t micros) {
  return cell.decide(limit.steps, now_for(limit, micros), 0).decision;
}

bool stands_in(const SharedLimit& limit) { return limit.limit.stands_in; }

}  // namespace

bool ModelField::is_under(const SharedLimitPtr& limit) const {
  return limit_ != nullptr && limit_->text == limit->text;
}

bool ModelField::settle(std::int64_t micros) {
  core::Cell settled = cell_;
  settled.charge(limit_->steps, now_for(*limit_, micros), 0);
  if (peek_at(settled, *limit_, micros) == peek_at(cell_, *limit_, micros)) return false;
  cell_ = settled;
  return true;
}

void ModelField::convert(const SharedLimitPtr& to, OnChange change, std::int64_t micros) {
  if (stands_in(*limit_) || stands_in(*to)) change = OnChange::keep;
  const SharedLimitPtr from = std::exchange(limit_, to);
  if (from->steps.index() == to->steps.index()) {
    cell_.convert(from->steps, to->steps, now_for(*to, micros), change);
    return;
  }
  // As Cell::convert() does, which knows one unit of time only.
  const Decision before = peek_at(cell_, *from, micros);
  const auto used = static_cast<Cost>(before.limit - before.remaining);
  cell_ = {};
  ++life_;
  cell_.charge(to->steps, now_for(*to, micros),
               core::converted_count(from->capacity, to->capacity, used, change));
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
  const core::Outcome outcome = after.cell_.decide(limit->steps, now_for(*limit, micros), cost);
  trial.answer = {.decision = in_micros(*limit, outcome.decision),
                  .charge = {.receipt = outcome.receipt, .life = after.life_}};
  const bool rejected = outcome.decision.verdict == Verdict::rejected;
  const bool writes = outcome.receipt.cost > 0 ||
                      (rejected && (limit->limit.count_rejected || set_back)) || is_under(limit);
  if (!writes) after = *this;
  return trial;
}

Decision ModelField::peek(const SharedLimitPtr& limit, OnChange change,
                          std::int64_t micros) const {
  return decide(limit, change, micros, 0).answer.decision;
}

ModelAnswer ModelField::charge(const SharedLimitPtr& limit, OnChange change, std::int64_t micros,
                               Cost cost) {
  if (limit_ != nullptr && !is_under(limit)) {
    settle(micros);
    convert(limit, change, micros);
  }
  limit_ = limit;
  const core::Outcome outcome = cell_.charge(limit->steps, now_for(*limit, micros), cost);
  return {.decision = in_micros(*limit, outcome.decision),
          .charge = {.receipt = outcome.receipt, .life = life_}};
}

void ModelField::refund(std::int64_t micros, const ModelCharge& charge, Cost amount) {
  if (limit_ == nullptr || charge.life != life_) return;
  cell_.refund(limit_->steps, now_for(*limit_, micros), charge.receipt, amount);
}

ModelCharge ModelField::renew(std::int64_t micros, const ModelCharge& lease) {
  if (limit_ == nullptr) return {};
  const bool slots = limit_->limit.algorithm == Algorithm::concurrency;
  if (!slots) return lease;
  if (lease.life != life_) return {};
  return {.receipt = cell_.renew(limit_->steps, now_for(*limit_, micros), lease.receipt),
          .life = life_};
}

bool ModelField::is_idle(std::int64_t micros) const {
  if (limit_ == nullptr) return true;
  const Decision decision = peek_at(cell_, *limit_, micros);
  return decision.remaining == decision.limit && decision.reset_after == Nanos{0};
}

void ModelField::expire() {
  limit_ = nullptr;
  cell_ = {};
  ++life_;
}

}  // namespace sluice::store
