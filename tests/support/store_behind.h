// A store, and a registry of limits, that pass everything on to another one: tests override what
// they want otherwise.
#pragma once

#include "store/limits.h"
#include "store/store.h"

namespace sluice::testing {

class StoreBehind : public store::Store {
 public:
  // Which outlives it.
  explicit StoreBehind(store::Store& behind) noexcept : behind_(behind) {}

  [[nodiscard]] store::Completion decide_all(store::Call& call, Now now) noexcept override {
    return behind_.decide_all(call, now);
  }
  void expect(const Digest& key) noexcept override { behind_.expect(key); }
  void cancel(store::Call& call, Now now) noexcept override { behind_.cancel(call, now); }
  void charge(const store::Check& check, Now now) noexcept override { behind_.charge(check, now); }
  void refund(const store::Check& check, store::Holding& holding, Now now) noexcept override {
    behind_.refund(check, holding, now);
  }
  void correct(const store::Check& check, store::Holding& holding, store::Cost cost,
               Now now) noexcept override {
    behind_.correct(check, holding, cost, now);
  }
  void renew(const store::Check& check, store::Holding& slot, Now now) noexcept override {
    behind_.renew(check, slot, now);
  }
  void advance(Now now) noexcept override { behind_.advance(now); }
  [[nodiscard]] MonoTime wake_at() const noexcept override { return behind_.wake_at(); }
  void wait() noexcept override { behind_.wait(); }
  [[nodiscard]] const store::StoreCounts& counts() const noexcept override {
    return behind_.counts();
  }

 private:
  void drop(store::Holding& holding) noexcept override { behind_.keep(holding); }

  store::Store& behind_;
};

class LimitsBehind : public store::Limits {
 public:
  // Which outlives it.
  explicit LimitsBehind(store::Limits& behind) noexcept : behind_(behind) {}

  [[nodiscard]] Parsed<store::LimitNumber> use(const Limit& limit, const Sharing& sharing,
                                               Now now) override {
    return behind_.use(limit, sharing, now);
  }
  [[nodiscard]] Parsed<store::LimitNumber> use_for_request(const Limit& limit,
                                                           const Sharing& sharing,
                                                           Now now) override {
    return behind_.use_for_request(limit, sharing, now);
  }
  void stop_using(store::LimitNumber number) noexcept override { behind_.stop_using(number); }
  [[nodiscard]] bool is_local(const Sharing& sharing) const noexcept override {
    return behind_.is_local(sharing);
  }
  [[nodiscard]] DigestSecret secret() const noexcept override { return behind_.secret(); }
  [[nodiscard]] std::optional<DigestSecret> shared_secret() const noexcept override {
    return behind_.shared_secret();
  }

 private:
  store::Limits& behind_;
};

}  // namespace sluice::testing
