// A shared decision allocates nothing, also if it completes later. A program of its own, since it
// counts every `new`.
#include "store/local/local_store.h"
#include "store/redis/redis_authority.h"
#include "store/shared/shared_limits.h"
#include "store/shared/shared_store.h"
#include "support/counted_new.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

// Replies to the commands in their order, without a network.
class InstantTransport final : public Transport {
 public:
  bool is_lost = false;  // what is sent
  bool rejects = false;

  [[nodiscard]] bool send(std::uint64_t tag, const Digest& /*key*/,
                          std::span<const std::string_view> words) noexcept override {
    Sent& sent = sent_[end_++ % sent_.size()];
    sent.tag = tag;
    sent.is_lost = is_lost;
    const std::string_view operation = words[4];
    const bool is_decision = operation == "decide";
    const bool has_answer = is_decision || operation == "charge" || operation == "settle";
    const std::int64_t rejected = is_decision && rejects ? 1 : 0;
    const std::int64_t cost = has_answer && rejected == 0 ? words[10][0] - '0' : 0;
    sent.numbers = {1 - rejected, 1'700'000'000'000'000, rejected, 0, 1, -1, 0, 7, 0, cost, 3};
    sent.count = has_answer ? 11 : 2;
    return true;
  }
  [[nodiscard]] bool receive(TransportReply& reply) noexcept override {
    if (begin_ == end_) return false;
    const Sent& sent = sent_[begin_++ % sent_.size()];
    reply = {
        .tag = sent.tag,
        .kind = sent.is_lost ? TransportReply::Kind::disconnected : TransportReply::Kind::numbers,
        .numbers = std::span{sent.numbers}.first(sent.count)};
    return true;
  }
  [[nodiscard]] Now wait(MonoTime until) noexcept override { return {.mono = until}; }

 private:
  struct Sent {
    std::uint64_t tag = 0;
    bool is_lost = false;
    std::size_t count = 0;
    std::array<std::int64_t, 11> numbers{};
  };
  std::array<Sent, 512> sent_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

TEST(SharedAllocations, AreNotMadeByDecisions) {
  Now now = at(1'700'000'000'000'000'000);
  const auto table = LocalStore::open({.mapping = {.memory = Mapping::kMemoryMin}}, now).value();
  SharedLimits limits{*table, &RedisLimit::compile, 2};
  limits.set_shared_secret({.first = 1, .second = 2});
  InstantTransport transport;
  const FunctionLibrary library = function_library();
  RedisAuthority authority{transport, library, {.session = 1}};
  SharedStore store{*table, limits, authority, {.budget = 20ms, .seed = 1}};
  const Limit limit{.algorithm = Algorithm::fixed_window, .amount = 1'000'000, .period = 1h};
  const LimitNumber shared = limits.use(limit, {.mode = Mode::exact}, now).value();
  const LimitNumber local = limits.use(limit, Sharing{}, now).value();

  std::uint64_t admitted = 0;
  const auto ask = [&](std::uint64_t i) {
    Call call;
    call.checks[0] = {.key = {.low = i % 50, .high = i % 50}, .salt = 9, .limit = shared};
    call.checks[0].cost = 1 + static_cast<Cost>(i % 3);
    call.count = 1;
    call.group_from(0);
    call.checks[1] = {.key = {.low = 7}, .limit = local};
    call.count = 2;
    call.group_from(1);
    transport.is_lost = i % 11 == 0;
    transport.rejects = i % 13 == 0;
    const Completion completion = store.decide_all(call, now);
    if (i % 7 == 0) store.cancel(call, now);
    now.mono += i % 17 == 0 ? 30ms : 1ms;
    store.advance(now);
    if (i % 7 == 0 && completion == Completion::later) return;
    if (!call.admitted) return;
    ++admitted;
    Holding held = holding(call.answers[0].charge, call.checks[0].cost);
    if (i % 2 == 0) store.correct(call.checks[0], held, 5, now);
    if (i % 4 == 0) store.advance(now);
    if (i % 3 == 0) {
      store.refund(call.checks[0], held, now);
    } else {
      store.keep(held);
    }
    store.advance(now);
  };
  for (std::uint64_t i = 0; i < 5000; ++i) ask(i);
  admitted = 0;
  const std::uint64_t before = sluice::testing::allocations();
  for (std::uint64_t i = 5000; i < 10'000; ++i) ask(i);
  EXPECT_EQ(sluice::testing::allocations(), before);
  EXPECT_GT(admitted, 1000U);
  EXPECT_GT(store.shared_counts().failed, 0U);
  EXPECT_GT(authority.counts().resent, 0U);
}

}  // namespace
}  // namespace sluice::store
