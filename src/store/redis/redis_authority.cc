#include "store/redis/redis_authority.h"

#include <sluice/int128.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace sluice::store {
namespace {

// The longest that a charge can matter, rounded up.
Nanos usage_lasts(const SharedLimit& shared) {
  const Limit& limit = shared.limit;
  return std::visit(
      [&]<class Kind>(const Kind& of) -> Nanos {
        if constexpr (std::is_same_v<Kind, core::GcraLimit>) {
          const std::int64_t drain =
              mul_div_ceil(limit.period.count(), std::int64_t{shared.capacity},
                           static_cast<std::int64_t>(limit.amount));
          // The ticks of a shared bucket make it up to 1/256 slower.
          return Nanos{drain + drain / 256 + 1} + limit.max_delay.value_or(Nanos{0});
        } else if constexpr (std::is_same_v<Kind, core::IntervalLimit>) {
          return of.period * (ceil_div(of.meter.capacity, of.amount) + 1);
        } else if constexpr (std::is_same_v<Kind, core::WindowLimit>) {
          return of.calendar ? core::kPeriodMax : of.period;
        } else if constexpr (std::is_same_v<Kind, core::ConcurrencyLimit>) {
          return 2 * of.slot_ttl;
        } else {
          return 2 * of.period;
        }
      },
      shared.steps);
}

// As shared_key(), without allocation.
std::string_view key_text(std::array<char, 64>& to, const Digest& key) noexcept {
  const auto end =
      fmt::format_to(to.begin(), "{}{{{:016x}{:016x}}}", kKeyPrefix, key.high, key.low);
  return {to.data(), static_cast<std::size_t>(end - to.begin())};
}

SharedCharge named(const Charge& charge) noexcept {
  return {.mark = charge.receipt.mark,
          .ticks = charge.ticks,
          .edition = charge.edition,
          .cost = charge.receipt.cost};
}

}  // namespace

Parsed<std::unique_ptr<const AuthorityLimit>> RedisLimit::compile(const Limit& limit) {
  Parsed<SharedLimit> shared = compile_shared(limit);
  if (!shared) return tl::unexpected(std::move(shared.error()));
  auto made = std::make_unique<RedisLimit>();
  made->shared = *std::move(shared);
  made->limit = made->shared.limit;
  made->identity = made->shared.text;
  made->capacity = made->shared.capacity;
  made->usage_lasts = sluice::store::usage_lasts(made->shared);
  if (const auto* bucket = std::get_if<core::GcraLimit>(&made->shared.steps)) {
    made->radix_ = std::int64_t{1} << bucket->fraction_bits;
    made->unit_ = bucket->meter.unit;
  } else if (const auto* interval = std::get_if<core::IntervalLimit>(&made->shared.steps)) {
    made->radix_ = static_cast<std::int64_t>(interval->amount);
    made->unit_ = 1;
  }
  return made;
}

// Marks are where charges end, in steps of the clock and ticks beyond (functions/bucket.lua).
std::optional<Charge> RedisLimit::joined(const Charge& earlier,
                                         const Charge& later) const noexcept {
  if (unit_ == 0) return AuthorityLimit::joined(earlier, later);
  const Int128 ticks = Int128{later.receipt.mark - earlier.receipt.mark} * radix_ +
                       (std::int64_t{later.ticks} - std::int64_t{earlier.ticks});
  const bool adjacent =
      earlier.edition == later.edition && ticks == Int128{later.receipt.cost} * unit_;
  if (!adjacent) return std::nullopt;
  Charge both = later;
  both.receipt.cost += earlier.receipt.cost;
  return both;
}

RedisAuthority::RedisAuthority(Transport& transport, const FunctionLibrary& library,
                               const RedisAuthorityOptions& options)
    : transport_(transport),
      options_(options),
      forms_(kShardsMax, FunctionForm{library}),
      calls_(options.calls_max) {
  words_.reserve(4 + 3 + 6 * kCallChecksMax);
}

// ---- what is asked ------------------------------------------------------------------------------

RedisAuthority::Index RedisAuthority::new_call(Kind kind, AuthorityTicket ticket,
                                               const Digest& key) noexcept {
  const bool is_numbered = kind != Kind::decision;
  if (is_numbered && numbered_ == options_.numbered_max) return 0;
  const Index index = calls_.take();
  if (index == 0) return 0;
  if (is_numbered) ++numbered_;
  Call& call = calls_[index];
  call.key = key;
  call.ticket = ticket;
  call.kind = kind;
  call.state = State::queued;
  call.shard = static_cast<std::uint8_t>(transport_.shard_of(key) % kShardsMax);
  call.answers = call.records = call.tries = 0;
  call.was_sent = false;
  call.probes = 0;
  call.behind = 0;
  return index;
}

