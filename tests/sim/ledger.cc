#include "sim/ledger.h"

#include "sim/call_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sluice::sim {
namespace {

using store::AuthorityOutcome;
using store::GroupVerdict;
using store::Source;

// Of the text that a call names its key with.
Digest digest_of(std::string_view key) {
  const std::size_t at = store::kKeyPrefix.size() + 1;  // an opening brace
  return {.low = number_of<std::uint64_t>(key.substr(at + 16, 16), 16),
          .high = number_of<std::uint64_t>(key.substr(at, 16), 16)};
}

}  // namespace

void Ledger::violated(std::string_view invariant, std::string what) {
  if (violation_) return;
  violation_ = Violation{.invariant = std::string{invariant},
                         .what = std::move(what),
                         .when = world_.now(),
                         .before = {events_.begin(), events_.end()}};
}

void Ledger::event(std::string text) {
  constexpr std::size_t kKept = 40;
  const double seconds = static_cast<double>(world_.now().time_since_epoch().count()) / 1e9;
  tell("{}", text);
  events_.push_back(fmt::format("{:10.6f} s  {}", seconds, text));
  if (events_.size() > kKept) events_.pop_front();
}

void Ledger::tell_text(const std::string& text) const {
  fmt::print("{:12.6f} {}\n", static_cast<double>(world_.now().time_since_epoch().count()) / 1e9,
             text);
}

std::string Ledger::named(const FieldKey& field, std::uint32_t rule) const {
  const std::string_view name =
      rule < rules_.size() ? std::string_view{rules_[rule].name} : "a rule that is gone";
  return fmt::format("{}, key {:016x}{:016x} field {}", name, field.key.high, field.key.low,
                     field.field);
}

const store::AuthorityLimit* Ledger::kept(const store::AuthorityLimit& limit) {
  auto& place = limits_[limit.identity];
  if (place == nullptr) place = store::RedisLimit::compile(limit.limit).value();
  return place.get();
}

// ---- servers ------------------------------------------------------------------------------------

void Ledger::begin_life(Address server, bool from_empty) {
  servers_[server] = static_cast<std::uint32_t>(lives_from_empty_.size());
  lives_from_empty_.push_back(from_empty);
}

void Ledger::connected(Socket socket, Incarnation node) {
  connections_[{socket.connection, socket.generation}] = {.node = node, .executions = {}};
}

std::uint32_t Ledger::execution(Socket socket, std::size_t place) const {
  const auto found = connections_.find({socket.connection, socket.generation});
  if (found == connections_.end()) return kNone;
  return found->second.executions.at(place);
}

void Ledger::executed(Address server, Socket client, Words command, const Reply& reply,
                      WallTime wall) {
  const auto found = connections_.find({client.connection, client.generation});
  if (found == connections_.end()) return;  // a replica, or a test
  const auto index = static_cast<std::uint32_t>(executions_.size());
  found->second.executions.push_back(index);
  Execution& execution = executions_.emplace_back();
  execution.server = server;
  execution.life = servers_.at(server);
  execution.node = found->second.node;
  execution.at = world_.now();
  execution.server_us = wall.time_since_epoch().count() / 1'000;
  if (is_traced_) {
    std::string words;
    for (const std::string_view word : command.subspan(std::min<std::size_t>(3, command.size()))) {
      words.append(word.substr(0, 60)).append(" ");
    }
    tell("server {} life {} at {} for node {}: {} -> {}", server, execution.life,
         execution.server_us, execution.node.node, words, reply.described());
  }
  if (command.size() <= kRecords || reply.kind != Reply::Kind::array) return;
  execution.key = digest_of(command[kKeyWord]);
  const std::string_view operation = command[kOperationWord];
  const bool is_numbered = command[kSessionWord] != "-";
  if (operation == "decide" || !is_numbered) {
    execution.what = What::decide;
  } else if (operation == "charge") {
    execution.what = What::charge;
  } else if (operation == "settle") {
    execution.what = What::settle;
  } else if (operation == "refund") {
    execution.what = What::refund;
  } else if (operation == "renew") {
    execution.what = What::renew;
  }
  execution.done = reply.items.at(0).integer == 1;
  if (!execution.done) return;
  if (is_numbered) {
    auto& lives = numbered_[{std::string{command[kSessionWord]},
                             number_of<std::uint64_t>(command[kSequenceWord])}];
    // Only a server that lost what it knew applies a number again, and then it counts there.
    execution.is_first = lives.empty();
    if (!lives.insert(execution.life).second) {
      violated("I2", fmt::format("a numbered call was applied twice: {} of node {}", operation,
                                 execution.node.node));
    }
  }
  if (execution.what == What::refund) return execute_refunds(execution, command);
  execute_parts(execution, command, reply);
}

