// Leases, seats and calls that are sent twice, against a model.
//
// Several sessions take, spend and give back tokens of one key, and send some calls again, as nodes
// do whose replies were lost. The limit's own state is the model of the core.

#include "base/random.h"
#include "store/redis/call_codec.h"
#include "store/redis/function_library.h"
#include "store/redis/redis_fixture.h"
#include "store/redis/shared_model_fixture.h"
#include "store/redis/test_clock_fixture.h"
#include "support/effort.h"
#include "support/traffic.h"
#include <sluice/int128.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::store {
namespace {

using core::Cost;
using namespace std::chrono_literals;

struct ModelGrant {
  SharedSequence number;
  Cost tokens = 0;
  std::int64_t ends = 0;
  ModelCharge charge;
  bool seat = false;
};

struct Wanted {
  ReplyStatus status = ReplyStatus::done;
  std::vector<ModelAnswer> answers;
};

// One key with one limit.
class LeaseHistory {
 public:
  LeaseHistory(RedisServer& redis, std::string function, std::uint64_t seed)
      : redis_(redis), function_(std::move(function)), random_(seed) {
    key_ = shared_key({.low = seed, .high = 2});
    limit_ = random_limit();
    now_ = 1'700'000'000'000'000 + below(1'000'000'000'000);
  }

  // What differs, or nothing.
  std::string run(int operations) {
    for (int i = 0; i < operations && failure_.empty(); ++i) operate();
    if (failure_.empty()) return {};
    std::string text = limit_->text + "\n";
    for (const std::string& line : story_) text += "  " + line + "\n";
    return text + failure_;
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }

  SharedLimitPtr random_limit() {
    const std::array kPeriods{Nanos{800ms}, Nanos{1s}, Nanos{10s}, Nanos{1min}, Nanos{1h}};
    Limit limit{.algorithm = Algorithm::token_bucket};
    limit.amount = static_cast<std::uint64_t>(1 + below(300));
    limit.period = kPeriods[static_cast<std::size_t>(below(5))];
    const std::int64_t kind = below(5);
    if (kind == 0) limit.burst = static_cast<std::uint64_t>(1 + below(500));
    if (kind >= 2) limit.algorithm = Algorithm::fixed_window;
    if (kind == 3) limit.align = Align::first_request;
    if (kind == 4) {
      limit.period = Nanos{0};
      limit.align = Align::calendar;
      limit.unit = CalendarUnit::day;
    }
    SharedLimitPtr shared = std::make_shared<const SharedLimit>(compile_shared(limit).value());
    EXPECT_TRUE(shared->is_leasable);
    return shared;
  }