SharedSequence RedisAuthority::next_number() noexcept {
  return {.session = options_.session, .sequence = ++sequence_};
}

bool RedisAuthority::decide(AuthorityTicket ticket, const Digest& key,
                            std::span<const AuthorityCheck> checks, Now now) noexcept {
  const Index index = new_call(Kind::decision, ticket, key);
  if (index == 0) return false;
  Call& call = calls_[index];
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const AuthorityCheck& check = checks[i];
    const SharedLimit& shared = static_cast<const RedisLimit*>(check.limit)->shared;
    checks_[i] = {.limit = &shared,
                  .field = field_of(check.salt),
                  .cost = check.cost,
                  .change = check.change,
                  .probe = check.probe};
    call.capacities[i] = shared.capacity;
    call.costs[i] = check.cost;
    if (check.probe) call.probes |= 1U << i;
  }
  call.answers = static_cast<std::uint8_t>(checks.size());
  write_decide(call.arguments, std::span{checks_}.first(checks.size()), now.wall());
  if (send(index, now)) return true;
  retire(index);
  return false;
}

bool RedisAuthority::charge(AuthorityTicket ticket, const Digest& key, const AuthorityCheck& check,
                            Reason reason, Now now) noexcept {
  const Index index = new_call(Kind::charge, ticket, key);
  if (index == 0) return false;
  Call& call = calls_[index];
  const SharedLimit& shared = static_cast<const RedisLimit*>(check.limit)->shared;
  const SharedCheck one{
      .limit = &shared, .field = field_of(check.salt), .cost = check.cost, .change = check.change};
  call.capacities[0] = shared.capacity;
  call.costs[0] = check.cost;
  call.answers = 1;
  const auto write = reason == Reason::outage ? &write_settle : &write_charge;
  write(call.arguments, {&one, 1}, next_number(), now.wall());
  enqueue(index, now.mono + check.limit->usage_lasts, now);
  return true;
}

bool RedisAuthority::refund(const Digest& key, std::span<const AuthorityRefund> refunds,
                            MonoTime until, Now now) noexcept {
  for (std::size_t i = 0; i < refunds.size(); ++i) {
    refunds_[i] = {.field = field_of(refunds[i].salt),
                   .charge = named(refunds[i].charge),
                   .amount = refunds[i].amount};
  }
  const auto written = std::span{refunds_}.first(refunds.size());
  if (append_to_last(key, written, until)) return true;
  const Index index = new_call(Kind::refund, 0, key);
  if (index == 0) return false;
  calls_[index].records = static_cast<std::uint8_t>(refunds.size());
  write_refund(calls_[index].arguments, written, next_number());
  enqueue(index, until, now);
  return true;
}

// A call that was never sent may still grow.
bool RedisAuthority::append_to_last(const Digest& key, std::span<const Refunding> refunds,
                                    MonoTime until) noexcept {
  const Index last = lane_of(key).last;
  if (last == 0) return false;
  Call& call = calls_[last];
  const bool fits = call.kind == Kind::refund && call.key == key && !call.was_sent &&
                    call.records + refunds.size() <= kCallChecksMax;
  if (!fits) return false;
  append_refunds(call.arguments, refunds);
  call.records = static_cast<std::uint8_t>(call.records + refunds.size());
  call.until = std::max(call.until, until);
  return true;
}

bool RedisAuthority::renew(AuthorityTicket ticket, const Digest& key,
                           std::span<const AuthorityRefund> slots, MonoTime until,
                           Now now) noexcept {
  const Index index = new_call(Kind::renewal, ticket, key);
  if (index == 0) return false;
  Call& call = calls_[index];
  for (std::size_t i = 0; i < slots.size(); ++i) {
    refunds_[i] = {.field = field_of(slots[i].salt), .charge = named(slots[i].charge), .amount = 0};
    call.capacities[i] = UINT32_MAX;  // the reply of a renewal tells nothing but the charge
    call.costs[i] = slots[i].charge.receipt.cost;
  }
  call.answers = static_cast<std::uint8_t>(slots.size());
  write_renew(call.arguments, std::span{refunds_}.first(slots.size()), next_number());
  enqueue(index, until, now);
  return true;
}

