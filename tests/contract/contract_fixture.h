// What the tests of the contract share: requests, and what a key has used.
#pragma once

#include "base/digest.h"
#include "contract/world.h"
#include "store/binding.h"
#include "store/check.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::contract {

using namespace std::chrono_literals;
using store::Call;
using store::Check;
using store::Completion;
using store::Cost;
using store::Group;
using store::GroupVerdict;
using store::Holding;
using store::LimitNumber;
using store::Source;
using testing::at;

// Whole seconds, and a whole number of all periods that tests use.
inline constexpr std::int64_t kStart = std::int64_t{1'700'006'400} * 1'000'000'000;

// A call with its caller.
struct Request {
  Call call;
  int completed = 0;
  bool is_asking = false;        // decide_all() has not returned
  bool completed_early = false;  // by then
  Completion completion = Completion::now;
  std::function<void()> then;  // when it was completed later

  Request() { call.owner = this; }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Groups, each a list of checks.
  void of(std::initializer_list<std::initializer_list<Check>> groups,
          Call::Kind kind = Call::Kind::all_or_nothing) {
    call.clear();
    call.kind = kind;
    for (const auto& group : groups) {
      add_group({group.begin(), group.size()});
    }
  }
  void add_group(std::span<const Check> checks) {
    const std::size_t first = call.count;
    for (const Check& check : checks) call.checks[call.count++] = check;
    call.group_from(first);
  }
  [[nodiscard]] bool is_over() const { return completion == Completion::now || completed > 0; }
  [[nodiscard]] const Decision& decision(std::size_t i = 0) const {
    return call.answers[i].decision;
  }
  [[nodiscard]] Holding holding(std::size_t i = 0) const {
    return store::holding(call.answers[i].charge, call.checks[i].cost);
  }
};

class ContractFixture : public ::testing::TestWithParam<Subject> {
 protected:
  ContractFixture() { open(1); }

  // A world without usage.
  void open(std::uint64_t seed) {
    other_.reset();
    store_.reset();
    world_.reset();
    world_ = GetParam().make(seed, now_);
    store_ = world_->stores().for_worker(2);
    other_ = world_->stores().for_worker(2);
  }

  [[nodiscard]] LimitNumber use(const Limit& limit, OnFailure on_failure = OnFailure::closed) {
    return use(limit, world_->terms(on_failure));
  }
  [[nodiscard]] LimitNumber use(const Limit& limit, const Sharing& sharing) {
    Parsed<LimitNumber> number = world_->stores().limits().use(limit, sharing, now_);
    EXPECT_TRUE(number) << number.error().text();
    return number.value_or(0);
  }
  [[nodiscard]] LimitNumber use_local(const Limit& limit) {
    return use(limit, Sharing{.mode = Mode::local});
  }
  // Of an amount for an hour.
  [[nodiscard]] static Limit window(std::uint64_t amount) {
    return {.algorithm = Algorithm::fixed_window, .amount = amount, .period = 1h};
  }
  [[nodiscard]] static Digest key(const std::string& name) {
    return KeyDigest{{.first = 1, .second = 2}}.add(1, name).finish();
  }
  // All of one rule and subject, so that any of them may be in one group: limits that `name` tells
  // apart.
  [[nodiscard]] static Check check(LimitNumber limit, const std::string& name, Cost cost = 1) {
    const Digest subject = key("");
    const std::uint64_t salt = key(name).low ^ subject.low;
    return {.key = {.low = subject.low ^ salt, .high = subject.high},
            .salt = salt,
            .limit = limit,
            .cost = cost,
            .may_be_refunded = true};
  }

  void pass(Nanos time) { now_.mono += time; }

  void ask(Request& request) { ask(*store_, request); }
  void ask(store::Store& store, Request& request) {
    request.completed = 0;
    request.call.completed = [](Call& of) noexcept {
      Request& self = *static_cast<Request*>(of.owner);
      ++self.completed;
      self.completed_early |= self.is_asking;
      if (self.then) self.then();
    };
    request.is_asking = true;
    request.completion = store.decide_all(request.call, now_);
    request.is_asking = false;
    ASSERT_FALSE(request.completed_early) << "completed before decide_all() has returned";
    if (request.completion == Completion::now) {
      ASSERT_EQ(request.completed, 0);
    }
  }
  // Asks, and waits for the replies.
  void decide(Request& request) { decide(*store_, request); }
  void decide(store::Store& store, Request& request) {
    ask(store, request);
    world_->deliver(now_);
    ASSERT_EQ(request.completed, request.completion == Completion::later ? 1 : 0);
  }
  [[nodiscard]] bool admits(const Check& check) {
    Request request;
    request.of({{check}});
    decide(request);
    keep(request);
    return request.call.admitted;
  }

  // After requests that are over.
  void keep(Request& request) {
    for (std::size_t i = 0; i < request.call.count; ++i) {
      Holding holding = request.holding(i);
      store_->keep(holding);
    }
  }
  void refund(Request& request) {
    for (std::size_t i = 0; i < request.call.count; ++i) {
      Holding holding = request.holding(i);
      store_->refund(request.call.checks[i], holding, now_);
    }
  }

  [[nodiscard]] Decision peek(const Check& of) {
    world_->deliver(now_);
    Check peek = of;
    peek.cost = 0;
    peek.probe = false;
    Request request;
    request.of({{peek}});
    decide(request);
    return request.decision();
  }
  [[nodiscard]] std::uint64_t used(const Check& of) {
    const Decision decision = peek(of);
    return decision.limit - decision.remaining;
  }

  Now now_ = at(kStart);
  std::unique_ptr<World> world_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Store> other_;  // of another worker
};

inline auto subject_name() {
  return [](const auto& subject) { return subject.param.name; };
}

}  // namespace sluice::contract
