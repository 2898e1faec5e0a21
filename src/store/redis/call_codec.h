// Calls of the functions in Redis as arguments, and their replies as answers. No sockets here.
//
// One call is about one key: all limits of one rule and one subject. The top of functions/main.lua
// explains the arguments and the numbers of a reply.
//
// Arguments are written into a buffer that its owner reuses: after a few calls nothing is
// allocated. A reply is untrusted: one that no function can have sent is an error.
#pragma once

#include "base/digest.h"
#include "store/check.h"
#include "store/redis/shared_limit.h"
#include <sluice/decision.h>
#include <sluice/result.h>
#include <sluice/time.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::store {

// The number is the version of the keys' layout.
inline constexpr std::string_view kKeyPrefix = "sluice1:";

// The digest alone is the hash tag: no text of a client chooses a slot of a cluster.
[[nodiscard]] std::string shared_key(const Digest& key);

// Redis's name of a limit of a rule, within the rule's key. Two limits of one rule differ.
using FieldId = std::uint32_t;

struct SharedCheck {
  const SharedLimit* limit = nullptr;
  FieldId field = 0;
  Cost cost = 1;
  OnChange change = OnChange::keep;
  bool probe = false;  // only whether it would be admitted
};

// A charge that can be corrected, refunded or renewed, once. Opaque: only the field that issued it
// accepts it, and only in the edition that did.
struct SharedCharge {
  std::int64_t mark = 0;
  std::int64_t ticks = 0;
  std::int64_t edition = 0;
  Cost cost = 0;  // 0: nothing was charged

  friend bool operator==(const SharedCharge&, const SharedCharge&) = default;
};

struct SharedAnswer {
  Decision decision;
  SharedCharge charge;
};

// Numbers a call, so that it can be sent again. The default is no number.
struct SharedSequence {
  std::uint64_t session = 0;  // drawn at random when a process starts
  std::uint64_t sequence = 0;
};

// A lease to request, of up to check.cost tokens.
struct Reservation {
  SharedCheck check;
  std::uint64_t cap = 0;  // tokens of this limit that all nodes together may hold
  Nanos duration{0};      // at most kLeaseMax
  bool seat = false;      // the right to have so many unsettled, instead of tokens
};
inline constexpr Nanos kLeaseMax = std::chrono::seconds{60};

struct Refunding {
  FieldId field = 0;
  SharedCharge charge;
  Cost amount = 0;
};

struct GivingBack {
  FieldId field = 0;
  std::uint64_t sequence = 0;  // of the reservation
  Cost amount = 0;
};

// One thread. Holds texts one after another.
class CallArguments {
 public:
  void clear() noexcept;
  void add(std::string_view text);
  void add(std::int64_t number);
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept;

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

// ---- calls: what follows FCALL NAME 1 KEY -----------------------------------------------------
//
// `wall` picks the edges of calendar windows that go along; the server's time decides.

void write_decide(CallArguments& to, std::span<const SharedCheck> checks, WallTime wall);
void write_peek(CallArguments& to, std::span<const SharedCheck> checks, WallTime wall);
void write_charge(CallArguments& to, std::span<const SharedCheck> checks, SharedSequence number,
                  WallTime wall);
// Tokens spent on a seat, or while Redis could not be reached.
void write_settle(CallArguments& to, std::span<const SharedCheck> checks, SharedSequence number,
                  WallTime wall);
// check.cost is the cost that the charge should have had. The reply's charge is the rest of it, or
// the addition to it.
void write_correct(CallArguments& to, const SharedCheck& check, const SharedCharge& charge,
                   SharedSequence number, WallTime wall);
void write_refund(CallArguments& to, std::span<const Refunding> refunds, SharedSequence number);
// Further refunds of the same key, behind those of write_refund().
void append_refunds(CallArguments& to, std::span<const Refunding> refunds);
void write_release(CallArguments& to, std::span<const Refunding> leases, SharedSequence number);
// The amounts do not matter: slots are renewed as a whole.
void write_renew(CallArguments& to, std::span<const Refunding> leases, SharedSequence number);
void write_reserve(CallArguments& to, const Reservation& reservation, SharedSequence number,
                   WallTime wall);
void write_give_back(CallArguments& to, const GivingBack& lease, SharedSequence number);

// ---- replies ----------------------------------------------------------------------------------

enum class ReplyStatus : std::uint8_t { rejected, done, repeated, clocks_differ };

struct SharedReply {
  ReplyStatus status = ReplyStatus::done;
  WallTime server_time;
};

// Of a call about limits of these capacities; none for refund, release and give_back, which return
// nothing. `answers` has as many places. `repeated` and `clocks_differ` leave them unchanged.
[[nodiscard]] Result<SharedReply> read_reply(std::span<const std::int64_t> numbers,
                                             std::span<const Cost> capacities,
                                             std::span<SharedAnswer> answers);

}  // namespace sluice::store
