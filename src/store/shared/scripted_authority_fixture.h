// An authority that replies what a test says, when it says so.
#pragma once

#include "store/shared/authority.h"
#include <sluice/core/compiled_limit.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::store {

class ScriptedAuthority final : public Authority {
 public:
  struct Asked {
    enum class Kind { decide, charge, settle, refund, renew };
    Kind kind = Kind::decide;
    AuthorityTicket ticket = 0;
    Digest key;
    std::vector<Cost> costs;               // of checks, or amounts of refunds
    std::vector<AuthorityRefund> refunds;  // or slots
  };

  // Still without a reply, in the order in which they were asked.
  std::vector<Asked> decisions;
  std::vector<Asked> numbered;
  bool is_connected = true;
  std::size_t unflushed = 0;  // asked since the last flush()
  std::uint32_t shards = 1;

  [[nodiscard]] std::uint32_t shard_of(const Digest& key) const noexcept override {
    return static_cast<std::uint32_t>(key.high % shards);
  }
  [[nodiscard]] bool decide(AuthorityTicket ticket, const Digest& key,
                            std::span<const AuthorityCheck> checks, Now /*now*/) noexcept override {
    if (!is_connected) return false;
    ++unflushed;
    Asked asked{.kind = Asked::Kind::decide, .ticket = ticket, .key = key};
    for (const AuthorityCheck& check : checks) asked.costs.push_back(check.cost);
    decisions.push_back(asked);
    return true;
  }
  [[nodiscard]] bool charge(AuthorityTicket ticket, const Digest& key, const AuthorityCheck& check,
                            Reason reason, Now /*now*/) noexcept override {
    const auto kind = reason == Reason::outage ? Asked::Kind::settle : Asked::Kind::charge;
    numbered.push_back({.kind = kind, .ticket = ticket, .key = key, .costs = {check.cost}});
    return true;
  }
  [[nodiscard]] bool refund(const Digest& key, std::span<const AuthorityRefund> refunds,
                            MonoTime /*until*/, Now /*now*/) noexcept override {
    Asked asked{.kind = Asked::Kind::refund, .key = key};
    for (const AuthorityRefund& refund : refunds) asked.costs.push_back(refund.amount);
    asked.refunds.assign(refunds.begin(), refunds.end());
    numbered.push_back(asked);
    return true;
  }
  [[nodiscard]] bool renew(AuthorityTicket ticket, const Digest& key,
                           std::span<const AuthorityRefund> slots, MonoTime /*until*/,
                           Now /*now*/) noexcept override {
    Asked asked{.kind = Asked::Kind::renew, .ticket = ticket, .key = key};
    asked.refunds.assign(slots.begin(), slots.end());
    numbered.push_back(asked);
    return true;
  }

  void flush() noexcept override { unflushed = 0; }
  void advance(Now now, AuthorityListener& listener) noexcept override {
    while (!replies_.empty()) {
      Reply reply = replies_.front();
      replies_.pop_front();
      listener.replied(reply.ticket, reply.outcome, reply.answers, now);
    }
  }
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return {.mono = until}; }
  [[nodiscard]] const AuthorityCounts& counts() const noexcept override { return counts_; }

  // ---- what arrives with the next advance() -----------------------------------------------------

  // The reply to a decision, which is forgotten. Charges have marks of their own.
  void admit(std::size_t i = 0, std::uint64_t remaining = 3) {
    Reply reply{.ticket = decisions[i].ticket, .outcome = AuthorityOutcome::done};
    for (const Cost cost : decisions[i].costs) {
      reply.answers.push_back(answer(Verdict::allowed, remaining));
      reply.answers.back().charge = {.receipt = {.mark = ++marks_, .cost = cost}, .edition = 1};
    }
    reply_to(i, reply);
  }
  void reject(std::size_t i = 0, std::uint64_t remaining = 0, Nanos retry_after = kRetryAfter) {
    Reply reply{.ticket = decisions[i].ticket, .outcome = AuthorityOutcome::rejected};
    for (std::size_t n = 0; n < decisions[i].costs.size(); ++n) {
      reply.answers.push_back(answer(Verdict::rejected, remaining));
      reply.answers.back().decision.retry_after = retry_after;
    }
    reply_to(i, reply);
  }
  void fail(std::size_t i = 0, AuthorityOutcome how = AuthorityOutcome::failed) {
    reply_to(i, {.ticket = decisions[i].ticket, .outcome = how, .answers = {}});
  }

  // The reply to a numbered call: a charge of `cost` at this mark.
  void charged(std::size_t i, Cost cost, std::int64_t mark) {
    Reply reply{.ticket = numbered[i].ticket, .outcome = AuthorityOutcome::done};
    reply.answers.push_back(answer(Verdict::allowed, 0));
    reply.answers.back().charge = {.receipt = {.mark = mark, .cost = cost}, .edition = 1};
    numbered_reply(i, reply);
  }
  void numbered_is(std::size_t i, AuthorityOutcome outcome) {
    numbered_reply(i, {.ticket = numbered[i].ticket, .outcome = outcome, .answers = {}});
  }

  static constexpr Nanos kRetryAfter = std::chrono::milliseconds{400};

 private:
  struct Reply {
    AuthorityTicket ticket = 0;
    AuthorityOutcome outcome = AuthorityOutcome::done;
    std::vector<Answer> answers;
  };

  static Answer answer(Verdict verdict, std::uint64_t remaining) {
    return {.decision = {.verdict = verdict,
                         .limit = 10,
                         .remaining = remaining,
                         .reset_after = std::chrono::seconds{1}},
            .charge = {}};
  }
  void reply_to(std::size_t i, const Reply& reply) {
    replies_.push_back(reply);
    decisions.erase(decisions.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void numbered_reply(std::size_t i, const Reply& reply) {
    if (reply.ticket != 0) replies_.push_back(reply);
    numbered.erase(numbered.begin() + static_cast<std::ptrdiff_t>(i));
  }

  std::deque<Reply> replies_;
  std::int64_t marks_ = 0;
  AuthorityCounts counts_;
};

// CompileLimit: shares anything that the core accepts.
[[nodiscard]] inline Parsed<std::unique_ptr<const AuthorityLimit>> compile_for_test(
    const Limit& limit) {
  if (auto compiled = core::compile(limit); !compiled) {
    return tl::unexpected(std::move(compiled.error()));
  }
  class Plain final : public AuthorityLimit {};
  auto made = std::make_unique<Plain>();
  made->limit = limit;
  made->capacity = static_cast<Cost>(core::capacity(limit));
  made->identity = std::to_string(static_cast<int>(limit.algorithm)) + " " +
                   std::to_string(limit.amount) + " " + std::to_string(limit.period.count()) + " " +
                   std::to_string(made->capacity) + (limit.count_rejected ? "r" : "");
  made->usage_lasts = 2 * (limit.period + limit.slot_ttl.value_or(Nanos{0}));
  return made;
}

}  // namespace sluice::store