// ---- what is sent -------------------------------------------------------------------------------

void RedisAuthority::enqueue(Index index, MonoTime until, Now now) noexcept {
  Call& call = calls_[index];
  call.until = until;
  Lane& lane = lane_of(call.key);
  (lane.last != 0 ? calls_[lane.last].behind : lane.first) = index;
  lane.last = index;
  if (lane.first == index) send_first(lane, now);
}

bool RedisAuthority::send(Index index, Now now) noexcept {
  Call& call = calls_[index];
  FunctionForm& form = forms_[call.shard];
  if (form.is_loading()) {
    call.state = State::parked;
    return true;
  }
  std::array<char, 64> text;
  const std::string_view key = key_text(text, call.key);
  const auto prefix = form.prefix();
  words_.assign({prefix[0], prefix[1], "1", key});
  for (std::size_t i = 0; i < call.arguments.size(); ++i) words_.push_back(call.arguments[i]);
  if (!transport_.send(calls_.name_of(index), call.key, words_)) return false;
  ++counts_.sent;
  if (call.was_sent) ++counts_.resent;
  call.was_sent = true;
  call.rung = form.rung();
  call.state = State::sent;
  call.sent_at = now.mono;
  sent_.push_back(index);
  return true;
}

// Where it cannot be sent, the lane rests.
void RedisAuthority::send_first(Lane& lane, Now now) noexcept {
  if (lane.first == 0 || send(lane.first, now)) return;
  send_again(lane.first, now);
}

// Not at once: what prevented it may last.
void RedisAuthority::send_again(Index index, Now now) noexcept {
  Call& call = calls_[index];
  call.state = State::queued;
  Lane& lane = lane_of(call.key);
  lane.pause = std::clamp(2 * lane.pause, kResendFirst, kResendLast);
  lane.resend_at = now.mono + lane.pause;
  ++resting_;
}

void RedisAuthority::retire(Index index) noexcept {
  Call& call = calls_[index];
  if (call.kind != Kind::decision) {
    Lane& lane = lane_of(call.key);
    lane.first = call.behind;
    if (lane.first == 0) lane.last = 0;
    lane.pause = Nanos{0};
    --numbered_;
  }
  calls_.release(index);
}

void RedisAuthority::resend_due(Now now, AuthorityListener& listener) noexcept {
  if (resting_ == 0) return;
  for (Lane& lane : lanes_) {
    if (lane.first == 0 || calls_[lane.first].state != State::queued) continue;
    if (lane.resend_at > now.mono) continue;
    --resting_;
    if (calls_[lane.first].until < now.mono) {
      ++counts_.calls_expired;
      drop(lane.first, now, listener);
    } else {
      send_first(lane, now);
    }
  }
}

void RedisAuthority::time_out(Now now, AuthorityListener& listener) noexcept {
  while (!sent_.empty()) {
    const Index index = sent_.first();
    if (calls_[index].sent_at + options_.reply_timeout > now.mono) return;
    sent_.remove(index);
    ++counts_.timeouts;
    not_done(index, now, listener);
  }
}

// The functions could not be loaded in time: the calls that wait for them fail.
void RedisAuthority::time_out_loads(Now now, AuthorityListener& listener) noexcept {
  for (std::uint32_t shard = 0; loads_ > 0 && shard < kShardsMax; ++shard) {
    if (!forms_[shard].is_loading()) continue;
    if (load_sent_[shard] + options_.reply_timeout > now.mono) continue;
    ++counts_.timeouts;
    end_load(shard);
    release_parked(shard, false, now, listener);
  }
}

void RedisAuthority::advance(Now now, AuthorityListener& listener) noexcept {
  for (TransportReply reply; transport_.receive(reply);) receive(reply, now, listener);
  time_out(now, listener);
  time_out_loads(now, listener);
  resend_due(now, listener);
}

MonoTime RedisAuthority::wake_at() const noexcept {
  MonoTime at = MonoTime::max();
  if (!sent_.empty()) at = calls_[sent_.first()].sent_at + options_.reply_timeout;
  if (resting_ == 0) return at;
  for (const Lane& lane : lanes_) {
    const bool rests = lane.first != 0 && calls_[lane.first].state == State::queued;
    if (rests) at = std::min(at, lane.resend_at);
  }
  return at;
}

Now RedisAuthority::wait(MonoTime until) noexcept {
  transport_.flush();
  return transport_.wait(until);
}

}  // namespace sluice::store
