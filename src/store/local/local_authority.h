// The local table as a store of the engine: all answers come at once.
//
// One thread; every worker has its own, over the same table.
#pragma once

#include "store/local/local_store.h"
#include "store/local/worker.h"
#include "store/store.h"

namespace sluice::store {

class LocalAuthority final : public Store {
 public:
  // `workers`: how many there are beside each other.
  LocalAuthority(LocalStore& table, unsigned workers) noexcept
      : table_(table), worker_(table, workers) {}

  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, Now now) override {
    return table_.use(limit, now);
  }
  [[nodiscard]] Parsed<LimitNumber> use_for_request(const Limit& limit, Now now) override;
  void stop_using(LimitNumber number) noexcept override { table_.stop_using(number); }
  [[nodiscard]] DigestSecret secret() const noexcept override { return table_.secret(); }

  [[nodiscard]] Completion decide_all(Call& call, Now now) noexcept override;
  void expect(const Digest& key) noexcept override { table_.prefetch(key); }
  void cancel(Call& /*call*/) noexcept override {}  // none is ever under way
  void charge(const Check& check, Now now) noexcept override { (void)table_.force(check, now); }
  void refund(const Check& check, const Charge& charge, Now now) noexcept override {
    table_.refund(check, charge, now);
  }
  [[nodiscard]] Charge renew(const Check& check, const Charge& lease, Now now) noexcept override {
    return table_.renew(check, lease, now);
  }

 private:
  LocalStore& table_;
  Worker worker_;
};

}  // namespace sluice::store
