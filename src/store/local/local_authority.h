// The local table as a store of the engine: all calls complete at once.
//
// One thread; every worker has its own, over the same table.
#pragma once

#include "store/local/local_store.h"
#include "store/local/thread_cache.h"
#include "store/store.h"

#include <cstdint>

namespace sluice::store {

class LocalAuthority final : public Store {
 public:
  // `workers`: how many run in parallel.
  LocalAuthority(LocalStore& table, unsigned workers) noexcept
      : table_(table), worker_(table, workers) {}

  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, Now now) override {
    return table_.use(limit, now);
  }
  [[nodiscard]] Parsed<LimitNumber> use_for_request(const Limit& limit, Now now) override {
    return table_.use_for_request(limit, now);
  }
  void stop_using(LimitNumber number) noexcept override { table_.stop_using(number); }
  [[nodiscard]] DigestSecret secret() const noexcept override { return table_.secret(); }

  // Calls by kind; all of them succeed.
  struct Counts {
    std::uint64_t decides = 0;
    std::uint64_t charges = 0;
    std::uint64_t refunds = 0;
    std::uint64_t renewals = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

  [[nodiscard]] Completion decide_all(Call& call, Now now) noexcept override;
  void expect(const Digest& key) noexcept override { table_.prefetch(key); }
  void cancel(Call& /*call*/) noexcept override {}  // none is ever in flight
  Charge charge(const Check& check, Now now) noexcept override {
    ++counts_.charges;
    return table_.force(check, now).charge;
  }
  void refund(const Check& check, const Charge& charge, Now now) noexcept override {
    ++counts_.refunds;
    table_.refund(check, charge, now);
  }
  [[nodiscard]] Charge renew(const Check& check, const Charge& lease, Now now) noexcept override {
    ++counts_.renewals;
    return table_.renew(check, lease, now);
  }

 private:
  LocalStore& table_;
  ThreadCache worker_;
  Counts counts_;
};

}  // namespace sluice::store
