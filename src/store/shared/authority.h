// Where the usage of shared limits is kept, as a store sees it: one connection to it for each
// worker.
//
// Everything is asked without waiting, and what becomes of it arrives within advance(): exactly
// once for each ticket, be it a failure. Nobody waits for an authority: the store keeps the time of
// its requests, and what arrives later than that is still delivered, because it may name charges
// that have to be given back.
//
// A decision is sent once. An authority that does not know whether it was carried out says
// `failed`, and it counts as spent. All other calls are numbered: they are sent again until their
// outcome is known or has no meaning any more, and applied once. Those of one key are applied in
// the order in which they were asked for.
//
// One thread.
#pragma once

#include "base/digest.h"
#include "store/check.h"
#include <sluice/diagnostic.h>
#include <sluice/limit.h>
#include <sluice/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace sluice::store {

// A limit in the form that an authority needs. Immutable, thread-safe.
class AuthorityLimit {
 public:
  AuthorityLimit() = default;
  AuthorityLimit(const AuthorityLimit&) = delete;
  AuthorityLimit& operator=(const AuthorityLimit&) = delete;
  virtual ~AuthorityLimit() = default;

  // One charge for two of one request, if a refund of it finds what refunds of both would: nothing
  // was charged between them. By default those that lie in the same place.
  [[nodiscard]] virtual std::optional<Charge> joined(const Charge& earlier,
                                                     const Charge& later) const noexcept {
    const bool same = earlier.receipt.mark == later.receipt.mark && earlier.ticks == later.ticks &&
                      earlier.edition == later.edition;
    if (!same) return std::nullopt;
    Charge both = earlier;
    both.receipt.cost += later.receipt.cost;
    return both;
  }

  Limit limit;
  std::string identity;  // equal for limits that behave alike
  Cost capacity = 1;     // `limit` of every decision
  Nanos usage_lasts{0};  // a charge has no effect any more after this
};

// Fails for a limit that cannot be shared; the error names the nearest one that can.
using CompileLimit = Parsed<std::unique_ptr<const AuthorityLimit>> (*)(const Limit& limit);

// A check, with its limit in the form that the same authority has compiled.
struct AuthorityCheck {
  const AuthorityLimit* limit = nullptr;  // needed during the call only
  std::uint64_t salt = 0;                 // tells the limits of one key apart
  Cost cost = 1;
  OnChange change = OnChange::keep;
  bool probe = false;
};

struct AuthorityRefund {
  std::uint64_t salt = 0;
  Charge charge;
  Cost amount = 0;
};

enum class AuthorityOutcome : std::uint8_t {
  rejected,
  done,
  // A call that was sent again had been applied before. What it charged is not known.
  applied_before,
  clocks_differ,  // not carried out: the node's clock is outside of three windows of a calendar
  failed,         // unknown, or refused; nothing will be known of it any more
};

using AuthorityTicket = std::uint64_t;

class AuthorityListener {
 public:
  AuthorityListener() = default;
  AuthorityListener(const AuthorityListener&) = delete;
  AuthorityListener& operator=(const AuthorityListener&) = delete;

  // `answers` are of the checks in their order, and there are none unless it is rejected or done.
  // Their charges do not have the limit's number. May ask the authority for more.
  virtual void replied(AuthorityTicket ticket, AuthorityOutcome outcome, std::span<Answer> answers,
                       Now now) noexcept = 0;

 protected:
  ~AuthorityListener() = default;
};

struct AuthorityCounts {
  std::uint64_t sent = 0;
  std::uint64_t resent = 0;        // numbered calls
  std::uint64_t replies_late = 0;  // of calls that had been given up
  std::uint64_t clocks_differ = 0;
  std::uint64_t errors = 0;       // error replies
  std::uint64_t disconnects = 0;  // calls whose outcome is unknown therefore
  std::uint64_t malformed = 0;    // replies that no correct authority sends
  std::uint64_t timeouts = 0;
  std::uint64_t calls_dropped = 0;  // numbered calls that were never applied, or not known to be
  std::uint64_t calls_expired = 0;  // of these, those without effect by then
  std::uint64_t libraries_loaded = 0;
};

class Authority {
 public:
  Authority() = default;
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  virtual ~Authority() = default;

  // Parts that fail by themselves: a breaker for each. Below kShardsMax.
  static constexpr std::uint32_t kShardsMax = 64;
  [[nodiscard]] virtual std::uint32_t shard_of(const Digest& /*key*/) const noexcept { return 0; }

  // All checks of one key (kCallChecksMax at most), all or none. False: not sent, and nothing will
  // arrive.
  [[nodiscard]] virtual bool decide(AuthorityTicket ticket, const Digest& key,
                                    std::span<const AuthorityCheck> checks, Now now) noexcept = 0;

  // ---- numbered: a ticket of 0 is not answered. False: there is no room, and it was dropped -----

  enum class Reason : std::uint8_t { charge, outage };
  // Charges that cannot be rejected any more; as much of them counts as there is room for.
  [[nodiscard]] virtual bool charge(AuthorityTicket ticket, const Digest& key,
                                    const AuthorityCheck& check, Reason reason,
                                    Now now) noexcept = 0;
  // Without effect after `until`.
  [[nodiscard]] virtual bool refund(const Digest& key, std::span<const AuthorityRefund> refunds,
                                    MonoTime until, Now now) noexcept = 0;
  // Slots of requests in flight. The answers have the charges that take their place, of cost 0
  // where a slot had lapsed.
  [[nodiscard]] virtual bool renew(AuthorityTicket ticket, const Digest& key,
                                   std::span<const AuthorityRefund> slots, MonoTime until,
                                   Now now) noexcept = 0;

  // ---- the worker's loop ------------------------------------------------------------------------

  // Delivers what arrived, sends again what has to be.
  virtual void advance(Now now, AuthorityListener& listener) noexcept = 0;
  // What was asked since the last time goes out, all at once.
  virtual void flush() noexcept {}
  [[nodiscard]] virtual MonoTime wake_at() const noexcept { return MonoTime::max(); }
  // Sends what was asked, and blocks until something arrives or it is `until`. Says what time it
  // is then.
  [[nodiscard]] virtual Now wait(MonoTime until) noexcept = 0;

  [[nodiscard]] virtual const AuthorityCounts& counts() const noexcept = 0;
};

}  // namespace sluice::store