  void operate() {
    const std::int64_t period = limit_->limit.unit ? 86'400'000'000 : micros(limit_->limit.period);
    switch (below(8)) {
      case 0:
      case 1: now_ += below(period); break;
      case 2: now_ += below(period / 20); break;
      case 3: now_ += below(3'000'000); break;
      case 4: now_ -= below(20) == 0 ? below(100'000'000) : below(1'000); break;
      default: break;
    }
    expire();
    session_ = static_cast<std::uint64_t>(1 + below(4));
    switch (below(8)) {
      case 0:
      case 1:
      case 2: reserve(); break;
      case 3:
      case 4: give_back(); break;
      case 5: charge(); break;
      case 6: refund(); break;
      default: decide(); break;
    }
    redis_.send({"HGET", key_, "!"});
    const RedisReply ends = redis_.receive();
    if (ends.kind == RedisReply::Kind::text) ends_ = std::stoll(ends.text);
  }

  static std::int64_t micros(Nanos time) { return time.count() / 1'000; }

  void expire() {
    if (!ends_ || now_ < *ends_) return;
    prune();
    if (!field_.is_idle(now_) || !grants_.empty()) failure_ = "the key expired while in use";
    field_.expire();
    grants_.clear();
    charges_.clear();
    ends_.reset();
  }

  [[nodiscard]] WallTime wall() const { return WallTime{Nanos{now_ * 1'000}}; }
  [[nodiscard]] SharedCheck check(Cost cost) const { return {.limit = limit_.get(), .cost = cost}; }
  SharedSequence next() { return {.session = session_, .sequence = ++sequences_[session_]}; }

  // Not ended, nor left too far ahead by a clock that was set back.
  [[nodiscard]] bool is_alive(const ModelGrant& grant) const {
    return grant.ends > now_ && grant.ends - now_ <= 120'000'000;
  }
  // Where the list is written, those that ended are not.
  void prune() {
    std::erase_if(grants_, [&](const ModelGrant& grant) { return !is_alive(grant); });
  }

  // Sends the call, then at times once more: the second time it changes nothing.
  void call(const Wanted& wanted, SharedSequence number = {}, bool reserves = false) {
    send(wanted);
    if (number.session == 0) return;
    if (below(3) == 0 && failure_.empty()) {
      send(reserves ? wanted_again(number) : Wanted{.status = ReplyStatus::repeated});
    }
  }

  void send(const Wanted& wanted) {
    const std::string now = std::to_string(now_);
    std::vector<std::string_view> command{"FCALL", function_, "1", key_};
    std::string story = now;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      command.push_back(arguments_[i]);
      story += fmt::format(" {}", arguments_[i]);
    }
    command.push_back(now);
    story_.push_back(std::move(story));
    if (story_.size() > 40) story_.pop_front();
    const RedisReply reply = redis_.ask(command);
    if (reply.is_error()) {
      failure_ = reply.text;
      return;
    }
    compare(wanted, reply.numbers());
  }

  void compare(const Wanted& wanted, const std::vector<std::int64_t>& numbers) {
    const std::vector<Cost> capacities(wanted.answers.size(), limit_->capacity);
    std::vector<SharedAnswer> answers(wanted.answers.size());
    const auto reply = read_reply(numbers, capacities, answers);
    if (!reply || reply->status != wanted.status) {
      failure_ = "another status: " + fmt::format("{}", fmt::join(numbers, " "));
      return;
    }
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const ModelAnswer& expected = wanted.answers[i];
      if (answers[i].decision == expected.decision &&
          answers[i].charge.cost == expected.charge.receipt.cost) {
        last_charge_ = answers[i].charge;
        continue;
      }
      std::ostringstream text;
      text << "model: ";
      showValue(expected.decision, text);
      text << " charged=" << expected.charge.receipt.cost << "\nredis: ";
      showValue(answers[i].decision, text);
      text << " charged=" << answers[i].charge.cost;
      failure_ = text.str();
    }
  }

  // ---- operations -----------------------------------------------------------------------------

  void decide() {
    const Cost cost = static_cast<Cost>(below(4));
    const ModelField::Trial trial = field_.decide(limit_, OnChange::keep, now_, cost);
    const Verdict verdict = trial.answer.decision.verdict;
    if (verdict != Verdict::never) field_ = trial.after;
    const SharedCheck asked = check(cost);
    write_decide(arguments_, std::span{&asked, 1}, wall());
    call({.status = verdict == Verdict::allowed ? ReplyStatus::done : ReplyStatus::rejected,
          .answers = {trial.answer}});
    remember(trial.answer);
  }

  void remember(const ModelAnswer& answer) {
    if (answer.charge.receipt.cost == 0 || !failure_.empty()) return;
    charges_.emplace_back(last_charge_, answer.charge);
    if (charges_.size() > 8) charges_.erase(charges_.begin());
  }

  void charge() {
    const Cost cost = static_cast<Cost>(below(5));
    const SharedSequence number = next();
    const SharedCheck asked = check(cost);
    const ModelAnswer answer = field_.charge(limit_, OnChange::keep, now_, cost);
    if (below(2) == 0) {
      write_charge(arguments_, std::span{&asked, 1}, number, wall());
    } else {
      write_settle(arguments_, std::span{&asked, 1}, number, wall());
    }
    call({.answers = {answer}}, number);
    remember(answer);
  }

  void refund() {
    if (charges_.empty()) return decide();
    const auto [here, there] = charges_.back();
    charges_.pop_back();
    const SharedSequence number = next();
    const Refunding refunding{.field = 0, .charge = here, .amount = here.cost};
    field_.refund(now_, there, here.cost);
    write_refund(arguments_, std::span{&refunding, 1}, number);
    call({}, number);
  }

  [[nodiscard]] ModelAnswer peeked() const {
    return {.decision = field_.peek(limit_, OnChange::keep, now_)};
  }

  // A grant of a window ends with it; a charge of one tells when that is.
  [[nodiscard]] std::int64_t usable(std::int64_t duration) const {
    if (limit_->counts_micros) return duration;
    const Decision charged = field_.decide(limit_, OnChange::keep, now_, 1).answer.decision;
    return std::min(duration, micros(charged.reset_after));
  }

  void reserve() {
    const SharedSequence number = next();
    const Reservation reservation{.check = check(static_cast<Cost>(1 + below(limit_->capacity))),
                                  .cap = static_cast<std::uint64_t>(1 + below(limit_->capacity)),
                                  .duration = Nanos{(1 + below(5'000'000)) * 1'000},
                                  .seat = below(4) == 0};
    write_reserve(arguments_, reservation, number, wall());
    prune();
    std::uint64_t held = 0;
    for (const ModelGrant& grant : grants_) held += grant.tokens;
    const ModelField::Trial one = field_.decide(limit_, OnChange::keep, now_, 1);
    const bool has_room = one.answer.decision.allowed();
    std::uint64_t tokens = std::min<std::uint64_t>(
        reservation.check.cost, reservation.cap - std::min(reservation.cap, held));
    if (!reservation.seat) {
      tokens = std::min(tokens, has_room ? peeked().decision.remaining : 0);
    }
    if (tokens == 0) return reject(one, number);

    const std::int64_t lasts = usable(micros(reservation.duration));
    ModelAnswer answer = peeked();
    if (reservation.seat) {
      answer.charge.receipt.cost = static_cast<Cost>(tokens);
    } else {
      const ModelField::Trial trial =
          field_.decide(limit_, OnChange::keep, now_, static_cast<Cost>(tokens));
      field_ = trial.after;
      answer = trial.answer;
    }
    answer.decision.delay = Nanos{lasts * 1'000};
    grants_.push_back({.number = number,
                       .tokens = static_cast<Cost>(tokens),
                       .ends = now_ + ceil_div(lasts * 101, std::int64_t{100}),
                       .charge = answer.charge,
                       .seat = reservation.seat});
    call({.answers = {answer}}, number, true);
  }

  void reject(const ModelField::Trial& one, SharedSequence number) {
    ModelAnswer answer = one.answer;
    if (answer.decision.allowed()) {
      answer = peeked();
      answer.decision.verdict = Verdict::rejected;
    } else {
      field_ = one.after;
    }
    call({.status = ReplyStatus::rejected, .answers = {answer}}, number, true);
  }

  // The grant of a reservation that was sent before, if it has not ended.
  Wanted wanted_again(SharedSequence number) {
    for (const ModelGrant& grant : grants_) {
      const bool is_it = is_alive(grant) && grant.number.session == number.session &&
                         grant.number.sequence == number.sequence;
      if (!is_it) continue;
      ModelAnswer answer = peeked();
      answer.charge.receipt.cost = grant.tokens;
      answer.decision.delay = Nanos{(grant.ends - now_) * 100 / 101 * 1'000};
      return {.answers = {answer}};
    }
    return {.status = ReplyStatus::repeated};
  }

  // Part of a lease, all of it, or more than it holds; also of leases that have ended.
  void give_back() {
    const SharedSequence number = next();
    const std::uint64_t highest = number.sequence - 1;
    GivingBack giving{
        .field = 0,
        .sequence = static_cast<std::uint64_t>(below(static_cast<std::int64_t>(highest) + 1)),
        .amount = static_cast<Cost>(below(limit_->capacity + 2))};
    for (const ModelGrant& grant : grants_) {
      if (grant.number.session == session_ && below(2) == 0)
        giving.sequence = grant.number.sequence;
    }
    const auto held = std::find_if(grants_.begin(), grants_.end(), [&](const ModelGrant& grant) {
      return is_alive(grant) && grant.number.session == session_ &&
             grant.number.sequence == giving.sequence;
    });
    if (held != grants_.end()) {
      const Cost amount = std::min(giving.amount, held->tokens);
      held->charge.receipt.cost = held->tokens;
      if (!held->seat) field_.refund(now_, held->charge, amount);
      held->tokens -= amount;
      if (held->tokens == 0) grants_.erase(held);
      prune();
    }
    write_give_back(arguments_, giving, number);
    call({}, number);
  }

  RedisServer& redis_;
  std::string function_;
  Random random_;
  std::string key_;
  SharedLimitPtr limit_;
  std::int64_t now_ = 0;
  std::optional<std::int64_t> ends_;
  ModelField field_;
  std::vector<ModelGrant> grants_;
  std::map<std::uint64_t, std::uint64_t> sequences_;
  std::uint64_t session_ = 1;
  std::vector<std::pair<SharedCharge, ModelCharge>> charges_;
  SharedCharge last_charge_;
  CallArguments arguments_;
  std::deque<std::string> story_;
  std::string failure_;
};

TEST(Leases, BehaveAsTheModelDoes) {
  RedisServer redis;
  const FunctionLibrary library = function_library_with(kClockOfArguments);
  ASSERT_FALSE(redis.ask({"FUNCTION", "LOAD", library.library}).is_error());
  const char* const chosen = std::getenv("SLUICE_SEED");
  const std::uint64_t first = chosen != nullptr ? std::stoull(chosen) : 1;
  const auto histories = testing::effort<std::uint64_t>(100, 5'000);
  for (std::uint64_t seed = first; seed < first + histories; ++seed) {
    const std::string difference = LeaseHistory{redis, library.name, seed}.run(200);
    ASSERT_TRUE(difference.empty()) << "SLUICE_SEED=" << seed << " " << difference;
  }
}

// A key that lives for long does not collect the sessions of processes that ended: a new session
// removes those silent for an hour.
TEST(Leases, ForgetSilentSessions) {
  RedisServer redis;
  const FunctionLibrary library = function_library_with(kClockOfArguments);
  ASSERT_FALSE(redis.ask({"FUNCTION", "LOAD", library.library}).is_error());
  const SharedLimit limit =
      compile_shared({.algorithm = Algorithm::fixed_window, .amount = 100, .period = 366 * 24h})
          .value();
  const SharedCheck check{.limit = &limit};
  const std::string key = shared_key({});
  CallArguments arguments;
  constexpr std::int64_t kStart = 1'800'000'000'000'000;
  constexpr std::int64_t kHour = 3'600'000'000;
  const auto charge = [&](std::uint64_t session, std::int64_t after) {
    write_charge(arguments, std::span{&check, 1}, {.session = session, .sequence = 1}, WallTime{});
    std::vector<std::string_view> command{"FCALL", library.name, "1", key};
    for (std::size_t i = 0; i < arguments.size(); ++i) command.push_back(arguments[i]);
    const std::string now = std::to_string(kStart + after);
    command.push_back(now);
    return redis.ask(command).numbers().front();
  };
  EXPECT_EQ(charge(1, 0), 1);
  EXPECT_EQ(charge(2, 1), 1);
  EXPECT_EQ(charge(3, kHour), 1);  // the first two were heard within the hour
  EXPECT_EQ(redis.ask({"HGET", key, "@"}).text,
            "0000000000000001 0000000000000002 0000000000000003");
  EXPECT_EQ(charge(1, kHour), 2);  // applied before
  EXPECT_EQ(charge(4, kHour + 1), 1);
  EXPECT_EQ(redis.ask({"HGET", key, "@"}).text,
            "0000000000000002 0000000000000003 0000000000000004");
  EXPECT_EQ(redis.ask({"HEXISTS", key, "@0000000000000001"}).number, 0);
  EXPECT_EQ(redis.ask({"HEXISTS", key, "@0000000000000002"}).number, 1);
}

}  // namespace
}  // namespace sluice::store
