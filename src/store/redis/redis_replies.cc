// What arrives from Redis: see redis_authority.h.
#include "store/redis/redis_authority.h"

#include <algorithm>

namespace sluice::store {
namespace {

// Tags of commands that load the functions; no call has such an index.
constexpr std::uint64_t kLoadTag = std::uint64_t{1} << 31U;

}  // namespace

void RedisAuthority::receive(const TransportReply& reply, Now now,
                             AuthorityListener& listener) noexcept {
  if ((reply.tag & kLoadTag) != 0) {
    return receive_load(static_cast<std::uint32_t>(reply.tag & 0xffU), reply, now, listener);
  }
  const Index index = calls_.find(reply.tag);
  if (index == 0) {
    ++counts_.replies_late;
    return;
  }
  // A report about an earlier time it was sent is as good as one about the last; unless it says
  // nothing.
  const bool is_sent = calls_[index].state == State::sent;
  if (is_sent) {
    sent_.remove(index);
  } else if (reply.kind != TransportReply::Kind::numbers || calls_[index].state == State::parked) {
    ++counts_.replies_late;
    return;
  } else {
    --resting_;
  }
  receive_call(index, reply, now, listener);
}

void RedisAuthority::receive_call(Index index, const TransportReply& reply, Now now,
                                  AuthorityListener& listener) noexcept {
  Call& call = calls_[index];
  switch (reply.kind) {
    case TransportReply::Kind::numbers: {
      AuthorityOutcome outcome = AuthorityOutcome::failed;
      if (!read(call, reply.numbers, outcome)) break;
      if (outcome == AuthorityOutcome::clocks_differ) ++counts_.clocks_differ;
      const bool has_answers =
          outcome == AuthorityOutcome::done || outcome == AuthorityOutcome::rejected;
      return finish(index, outcome, has_answers ? call.answers : 0, now, listener);
    }
    case TransportReply::Kind::error: return receive_error(index, reply.text, now, listener);
    case TransportReply::Kind::disconnected:
      ++counts_.disconnects;
      return not_done(index, now, listener);
    case TransportReply::Kind::text:
    case TransportReply::Kind::other: break;
  }
  ++counts_.malformed;
  if (++call.tries >= kTriesMax) return drop(index, now, listener);
  not_done(index, now, listener);
}

// False: no function sends this for such a call.
bool RedisAuthority::read(const Call& call, std::span<const std::int64_t> numbers,
                          AuthorityOutcome& outcome) noexcept {
  const auto capacities = std::span{call.capacities}.first(call.answers);
  const auto reply = read_reply(numbers, capacities, shared_answers_);
  if (!reply) return false;
  switch (reply->status) {
    case ReplyStatus::rejected: outcome = AuthorityOutcome::rejected; break;
    case ReplyStatus::done: outcome = AuthorityOutcome::done; break;
    case ReplyStatus::repeated: outcome = AuthorityOutcome::applied_before; break;
    case ReplyStatus::clocks_differ: outcome = AuthorityOutcome::clocks_differ; break;
  }
  if (!is_possible(call, outcome)) return false;
  for (std::size_t i = 0; i < call.answers; ++i) {
    const SharedCharge& charge = shared_answers_[i].charge;
    answers_[i] = {.decision = shared_answers_[i].decision,
                   .charge = {.limit = 0,
                              .ticks = static_cast<std::uint32_t>(charge.ticks),
                              .receipt = {.mark = charge.mark, .cost = charge.cost, .edition = 0},
                              .edition = charge.edition}};
  }
  return true;
}

// Whether the parts of a reply agree with one another and with what was asked.
bool RedisAuthority::is_possible(const Call& call, AuthorityOutcome outcome) const noexcept {
  const bool is_decision = call.kind == Kind::decision;
  if (is_decision && outcome == AuthorityOutcome::applied_before) return false;
  if (!is_decision && outcome == AuthorityOutcome::rejected) return false;
  const bool is_done = outcome == AuthorityOutcome::done;
  if (!is_done && outcome != AuthorityOutcome::rejected) return true;
  bool all_allowed = true;
  for (std::size_t i = 0; i < call.answers; ++i) {
    const SharedAnswer& answer = shared_answers_[i];
    const Cost cost = call.costs[i];
    const bool is_probe = (call.probes >> i & 1U) != 0;
    all_allowed &= answer.decision.allowed();
    if (answer.charge.ticks > UINT32_MAX || answer.charge.cost > cost) return false;
    // Decisions charge all or nothing.
    const Cost expected = is_done && !is_probe ? cost : 0;
    if (is_decision && answer.charge.cost != expected) return false;
  }
  return all_allowed == is_done;
}

// ---- errors -------------------------------------------------------------------------------------

void RedisAuthority::receive_error(Index index, std::string_view text, Now now,
                                   AuthorityListener& listener) noexcept {
  Call& call = calls_[index];
  const FunctionForm::Cause cause = forms_[call.shard].error(text, call.rung);
  ++call.tries;
  if (cause == FunctionForm::Cause::other || call.tries >= kTriesMax) {
    ++counts_.errors;
    if (call.tries >= kTriesMax) return drop(index, now, listener);
    return not_done(index, now, listener);
  }
  // It did not run, so that a decision may be sent again, too.
  call.was_sent = false;
  const std::uint32_t shard = call.shard;
  if (cause == FunctionForm::Cause::missing) load(shard, call.key, now);
  if (send(index, now)) return;
  not_done(index, now, listener);
}

// The outcome is not known, or it was an error: a decision fails, and a numbered call is sent
// again.
void RedisAuthority::not_done(Index index, Now now, AuthorityListener& listener) noexcept {
  Call& call = calls_[index];
  if (call.kind == Kind::decision) {
    return finish(index, AuthorityOutcome::failed, 0, now, listener);
  }
  send_again(index, now);
}

void RedisAuthority::drop(Index index, Now now, AuthorityListener& listener) noexcept {
  if (calls_[index].kind != Kind::decision) ++counts_.calls_dropped;
  finish(index, AuthorityOutcome::failed, 0, now, listener);
}

void RedisAuthority::finish(Index index, AuthorityOutcome outcome, std::size_t answers, Now now,
                            AuthorityListener& listener) noexcept {
  const Call& call = calls_[index];
  const AuthorityTicket ticket = call.ticket;
  const bool was_numbered = call.kind != Kind::decision;
  Lane& lane = lane_of(call.key);
  retire(index);
  if (was_numbered) send_first(lane, now);
  if (ticket != 0) listener.replied(ticket, outcome, std::span{answers_}.first(answers), now);
}

// ---- loading the functions ----------------------------------------------------------------------

// By the connection of some key of that shard. Calls wait meanwhile.
void RedisAuthority::load(std::uint32_t shard, const Digest& key, Now now) noexcept {
  FunctionForm& form = forms_[shard];
  if (form.is_loading()) return;
  const auto command = form.begin_loading();
  if (command.empty()) return;
  ++loads_;
  load_sent_[shard] = now.mono;
  if (!transport_.send(kLoadTag | shard, key, command)) end_load(shard);
}

void RedisAuthority::end_load(std::uint32_t shard) noexcept {
  if (!forms_[shard].is_loading()) return;
  forms_[shard].load_lost();
  --loads_;
}

void RedisAuthority::receive_load(std::uint32_t shard, const TransportReply& reply, Now now,
                                  AuthorityListener& listener) noexcept {
  FunctionForm& form = forms_[shard];
  if (!form.is_loading()) {
    ++counts_.replies_late;
    return;
  }
  end_load(shard);
  FunctionForm::Loaded loaded = FunctionForm::Loaded::failed;
  if (reply.kind == TransportReply::Kind::text) {
    ++counts_.libraries_loaded;
    loaded = form.loaded(reply.text);
  } else if (reply.kind == TransportReply::Kind::error) {
    loaded = form.load_failed(reply.text);
  }
  if (loaded == FunctionForm::Loaded::again) {
    const Index waits = next_parked(0, shard);
    if (waits != 0) load(shard, calls_[waits].key, now);
    if (form.is_loading()) return;
  }
  release_parked(shard, loaded == FunctionForm::Loaded::done, now, listener);
}

RedisAuthority::Index RedisAuthority::next_parked(Index after, std::uint32_t shard) const noexcept {
  for (Index index = after + 1; index <= calls_.size(); ++index) {
    const Call& call = calls_[index];
    const bool waits = calls_.is_taken(index) && call.state == State::parked;
    if (waits && call.shard == shard) return index;
  }
  return 0;
}

// Calls that waited are sent, or fail. In any order: each lane has one of them.
void RedisAuthority::release_parked(std::uint32_t shard, bool loaded, Now now,
                                    AuthorityListener& listener) noexcept {
  for (Index index = 0; (index = next_parked(index, shard)) != 0;) {
    if (loaded && send(index, now)) continue;
    not_done(index, now, listener);
  }
}

}  // namespace sluice::store
