// Decorators that tell the ledger what passes through the seams of a node. They change nothing.
#pragma once

#include "sim/ledger.h"
#include "store/shared/authority.h"
#include "store/shared/shared_limits.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

namespace sluice::sim {

// Between the engine and the store. One thread; everything outlives it.
class ObservedStore final : public store::Store {
 public:
  struct Node {
    Incarnation id;
    const store::SharedLimits& limits;
    Ledger& ledger;
    Nanos budget;
    // The time, and when a pause of the process has ended last.
    std::function<Now()> now;
    std::function<MonoTime()> resumed;
  };
  ObservedStore(store::Store& inner, Node node) : inner_(inner), node_(std::move(node)) {}

  // What happens from here on is the end of a process: nobody sees it.
  void close_eyes() noexcept { is_blind_ = true; }

  [[nodiscard]] store::Completion decide_all(store::Call& call, Now now) noexcept override;
  void expect(const Digest& key) noexcept override { inner_.expect(key); }
  void cancel(store::Call& call, Now now) noexcept override;
  void charge(const store::Check& check, Now now) noexcept override;
  void refund(const store::Check& check, store::Holding& holding, Now now) noexcept override;
  void correct(const store::Check& check, store::Holding& holding, store::Cost cost,
               Now now) noexcept override;
  void renew(const store::Check& check, store::Holding& slot, Now now) noexcept override;
  void advance(Now now) noexcept override { inner_.advance(now); }
  [[nodiscard]] MonoTime wake_at() const noexcept override { return inner_.wake_at(); }
  void wait() noexcept override { inner_.wait(); }
  [[nodiscard]] const store::StoreCounts& counts() const noexcept override {
    return inner_.counts();
  }

 private:
  struct Waiting {
    ObservedStore* store = nullptr;
    std::uint32_t record = 0;
    void (*completed)(store::Call&) noexcept = nullptr;
    void* owner = nullptr;
  };

  void drop(store::Holding& holding) noexcept override { inner_.keep(holding); }
  static void later(store::Call& call) noexcept;

  store::Store& inner_;
  Node node_;
  bool is_blind_ = false;
  std::unordered_map<store::Call*, Waiting> waiting_;  // found, never walked through
};

// Between the store and its authority. One thread; everything outlives it.
class ObservedAuthority final : public store::Authority, private store::AuthorityListener {
 public:
  // `execution` tells what was executed at a server for the reply that is being delivered.
  ObservedAuthority(store::Authority& inner, Ledger& ledger, Incarnation node,
                    std::function<std::uint32_t()> execution)
      : inner_(inner), ledger_(ledger), node_(node), execution_(std::move(execution)) {}

  void close_eyes() noexcept { is_blind_ = true; }

  [[nodiscard]] std::uint32_t shard_of(const Digest& key) const noexcept override {
    return inner_.shard_of(key);
  }
  [[nodiscard]] bool decide(store::AuthorityTicket ticket, const Digest& key,
                            std::span<const store::AuthorityCheck> checks,
                            Now now) noexcept override;
  [[nodiscard]] bool charge(store::AuthorityTicket ticket, const Digest& key,
                            const store::AuthorityCheck& check, Reason reason,
                            Now now) noexcept override;
  [[nodiscard]] bool refund(const Digest& key, std::span<const store::AuthorityRefund> refunds,
                            MonoTime until, Now now) noexcept override;
  [[nodiscard]] bool renew(store::AuthorityTicket ticket, const Digest& key,
                           std::span<const store::AuthorityRefund> slots, MonoTime until,
                           Now now) noexcept override;
  void advance(Now now, store::AuthorityListener& listener) noexcept override;
  void flush() noexcept override { inner_.flush(); }
  [[nodiscard]] MonoTime wake_at() const noexcept override { return inner_.wake_at(); }
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return inner_.wait(until); }
  [[nodiscard]] const store::AuthorityCounts& counts() const noexcept override {
    return inner_.counts();
  }

 private:
  void replied(store::AuthorityTicket ticket, store::AuthorityOutcome outcome,
               std::span<store::Answer> answers, Now now) noexcept override;

  store::Authority& inner_;
  Ledger& ledger_;
  Incarnation node_;
  std::function<std::uint32_t()> execution_;
  store::AuthorityListener* listener_ = nullptr;  // within advance()
  bool is_blind_ = false;
  std::map<store::AuthorityTicket, std::uint32_t> asks_;  // decisions without a reply
};

}  // namespace sluice::sim
