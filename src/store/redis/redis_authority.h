// Redis as the authority of shared limits: calls of the functions, over a transport.
//
// A decision is one command that is never sent again, unless the server says that it did not run:
// where the functions were missing, it is sent once more after they are loaded. The caller learns
// what the reply says, or that it failed: by an error, a lost connection, no reply in time, or a
// reply that no function can have sent.
//
// Charges, refunds and renewals are numbered: session, and a number that rises. A key applies a
// number once and none below the highest, so those of one key must arrive in order. Keys are spread
// over kLanes lanes, each a queue of which only the first call is sent; it stays until its outcome
// is known, and is sent again, as it was, until then. Refunds that wait behind others of their key
// travel together. A call is dropped when it can have no effect any more (its usage has drained),
// or after kTriesMax error replies. Redis remembers numbers for as long as the usage lasts that
// they charged, and at least for a minute, so a call that is sent again is always recognised.
//
// One thread.
#pragma once

#include "store/redis/call_codec.h"
#include "store/redis/function_form.h"
#include "store/redis/function_library.h"
#include "store/redis/shared_limit.h"
#include "store/redis/transport.h"
#include "store/shared/authority.h"
#include "store/shared/ticket_pool.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::store {

// A limit in the form of the functions.
class RedisLimit final : public AuthorityLimit {
 public:
  // CompileLimit of this authority.
  [[nodiscard]] static Parsed<std::unique_ptr<const AuthorityLimit>> compile(const Limit& limit);

  // Charges of a bucket join if the later one begins where the earlier one ends.
  [[nodiscard]] std::optional<Charge> joined(const Charge& earlier,
                                             const Charge& later) const noexcept override;

  SharedLimit shared;

 private:
  // Of a bucket: ticks in a step of its clock, and in a token.
  std::int64_t radix_ = 0;
  std::int64_t unit_ = 0;
};

struct RedisAuthorityOptions {
  std::uint64_t session = 0;  // drawn at random for each authority, when it is made; not 0
  // Without a reply for so long, a call is given up; far above any decision budget.
  Nanos reply_timeout = std::chrono::seconds{1};
  std::size_t calls_max = 4096;     // in all
  std::size_t numbered_max = 2048;  // of these
};

class RedisAuthority final : public Authority {
 public:
  static constexpr std::size_t kLanes = 256;
  static constexpr std::uint32_t kTriesMax = 16;
  static constexpr Nanos kResendFirst = std::chrono::milliseconds{20};
  static constexpr Nanos kResendLast = std::chrono::seconds{2};

  // The transport and the library outlive the authority.
  RedisAuthority(Transport& transport, const FunctionLibrary& library,
                 const RedisAuthorityOptions& options);

  [[nodiscard]] std::uint32_t shard_of(const Digest& key) const noexcept override {
    return transport_.shard_of(key);
  }
  [[nodiscard]] bool decide(AuthorityTicket ticket, const Digest& key,
                            std::span<const AuthorityCheck> checks, Now now) noexcept override;
  [[nodiscard]] bool charge(AuthorityTicket ticket, const Digest& key, const AuthorityCheck& check,
                            Reason reason, Now now) noexcept override;
  [[nodiscard]] bool refund(const Digest& key, std::span<const AuthorityRefund> refunds,
                            MonoTime until, Now now) noexcept override;
  [[nodiscard]] bool renew(AuthorityTicket ticket, const Digest& key,
                           std::span<const AuthorityRefund> slots, MonoTime until,
                           Now now) noexcept override;

  void advance(Now now, AuthorityListener& listener) noexcept override;
  void flush() noexcept override { transport_.flush(); }
  [[nodiscard]] MonoTime wake_at() const noexcept override;
  [[nodiscard]] Now wait(MonoTime until) noexcept override;
  [[nodiscard]] const AuthorityCounts& counts() const noexcept override { return counts_; }

  [[nodiscard]] std::size_t calls_waiting() const noexcept { return calls_.used(); }

  // The name of a limit within its key.
  [[nodiscard]] static FieldId field_of(std::uint64_t salt) noexcept {
    return static_cast<FieldId>(salt ^ salt >> 32U);
  }

 private:
  using Index = std::uint32_t;
  enum class Kind : std::uint8_t { decision, charge, refund, renewal };
  enum class State : std::uint8_t {
    queued,  // behind others of its lane, or until it is sent again
    sent,
    parked,  // until the functions are loaded
  };

