// The store of all keys' usage, as the engine sees it: one for each worker.
//
// A store completes a call at once or later. Later means: on the calling worker, within advance(),
// wait() or another call of this store's, exactly once, and at the latest when its decision budget
// is over; the store itself keeps the time, and then decides each group by the `on_failure` of its
// limits. Calls with local limits alone always complete at once, in every store.
//
// The worker that owns the store calls advance() in every turn of its loop, and again at wake_at().
//
// One thread. Limits are registered elsewhere, for all workers at once (store/limits.h).
#pragma once

#include "store/check.h"
#include <sluice/time.h>

#include <cstdint>

namespace sluice::store {

enum class Completion : std::uint8_t { now, later };

struct StoreCounts {
  std::uint64_t decides = 0;  // calls
  std::uint64_t charges = 0;
  std::uint64_t refunds = 0;
  std::uint64_t renewals = 0;
  std::uint64_t late = 0;  // calls that were decided by `on_failure`, in part at least
  // Parts of corrections that no refund will find any more: a holding has room for two charges.
  std::uint64_t charges_unrefundable = 0;
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  [[nodiscard]] virtual Completion decide_all(Call& call, Now now) noexcept = 0;

  // A key that a check of a local limit will probably need soon: the store may prefetch it.
  virtual void expect(const Digest& /*key*/) noexcept {}

  // The caller no longer waits for a call that is in flight, and may destroy or reuse it as soon as
  // this returns. It will not be completed, and what it turns out to have charged is refunded.
  virtual void cancel(Call& call, Now now) noexcept = 0;

  // ---- no request waits for these ---------------------------------------------------------------

  // A charge that cannot be rejected any more, for good. As much of it counts as there is room for.
  virtual void charge(const Check& check, Now now) noexcept = 0;
  // Gives all of it back. The holding is void afterwards.
  virtual void refund(const Check& check, Holding& holding, Now now) noexcept = 0;
  // The request turned out to cost this much. More is charged although it cannot be rejected any
  // more; less is refunded.
  virtual void correct(const Check& check, Holding& holding, Cost cost, Now now) noexcept = 0;
  // A slot of a request that is still in flight: its time begins anew.
  virtual void renew(const Check& check, Holding& slot, Now now) noexcept = 0;
  // The charge stays, and the caller drops the holding: to be called for each one that is not
  // refunded. Only a store that gave the holding a ticket has to know.
  void keep(Holding& holding) noexcept {
    if (holding.ticket != 0) [[unlikely]]
      drop(holding);
  }

  // ---- the worker's loop ------------------------------------------------------------------------

  // Sends what was asked since the last time, completes calls whose time is over.
  virtual void advance(Now /*now*/) noexcept {}
  // When advance() has to be called at the latest.
  [[nodiscard]] virtual MonoTime wake_at() const noexcept { return MonoTime::max(); }
  // For a caller without a loop: blocks until a call may have been completed. Only while one is in
  // flight.
  virtual void wait() noexcept {}

  [[nodiscard]] virtual const StoreCounts& counts() const noexcept = 0;

 private:
  // Of a holding with a ticket.
  virtual void drop(Holding& /*holding*/) noexcept {}
};

}  // namespace sluice::store
