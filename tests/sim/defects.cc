#include "sim/defects.h"

#include "sim/call_words.h"
#include "store/redis/test_clock_fixture.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sluice::sim {
namespace {

using store::TransportReply;

std::vector<std::string_view> views_of(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

}  // namespace

store::FunctionLibrary library_with(Defect defect) {
  if (defect == Defect::node_clock_windows) {
    return store::function_library_with(store::kClockOfArguments);
  }
  store::FunctionLibrary library = store::function_library();
  if (defect != Defect::edition_ignored) return library;
  constexpr std::string_view kRight = "return edition == field.edition and mark or nil";
  const std::size_t at = library.library.find(kRight);
  if (at == std::string::npos) throw std::logic_error{"the functions no longer look like that"};
  library.library.replace(at, kRight.size(), "return mark");
  return library;
}

// ---- transport ----------------------------------------------------------------------------------

bool DefectiveTransport::pass(std::uint64_t tag, const Digest& key,
                              const std::vector<std::string>& words) noexcept {
  return inner_.send(tag, key, views_of(words));
}

bool DefectiveTransport::send(std::uint64_t tag, const Digest& key,
                              std::span<const std::string_view> words) noexcept {
  const bool is_call = words.size() > kRecords;
  if (!is_call) return inner_.send(tag, key, words);
  std::vector<std::string> all{words.begin(), words.end()};
  const bool is_decision = all[kOperationWord] == "decide";
  switch (defect_) {
    case Defect::node_clock_windows:
      all.push_back(std::to_string(process_.clock().wall().time_since_epoch().count() / 1'000));
      return pass(tag, key, all);
    case Defect::read_then_write: {
      const bool has_probes = std::ranges::find(all, "probe") != all.end();
      if (!is_decision || has_probes) return pass(tag, key, all);
      Sent sent{.key = key, .words = all, .at = {}, .is_look = true};
      all[kOperationWord] = "peek";
      if (!pass(tag, key, all)) return false;
      sent_[tag] = std::move(sent);
      return true;
    }
    case Defect::blind_resend:
      if (!pass(tag, key, all)) return false;
      if (is_decision) {
        sent_[tag] = {.key = key, .words = all, .at = process_.clock().now().mono};
      }
      return true;
    case Defect::reply_of_reused_call: last_tags_[tag & 0xffffU] = tag; return pass(tag, key, all);
    case Defect::duplicate_release: {
      if (!pass(tag, key, all)) return false;
      if (all[kOperationWord] != "refund") return true;
      // A session of its own, for no call of the other to be taken for one that was applied.
      all[kSessionWord].front() = 'f';
      all[kSequenceWord] = std::to_string(++duplicates_);
      if (pass(tag, key, all)) ++ignored_[tag];
      return true;
    }
    default: return pass(tag, key, all);
  }
}

// After so long without a reply, once.
void DefectiveTransport::send_again(std::uint64_t tag) noexcept {
  Sent& sent = sent_[tag];
  sent.is_again = true;
  (void)pass(tag, sent.key, sent.words);
}

void DefectiveTransport::flush() noexcept {
  if (defect_ == Defect::blind_resend) {
    constexpr Nanos kPatience = std::chrono::milliseconds{10};
    const MonoTime now = process_.clock().now().mono;
    for (auto& [tag, sent] : sent_) {
      if (!sent.is_again && now - sent.at > kPatience) send_again(tag);
    }
  }
  inner_.flush();
}

// Of a look: whether it becomes a rejection. Otherwise it is charged in another call.
bool DefectiveTransport::looked(std::uint64_t tag, TransportReply& reply) {
  Sent& sent = sent_[tag];
  numbers_.assign(reply.numbers.begin(), reply.numbers.end());
  bool has_room = true;
  for (std::size_t i = kRecords, n = kAnswers; i < sent.words.size();
       i += kWordsOfRecord, n += kNumbersOfAnswer) {
    const bool fits =
        numbers_.at(n + kRemaining) >= number_of<std::int64_t>(sent.words[i + kCostWord]);
    if (fits) continue;
    has_room = false;
    numbers_[n] = 1;
    numbers_[n + kRetry] = std::max<std::int64_t>(numbers_[n + kReset], 1'000);
  }
  if (!has_room) {
    numbers_[0] = 0;
    reply.numbers = numbers_;
    sent_.erase(tag);
    return true;
  }
  sent.is_look = false;
  sent.words[kOperationWord] = "charge";
  const bool passed = pass(tag, sent.key, sent.words);
  if (passed) return false;
  reply.kind = TransportReply::Kind::disconnected;
  sent_.erase(tag);
  return true;
}

bool DefectiveTransport::receive(TransportReply& reply) noexcept {
  while (inner_.receive(reply)) {
    if (defect_ == Defect::reply_of_reused_call) {
      const auto found = last_tags_.find(reply.tag & 0xffffU);
      if (found != last_tags_.end() && (reply.tag & 0xffff0000U) == 0) reply.tag = found->second;
      return true;
    }
    if (defect_ == Defect::duplicate_release) {
      // The first reply is that of the call itself.
      auto found = ignored_.find(reply.tag);
      if (found == ignored_.end()) return true;
      if (found->second > 0) {
        found->second = -1;
        return true;
      }
      ignored_.erase(found);
      continue;
    }
    const auto found = sent_.find(reply.tag);
    if (found == sent_.end()) return true;
    const bool is_done = reply.kind == TransportReply::Kind::numbers;
    if (defect_ == Defect::read_then_write && is_done) {
      if (found->second.is_look) {
        if (looked(reply.tag, reply)) return true;
        continue;
      }
      numbers_.assign(reply.numbers.begin(), reply.numbers.end());
      for (std::size_t i = kRecords, n = kAnswers; i < found->second.words.size();
           i += kWordsOfRecord, n += kNumbersOfAnswer) {
        numbers_.at(n + kCharged) = number_of<std::int64_t>(found->second.words[i + kCostWord]);
      }
      reply.numbers = numbers_;
    }
    sent_.erase(found);
    return true;
  }
  return false;
}

// ---- authority ----------------------------------------------------------------------------------

bool DefectiveAuthority::charge(store::AuthorityTicket ticket, const Digest& key,
                                const store::AuthorityCheck& check, Reason reason,
                                Now now) noexcept {
  if (defect_ == Defect::outage_not_settled && reason == Reason::outage) {
    forgotten_.push_back(ticket);
    return true;
  }
  return inner_.charge(ticket, key, check, reason, now);
}

bool DefectiveAuthority::refund(const Digest& key, std::span<const store::AuthorityRefund> refunds,
                                MonoTime until, Now now) noexcept {
  if (defect_ == Defect::missing_compensation && !engine_refunds_) return true;
  return inner_.refund(key, refunds, until, now);
}

void DefectiveAuthority::advance(Now now, store::AuthorityListener& listener) noexcept {
  for (const store::AuthorityTicket ticket : std::exchange(forgotten_, {})) {
    listener.replied(ticket, store::AuthorityOutcome::done, {}, now);
  }
  inner_.advance(now, listener);
}

// ---- store --------------------------------------------------------------------------------------

void DefectiveStore::refund(const store::Check& check, store::Holding& holding, Now now) noexcept {
  authority_.engine_refunds(true);
  store::Holding copy = holding;
  const bool twice = defect_ == Defect::double_refund && holding.ticket == 0;
  inner_.refund(check, holding, now);
  if (twice) inner_.refund(check, copy, now);
  authority_.engine_refunds(false);
}

void DefectiveStore::correct(const store::Check& check, store::Holding& holding, store::Cost cost,
                             Now now) noexcept {
  authority_.engine_refunds(true);
  inner_.correct(check, holding, cost, now);
  authority_.engine_refunds(false);
}

}  // namespace sluice::sim
