// A store that passes everything on to another one: tests override what they want otherwise.
#pragma once

#include "store/store.h"

namespace sluice::testing {

class StoreBehind : public store::Store {
 public:
  // Which outlives it.
  explicit StoreBehind(store::Store& behind) noexcept : behind_(behind) {}

  [[nodiscard]] Parsed<store::LimitNumber> use(const Limit& limit, Now now) override {
    return behind_.use(limit, now);
  }
  [[nodiscard]] Parsed<store::LimitNumber> use_for_request(const Limit& limit, Now now) override {
    return behind_.use_for_request(limit, now);
  }
  void stop_using(store::LimitNumber number) noexcept override { behind_.stop_using(number); }
  [[nodiscard]] DigestSecret secret() const noexcept override { return behind_.secret(); }
  [[nodiscard]] store::Completion decide_all(store::Call& call, Now now) noexcept override {
    return behind_.decide_all(call, now);
  }
  void expect(const Digest& key) noexcept override { behind_.expect(key); }
  void cancel(store::Call& call) noexcept override { behind_.cancel(call); }
  store::Charge charge(const store::Check& check, Now now) noexcept override {
    return behind_.charge(check, now);
  }
  void refund(const store::Check& check, const store::Charge& charge, Now now) noexcept override {
    behind_.refund(check, charge, now);
  }
  [[nodiscard]] store::Charge renew(const store::Check& check, const store::Charge& lease,
                                    Now now) noexcept override {
    return behind_.renew(check, lease, now);
  }

 private:
  store::Store& behind_;
};

}  // namespace sluice::testing
