// Concurrency: how many requests are in flight. A slot is a lease that the holder gives back.
//
// A holder that crashes gives nothing back, so leases expire. Time is cut into generations of one
// TTL, and the state counts the leases of this generation and the previous one; older leases have
// expired. A lease therefore lives for at least one and at most two TTLs, and a holder renews it at
// half a TTL by moving it into the current generation. Two counters replace a record per lease.
//
// Time base: monotonic. Time that goes back ends no lease.
//
// Most in flight: `amount`. The limit cannot know when a holder will finish, so a rejection has no
// retry_after; reset_after is when the leases expire unless they are renewed.
#pragma once

#include <sluice/core/step.h>

#include <cstdint>

namespace sluice::core {

struct ConcurrencyLimit {
  Cost amount = 1;
  Nanos slot_ttl{1};
};

// All zeros is an idle key.
struct ConcurrencyState {
  std::int64_t generation = 0;
  Cost previous = 0;  // leases taken or renewed in the generation before
  Cost current = 0;

  friend constexpr bool operator==(const ConcurrencyState&, const ConcurrencyState&) = default;
};

// Takes `cost` slots; the receipt is the lease.
[[nodiscard]] Step<ConcurrencyState> concurrency_step(const ConcurrencyLimit& limit,
                                                      ConcurrencyState state, MonoTime now,
                                                      Cost cost) noexcept;
[[nodiscard]] Step<ConcurrencyState> concurrency_charge(const ConcurrencyLimit& limit,
                                                        ConcurrencyState state, MonoTime now,
                                                        Cost cost) noexcept;

// Gives slots back; an expired lease is ignored. A lease is given back once: two counters
// cannot tell one holder from another.
[[nodiscard]] ConcurrencyState concurrency_release(const ConcurrencyLimit& limit,
                                                   ConcurrencyState state, MonoTime now,
                                                   Receipt lease, Cost amount) noexcept;

// Moves a lease into the current generation. The receipt of the result replaces the lease; its cost
// is 0 when the lease had expired, and the holder then no longer counts.
[[nodiscard]] Step<ConcurrencyState> concurrency_renew(const ConcurrencyLimit& limit,
                                                       ConcurrencyState state, MonoTime now,
                                                       Receipt lease) noexcept;

// The same key under an edited limit. Requests in flight stay in flight, whatever `on_change` says,
// and new ones wait until there is room under the new amount. Generations of another TTL have other
// numbers: all leases move into the current one, as if renewed, and a store reads leases from
// before the edit as leases of that generation.
[[nodiscard]] ConcurrencyState concurrency_convert(const ConcurrencyLimit& from,
                                                   const ConcurrencyLimit& to,
                                                   ConcurrencyState state, MonoTime now) noexcept;

}  // namespace sluice::core