void Ledger::execute_parts(const Execution& execution, Words command, const Reply& reply) {
  if (execution.what == What::other || execution.what == What::renew) return;
  std::size_t numbers = kAnswers;
  for (std::size_t i = kRecords; i + kWordsOfRecord <= command.size();
       i += kWordsOfRecord, numbers += kNumbersOfAnswer) {
    const FieldKey field{.key = execution.key, .field = number_of<store::FieldId>(command[i], 16)};
    const std::int64_t charged = reply.items.at(numbers + kCharged).integer;
    Account& of_node = account(execution.node, field);
    if (execution.what == What::decide) of_node.executed_done += charged;
    if (execution.what == What::charge && execution.is_first) {
      of_node.charges_asked += number_of<std::int64_t>(command[i + kCostWord]);
    }
    if (execution.what != What::decide) field_lives_[{field, execution.life}].was_forced = true;
    if (charged == 0) continue;
    FieldLife& life = field_lives_[{field, execution.life}];
    if (life.charged == 0) life.first_us = execution.server_us;
    life.charged += charged;
    life.editions.insert(reply.items.at(numbers + kEdition).integer);
  }
}

void Ledger::execute_refunds(const Execution& execution, Words command) {
  for (std::size_t i = kRecords; i + kWordsOfRecord <= command.size(); i += kWordsOfRecord) {
    const FieldKey field{.key = execution.key, .field = number_of<store::FieldId>(command[i], 16)};
    const auto amount = number_of<std::int64_t>(command[i + kAmountWord]);
    if (execution.is_first) {
      account(execution.node, field).refunds_executed += amount;
      ++summary_.refunds;
    }
    const auto life = field_lives_.find({field, execution.life});
    if (life == field_lives_.end()) continue;
    // A charge of another life is void here.
    if (life->second.editions.contains(number_of<std::int64_t>(command[i + kEditionWord]))) {
      life->second.refunded += amount;
    }
  }
}

// ---- the authority's seam -----------------------------------------------------------------------

std::uint32_t Ledger::asked(Incarnation node, const Digest& key,
                            std::span<const store::AuthorityCheck> checks) {
  const auto index = static_cast<std::uint32_t>(asks_.size());
  Ask& ask = asks_.emplace_back();
  ask.node = node;
  ask.call = calling_;
  for (const store::AuthorityCheck& check : checks) {
    ask.parts.push_back(
        {.field = {.key = key, .field = store::RedisAuthority::field_of(check.salt)},
         .cost = check.cost,
         .probe = check.probe});
  }
  if (calling_ == kNone) {
    violated("I10", "the store asked without a request");
    return index;
  }
  for (CalledGroup& group : calls_[calling_].groups) {
    if (group.is_shared && group.key == key) group.ask = index;
  }
  return index;
}

void Ledger::not_asked(std::uint32_t ask) {
  if (ask + 1 != asks_.size()) throw std::logic_error{"another call was asked meanwhile"};
  const std::uint32_t call = asks_.back().call;
  asks_.pop_back();
  if (call == kNone) return;
  for (CalledGroup& group : calls_[call].groups) {
    if (group.ask == ask) group.ask = kNone;
  }
}