  struct Call {
    CallArguments arguments;
    Digest key;
    AuthorityTicket ticket = 0;
    MonoTime sent_at;
    MonoTime until;     // without effect afterwards; numbered calls
    Index earlier = 0;  // among those that were sent
    Index later = 0;
    Index behind = 0;  // in its lane
    Kind kind = Kind::decision;
    State state = State::queued;
    std::uint8_t shard = 0;
    std::uint8_t rung = 0;     // the form in which it was sent
    std::uint8_t answers = 0;  // that its reply has
    std::uint8_t records = 0;  // refunds in it
    std::uint8_t tries = 0;    // that ended in an error
    bool was_sent = false;     // a reply may be lost
    // What a decision has to answer.
    std::uint32_t probes = 0;  // a bit for each check
    std::array<Cost, kCallChecksMax> capacities;
    std::array<Cost, kCallChecksMax> costs;
  };
  struct Lane {
    Index first = 0;
    Index last = 0;
    Nanos pause{0};
    MonoTime resend_at;
  };

  // redis_authority.cc: what is asked and sent
  [[nodiscard]] Index new_call(Kind kind, AuthorityTicket ticket, const Digest& key) noexcept;
  [[nodiscard]] SharedSequence next_number() noexcept;
  [[nodiscard]] bool append_to_last(const Digest& key, std::span<const Refunding> refunds,
                                    MonoTime until) noexcept;
  void enqueue(Index index, MonoTime until, Now now) noexcept;
  [[nodiscard]] bool send(Index index, Now now) noexcept;
  void send_first(Lane& lane, Now now) noexcept;
  void retire(Index index) noexcept;
  [[nodiscard]] Lane& lane_of(const Digest& key) noexcept { return lanes_[key.high % kLanes]; }
  void send_again(Index index, Now now) noexcept;
  void resend_due(Now now, AuthorityListener& listener) noexcept;
  void time_out(Now now, AuthorityListener& listener) noexcept;
  void time_out_loads(Now now, AuthorityListener& listener) noexcept;

  // redis_replies.cc: what arrives
  void receive(const TransportReply& reply, Now now, AuthorityListener& listener) noexcept;
  void receive_call(Index index, const TransportReply& reply, Now now,
                    AuthorityListener& listener) noexcept;
  void receive_load(std::uint32_t shard, const TransportReply& reply, Now now,
                    AuthorityListener& listener) noexcept;
  void receive_error(Index index, std::string_view text, Now now,
                     AuthorityListener& listener) noexcept;
  [[nodiscard]] bool read(const Call& call, std::span<const std::int64_t> numbers,
                          AuthorityOutcome& outcome) noexcept;
  [[nodiscard]] bool is_possible(const Call& call, AuthorityOutcome outcome) const noexcept;
  void finish(Index index, AuthorityOutcome outcome, std::size_t answers, Now now,
              AuthorityListener& listener) noexcept;
  void drop(Index index, Now now, AuthorityListener& listener) noexcept;
  void not_done(Index index, Now now, AuthorityListener& listener) noexcept;
  void load(std::uint32_t shard, const Digest& key, Now now) noexcept;
  void end_load(std::uint32_t shard) noexcept;
  [[nodiscard]] Index next_parked(Index after, std::uint32_t shard) const noexcept;
  void release_parked(std::uint32_t shard, bool loaded, Now now,
                      AuthorityListener& listener) noexcept;

  Transport& transport_;
  const RedisAuthorityOptions options_;
  std::vector<FunctionForm> forms_;  // of the shards
  TicketPool<Call> calls_;
  TicketList<Call> sent_{calls_};  // by the time at which they were sent
  std::size_t numbered_ = 0;
  std::array<MonoTime, kShardsMax> load_sent_{};
  std::size_t loads_ = 0;    // shards whose functions are being loaded
  std::size_t resting_ = 0;  // lanes whose first call waits to be sent again
  std::array<Lane, kLanes> lanes_{};
  std::uint64_t sequence_ = 0;
  AuthorityCounts counts_;

  // For one call at a time.
  std::vector<std::string_view> words_;
  std::array<SharedCheck, kCallChecksMax> checks_;
  std::array<Refunding, kCallChecksMax> refunds_;
  std::array<SharedAnswer, kCallChecksMax> shared_answers_;
  std::array<Answer, kCallChecksMax> answers_;
};

}  // namespace sluice::store
