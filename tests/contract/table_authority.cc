#include "contract/table_authority.h"

#include "store/local/limit_registry.h"
#include <sluice/core/compiled_limit.h>

#include <algorithm>
#include <utility>

namespace sluice::contract {

using store::Answer;
using store::AuthorityCheck;
using store::AuthorityLimit;
using store::AuthorityOutcome;
using store::AuthorityRefund;
using store::AuthorityTicket;
using store::Charge;
using store::Check;

Parsed<std::unique_ptr<const AuthorityLimit>> TableTruth::compile(const Limit& limit) {
  class TableLimit final : public AuthorityLimit {
   public:
    std::optional<Charge> joined(const Charge& earlier,
                                 const Charge& later) const noexcept override {
      const auto receipt = core::joined(*compiled, earlier.receipt, later.receipt);
      if (!receipt) return std::nullopt;
      Charge both = earlier;
      both.receipt = *receipt;
      return both;
    }
    std::optional<core::CompiledLimit> compiled;
  };
  const auto identity = store::limit_identity(limit);
  if (!identity) return tl::unexpected(identity.error());
  auto made = std::make_unique<TableLimit>();
  made->compiled = core::compile(limit).value();
  made->limit = limit;
  made->identity = std::to_string(*identity);
  made->capacity = static_cast<store::Cost>(core::capacity(limit));
  made->usage_lasts = core::kDrainMax;
  return made;
}

store::LimitNumber TableTruth::number_of(const AuthorityLimit& limit, Now now) {
  const auto [place, is_new] = numbers_.try_emplace(limit.identity, 0);
  if (is_new) place->second = table_.use(limit.limit, now).value();
  return place->second;
}

// ---- what is asked ------------------------------------------------------------------------------

Check TableAuthority::check_of(const Digest& key, std::uint64_t salt) noexcept {
  return {.key = {.low = key.low ^ salt, .high = key.high}, .salt = salt};
}

bool TableAuthority::decide(AuthorityTicket ticket, const Digest& key,
                            std::span<const AuthorityCheck> checks, Now now) noexcept {
  Command command{.kind = Command::Kind::decide, .ticket = ticket};
  for (const AuthorityCheck& check : checks) {
    Check& one = command.checks.emplace_back(check_of(key, check.salt));
    one.limit = truth_.number_of(*check.limit, now);
    one.cost = check.cost;
    one.change = check.change;
    one.probe = check.probe;
  }
  commands_.push_back(std::move(command));
  return true;
}

bool TableAuthority::charge(AuthorityTicket ticket, const Digest& key, const AuthorityCheck& check,
                            Reason /*reason*/, Now now) noexcept {
  Command command{.kind = Command::Kind::charge, .ticket = ticket};
  Check& one = command.checks.emplace_back(check_of(key, check.salt));
  one.limit = truth_.number_of(*check.limit, now);
  one.cost = check.cost;
  one.change = check.change;
  commands_.push_back(std::move(command));
  return true;
}

// Charges carry the number of the table's limit in a field that the table does not use.
void TableAuthority::add_slots(Command& command, const Digest& key,
                               std::span<const AuthorityRefund> slots) {
  for (const AuthorityRefund& slot : slots) {
    Check& one = command.checks.emplace_back(check_of(key, slot.salt));
    one.limit = slot.charge.ticks;
    one.cost = slot.amount;
    command.charges.push_back(slot.charge);
    command.charges.back().limit = slot.charge.ticks;
  }
}

bool TableAuthority::refund(const Digest& key, std::span<const AuthorityRefund> refunds,
                            MonoTime /*until*/, Now /*now*/) noexcept {
  Command command{.kind = Command::Kind::refund};
  add_slots(command, key, refunds);
  commands_.push_back(std::move(command));
  return true;
}

bool TableAuthority::renew(AuthorityTicket ticket, const Digest& key,
                           std::span<const AuthorityRefund> slots, MonoTime /*until*/,
                           Now /*now*/) noexcept {
  Command command{.kind = Command::Kind::renew, .ticket = ticket};
  add_slots(command, key, slots);
  commands_.push_back(std::move(command));
  return true;
}

// ---- what moves ---------------------------------------------------------------------------------

TableAuthority::Reply TableAuthority::carry_out(const Command& command, Now now) {
  using Kind = Command::Kind;
  store::LocalStore& table = truth_.table();
  Reply reply{.is_decision = command.kind == Kind::decide, .ticket = command.ticket};
  reply.answers.resize(command.checks.size());
  if (command.kind == Kind::decide) {
    const bool admitted = table.decide_all(command.checks, now, reply.answers);
    if (!admitted) reply.outcome = AuthorityOutcome::rejected;
  }
  for (std::size_t i = 0; i < command.checks.size(); ++i) {
    const Check& check = command.checks[i];
    Answer& answer = reply.answers[i];
    if (command.kind == Kind::charge) answer = table.force(check, now);
    if (command.kind == Kind::refund) table.refund(check, command.charges[i], now);
    if (command.kind == Kind::renew) answer.charge = table.renew(check, command.charges[i], now);
    if (reply.outcome == AuthorityOutcome::rejected) answer.charge = {};
    answer.charge.ticks = check.limit;
  }
  return reply;
}

bool TableAuthority::move_any(Random& order, Now now) {
  if (commands_.empty()) return false;
  // Any that has none of its key before it.
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    const bool is_first =
        std::none_of(commands_.begin(), commands_.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const Command& other) {
                       return other.checks[0].group_key() == commands_[i].checks[0].group_key();
                     });
    if (is_first) next.push_back(i);
  }
  const auto chosen =
      commands_.begin() + static_cast<std::ptrdiff_t>(next[order.below(next.size())]);
  Reply reply = carry_out(*chosen, now);
  commands_.erase(chosen);
  if (reply.ticket != 0) replies_.push_back(std::move(reply));
  return true;
}

void TableAuthority::let_arrive(Random& order) {
  std::shuffle(replies_.begin(), replies_.end(), order);
  std::ranges::move(replies_, std::back_inserter(arrived_));
  replies_.clear();
}

// Lost commands are lost for good; a lost reply leaves its charge behind.
void TableAuthority::lose() {
  std::erase_if(commands_,
                [](const Command& command) { return command.kind == Command::Kind::decide; });
  std::erase_if(replies_, [](const Reply& reply) { return reply.is_decision; });
}

void TableAuthority::advance(Now now, store::AuthorityListener& listener) noexcept {
  while (!arrived_.empty()) {
    Reply reply = std::move(arrived_.front());
    arrived_.pop_front();
    listener.replied(reply.ticket, reply.outcome, reply.answers, now);
  }
}

}  // namespace sluice::contract