void Ledger::replied(std::uint32_t index, AuthorityOutcome outcome,
                     std::span<const store::Answer> answers, std::uint32_t execution) {
  Ask& ask = asks_.at(index);
  ask.outcome = outcome;
  if (outcome != AuthorityOutcome::done && outcome != AuthorityOutcome::rejected) return;
  ask.execution = execution;
  Execution& executed = executions_.at(execution);
  if (executed.key != ask.parts[0].field.key || executed.what != What::decide) {
    violated("I10", fmt::format("node {} took the reply of another call", ask.node.node));
  }
  if (std::exchange(executed.reported, true)) {
    violated("I10", fmt::format("node {} took one reply twice", ask.node.node));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const store::Charge& charge = answers[i].charge;
    Part& part = ask.parts[i];
    part.charged = charge.receipt.cost;
    part.mark = charge.receipt.mark;
    part.edition = charge.edition;
    account(ask.node, part.field).known_done += part.charged;
  }
}

void Ledger::charge_sent(Incarnation node, const Digest& key, const store::AuthorityCheck& check,
                         store::Authority::Reason reason) {
  Account& of_node =
      account(node, {.key = key, .field = store::RedisAuthority::field_of(check.salt)});
  if (reason == store::Authority::Reason::outage) {
    of_node.settled_sent += check.cost;
    ++summary_.settlements;
  } else {
    of_node.charges_sent += check.cost;
  }
}

void Ledger::refund_sent(Incarnation node, const Digest& key,
                         std::span<const store::AuthorityRefund> refunds) {
  for (const store::AuthorityRefund& refund : refunds) {
    account(node, {.key = key, .field = store::RedisAuthority::field_of(refund.salt)})
        .refunds_sent += refund.amount;
  }
}

// ---- the engine's store -------------------------------------------------------------------------

std::uint32_t Ledger::called(Incarnation node, const store::Call& call,
                             const store::SharedLimits& limits, Now now) {
  const auto index = static_cast<std::uint32_t>(calls_.size());
  Called& made = calls_.emplace_back();
  made.node = node;
  made.request = request_;
  made.asked = now;
  made.is_independent = call.kind == store::Call::Kind::independent;
  for (const store::Check& check : call.asked()) {
    const Digest key = check.group_key();
    const store::SharedTerms* const terms =
        store::is_shared(check.limit) ? limits.find(check.limit) : nullptr;
    made.checks.push_back(
        {.field = {.key = key, .field = store::RedisAuthority::field_of(check.salt)},
         .cost = check.cost,
         .probe = check.probe,
         .limit = terms != nullptr ? kept(*terms->limit) : nullptr});
  }
  for (const store::Group& group : call.all_groups()) {
    const store::Check& first = call.checks[group.first];
    const store::SharedTerms* const terms =
        store::is_shared(first.limit) ? limits.find(first.limit) : nullptr;
    made.groups.push_back({.key = first.group_key(),
                           // The tolerance has no meaning for exact limits: here it names the rule.
                           .rule = terms != nullptr ? terms->sharing.tolerance_permille : 0,
                           .first = group.first,
                           .count = group.count,
                           .is_shared = store::is_shared(first.limit)});
  }
  calling_ = index;
  return index;
}

