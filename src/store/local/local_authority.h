// The local table as the store of an engine: limits that one node counts alone. All calls complete
// at once.
#pragma once

#include "store/local/local_store.h"
#include "store/local/thread_cache.h"
#include "store/store.h"
#include "store/stores.h"

#include <memory>

namespace sluice::store {

// Registers limits in the table; every limit is local there, whatever its terms. Thread-safe.
class LocalLimits final : public Limits {
 public:
  explicit LocalLimits(LocalStore& table) noexcept : table_(table) {}

  [[nodiscard]] Parsed<LimitNumber> use(const Limit& limit, const Sharing& /*sharing*/,
                                        Now now) override {
    return table_.use(limit, now);
  }
  [[nodiscard]] Parsed<LimitNumber> use_for_request(const Limit& limit, const Sharing& /*sharing*/,
                                                    Now now) override {
    return table_.use_for_request(limit, now);
  }
  void stop_using(LimitNumber number) noexcept override { table_.stop_using(number); }
  [[nodiscard]] bool is_local(const Sharing& /*sharing*/) const noexcept override { return true; }
  [[nodiscard]] DigestSecret secret() const noexcept override { return table_.secret(); }

 private:
  LocalStore& table_;
};

// One thread; every worker has its own, over the same table.
class LocalAuthority final : public Store {
 public:
  // `workers`: how many run in parallel.
  LocalAuthority(LocalStore& table, unsigned workers) noexcept
      : table_(table), worker_(table, workers) {}

  [[nodiscard]] Completion decide_all(Call& call, Now now) noexcept override;
  void expect(const Digest& key) noexcept override { table_.prefetch(key); }
  void cancel(Call& /*call*/, Now /*now*/) noexcept override {}  // none is ever in flight
  void charge(const Check& check, Now now) noexcept override {
    ++counts_.charges;
    (void)table_.force(check, now);
  }
  void refund(const Check& check, Holding& holding, Now now) noexcept override;
  void correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept override;
  void renew(const Check& check, Holding& slot, Now now) noexcept override {
    ++counts_.renewals;
    slot.charge = table_.renew(check, slot.charge, now);
  }
  [[nodiscard]] const StoreCounts& counts() const noexcept override { return counts_; }

 private:
  [[nodiscard]] bool decide_together(Call& call, Now now) noexcept;
  void decide_apart(Call& call, Now now) noexcept;
  void decide_one(const Check& check, Now now, Answer& answer) noexcept;
  void charge_more(const Check& check, Holding& holding, Cost cost, Now now) noexcept;
  void refund_part(const Check& check, Charge& charge, Cost& excess, Now now) noexcept;

  LocalStore& table_;
  ThreadCache worker_;
  StoreCounts counts_;
};

// The stores of a process without a shared one. The table outlives it.
class LocalStores final : public Stores {
 public:
  explicit LocalStores(LocalStore& table) noexcept : table_(table), limits_(table) {}

  [[nodiscard]] Limits& limits() noexcept override { return limits_; }
  [[nodiscard]] std::unique_ptr<Store> for_worker(unsigned workers) override {
    return std::make_unique<LocalAuthority>(table_, workers);
  }

 private:
  LocalStore& table_;
  LocalLimits limits_;
};

}  // namespace sluice::store