void Ledger::completed(std::uint32_t index, const store::Call& with, Now now,
                       MonoTime allowed_until) {
  Called& call = calls_[index];
  if (call.is_completed || call.is_cancelled) {
    return violated("I10", fmt::format("node {} completed a call {}", call.node.node,
                                       call.is_completed ? "twice" : "that was cancelled"));
  }
  call.is_completed = true;
  call.is_admitted = with.admitted;
  ++summary_.calls;
  world_.note(with.admitted ? "admitted" : "rejected");
  if (now.mono > allowed_until) {
    violated("I4", fmt::format("node {} decided {} us after its budget", call.node.node,
                               (now.mono - allowed_until).count() / 1'000));
  }
  for (std::size_t at = 0; at < call.groups.size(); ++at) {
    CalledGroup& group = call.groups[at];
    group.verdict = with.groups[at].verdict;
    group.source = with.groups[at].source;
    if (!group.is_shared) continue;
    tell("node {} request {}: {}: verdict {} by {}, {}", call.node.node, call.request,
         named(call.checks[group.first].field, group.rule), static_cast<int>(group.verdict),
         to_string(group.source), call.is_admitted ? "admitted" : "rejected");
    world_.note(static_cast<std::uint64_t>(group.source) << 8U |
                static_cast<std::uint64_t>(group.verdict));
    ++summary_.shared_groups;
    if (group.source == Source::denied_until) ++summary_.denied_until;
    const bool is_known = group.source == Source::exact || group.source == Source::denied_until ||
                          group.verdict == GroupVerdict::not_asked;
    if (expects_liveness_ && !is_known) {
      violated("I5", fmt::format("{} was decided by {} after {} us at node {}, although all faults "
                                 "are over",
                                 named(call.checks[group.first].field, group.rule),
                                 to_string(group.source),
                                 (now.mono - call.asked.mono).count() / 1'000, call.node.node));
    }
    bool all_allowed = true;
    for (std::size_t i = group.first; i < std::size_t{group.first} + group.count; ++i) {
      if (!with.groups[at].has_answers()) break;
      const Decision& decision = with.answers[i].decision;
      all_allowed &= decision.allowed();
      if (decision.remaining > decision.limit) {
        violated("I7", fmt::format("{}: {} left of {}", named(call.checks[i].field, group.rule),
                                   decision.remaining, decision.limit));
      }
      const bool may_be_unknown = call.checks[i].limit != nullptr &&
                                  call.checks[i].limit->limit.algorithm == Algorithm::concurrency;
      // A share may be too small for a cost for ever, and the limit is not.
      const bool knows = group.source == Source::exact || group.source == Source::denied_until;
      if (knows && decision.verdict == Verdict::rejected && !decision.retry_after &&
          !may_be_unknown) {
        violated("I7", fmt::format("{}: rejected without a time to retry",
                                   named(call.checks[i].field, group.rule)));
      }
    }
    const bool is_wrong = (group.verdict == GroupVerdict::admitted && !all_allowed) ||
                          (group.verdict == GroupVerdict::rejected && all_allowed);
    if (is_wrong) {
      violated("I7", fmt::format("{}: the verdict differs from its answers",
                                 named(call.checks[group.first].field, group.rule)));
    }
    if (call.is_admitted && group.source == Source::share) ++summary_.by_share;
    if (call.is_admitted && group.source == Source::open) ++summary_.by_open;
    if (group.source == Source::closed) ++summary_.by_closed;
    const bool is_in_effect =
        group.verdict == GroupVerdict::admitted && (call.is_admitted || call.is_independent);
    if (!is_in_effect) continue;
    if (group.source == Source::exact && group.ask == kNone) {
      violated("I10", fmt::format("{} was admitted by an authority that was not asked",
                                  named(call.checks[group.first].field, group.rule)));
      continue;
    }
    for (std::size_t i = 0; i < group.count; ++i) {
      const CalledCheck& check = call.checks[group.first + i];
      if (check.limit == nullptr || check.probe || check.cost == 0) continue;
      if (group.source == Source::share) {
        by_share_.push_back({.field = check.field,
                             .node = call.node,
                             .rule = group.rule,
                             .at = call.asked,
                             .cost = check.cost,
                             .limit = check.limit});
        shares_by_request_[{call.request, check.field}] = &by_share_.back();
      }
      if (group.source != Source::exact) continue;
      const Ask& ask = asks_[group.ask];
      const Execution& execution = executions_.at(ask.execution);
      const Part& part = ask.parts.at(i);
      Admission& admission = admissions_.emplace_back();
      admission.field = check.field;
      admission.rule = group.rule;
      admission.life = execution.life;
      admission.server_us = execution.server_us;
      admission.from = execution.at;
      admission.mark = part.mark;
      admission.edition = part.edition;
      admission.cost = part.charged;
      admission.limit = check.limit;
      by_request_[{call.request, check.field}] = &admission;
      fields_[check.field] = {group.rule, check.limit};
      ++summary_.admitted;
    }
  }
}

void Ledger::cancelled(std::uint32_t call) { calls_[call].is_cancelled = true; }

void Ledger::refunded(Incarnation node, const store::Check& check, const store::Holding& holding) {
  const FieldKey field{.key = check.group_key(),
                       .field = store::RedisAuthority::field_of(check.salt)};
  const bool is_of_authority = holding.ticket != 0 || store::is_shared(holding.charge.limit);
  Account& of_node = account(node, field);
  if (!is_of_authority) {
    of_node.owed_back += holding.cost;
    of_node.refunds_late += holding.cost;
    const auto found = shares_by_request_.find({request_, field});
    if (found != shares_by_request_.end()) found->second->cost = 0;
    return;
  }
  if (holding.ticket != 0) of_node.is_inexact = true;
  of_node.refunds_due += holding.charge.receipt.cost + holding.more.receipt.cost;
  const auto found = by_request_.find({request_, field});
  if (found == by_request_.end()) return;
  Admission& admission = *found->second;
  // A slot was used until it is given back; all else is as if it had never been charged.
  if (admission.limit->limit.algorithm == Algorithm::concurrency) {
    admission.to = world_.now();
    admission.is_over = true;
  } else {
    admission.cost = 0;
  }
}

void Ledger::corrected(Incarnation node, const store::Check& check, const store::Holding& holding,
                       Cost cost) {
  const FieldKey field{.key = check.group_key(),
                       .field = store::RedisAuthority::field_of(check.salt)};
  Account& of_node = account(node, field);
  const bool is_of_authority = holding.ticket != 0 || store::is_shared(holding.charge.limit);
  if (!is_of_authority) {
    // As much as the share has room for is charged there, and owed.
    if (cost > holding.cost) of_node.owed += cost - holding.cost;
    of_node.owed_back += std::max(cost, holding.cost) - std::min(cost, holding.cost);
    const auto found = shares_by_request_.find({request_, field});
    if (found != shares_by_request_.end())
      found->second->cost = std::min(found->second->cost, cost);
    return;
  }
  if (holding.ticket != 0 || cost > holding.cost) {
    of_node.is_inexact = true;
  } else {
    of_node.refunds_due +=
        std::min(holding.cost - cost, holding.charge.receipt.cost + holding.more.receipt.cost);
  }
  const auto found = by_request_.find({request_, field});
  if (found != by_request_.end()) found->second->cost = std::min(found->second->cost, cost);
}

void Ledger::renewed(Incarnation node, const store::Check& check) {
  const FieldKey field{.key = check.group_key(),
                       .field = store::RedisAuthority::field_of(check.salt)};
  account(node, field).is_inexact = true;
}

void Ledger::charged(Incarnation node, const store::Check& check) {
  const FieldKey field{.key = check.group_key(),
                       .field = store::RedisAuthority::field_of(check.salt)};
  // Sent at once, or settled later: one of both.
  account(node, field).owed += check.cost;
  account(node, field).owed_back += check.cost;
}

void Ledger::request_over(std::uint64_t request) {
  shares_by_request_.erase(shares_by_request_.lower_bound({request, FieldKey{}}),
                           shares_by_request_.lower_bound({request + 1, FieldKey{}}));
  for (auto at = by_request_.lower_bound({request, FieldKey{}});
       at != by_request_.end() && at->first.first == request;) {
    Admission& admission = *at->second;
    if (!std::exchange(admission.is_over, true)) admission.to = world_.now();
    at = by_request_.erase(at);
  }
}

void Ledger::crashed(Incarnation node) {
  crashed_.insert(node);
  for (Called& call : calls_) {
    if (call.node == node && !call.is_completed && !call.is_cancelled) call.is_lost = true;
  }
}

}  // namespace sluice::sim
