// Nothing on the way to a decision allocates. A program of its own, since it counts every `new`.
#include "support/counted_new.h"
#include <sluice/core/limit_text.h>
#include <sluice/limiter.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;

template <class Work>
std::size_t allocations_of(const Work& work) {
  const std::uint64_t before = testing::allocations();
  work();
  return testing::allocations() - before;
}

// Twice over, so that keys are placed, charged, refused and refunded.
void use_everything(Limiter& limiter, std::string_view key) {
  std::array<Limiter::Request, 40> requests;
  std::array<Decision, 40> decisions;
  for (Limiter::Request& request : requests) request.key = key;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(allocations_of([&] { (void)limiter.check(key, 2); }), 0U);
    EXPECT_EQ(allocations_of([&] { (void)limiter.peek(key); }), 0U);
    EXPECT_EQ(allocations_of([&] { limiter.check(requests, decisions); }), 0U);
    EXPECT_EQ(allocations_of([&] { limiter.forget(key); }), 0U);
    EXPECT_EQ(allocations_of([&] {
                const Ticket first = limiter.reserve(key, 2).ticket;
                const Ticket second = limiter.renew(limiter.reserve(key, 2).ticket);
                limiter.refund(first, 1);
                limiter.refund(second);
              }),
              0U);
    EXPECT_EQ(allocations_of([&] { (void)limiter.charge(key, 3); }), 0U);
    const std::array asks{Limiter::Ask{.limiter = &limiter, .key = key},
                          Limiter::Ask{.limiter = &limiter, .key = "everybody"}};
    EXPECT_EQ(allocations_of([&] { (void)Limiter::check_all(asks, decisions, limiter.now()); }),
              0U);
  }
}

TEST(Allocations, AreCounted) {
  EXPECT_GT(allocations_of([] { const std::vector<int> some(10); }), 0U);
}

TEST(Allocations, NoDecisionOfAnyAlgorithmMakesOne) {
  const std::string key(100, 'k');
  for (const Algorithm algorithm : kAlgorithms) {
    SCOPED_TRACE(std::string{to_string(algorithm)});
    const std::string_view text = algorithm == Algorithm::concurrency ? "30" : "30/1h";
    Limiter limiter{core::parse_limit(text, algorithm).value()};
    use_everything(limiter, key);
  }
}

TEST(Allocations, NoDecisionOfSeveralLimitsMakesOne) {
  Limiter limiter{"30/1s", "50/1h", "1000/month"};
  use_everything(limiter, "key");
}

TEST(Allocations, NoDecisionOfALimitWithThreadLeasesMakesOne) {
  Limiter limiter{"1000000/1s", {.thread_leases = true}};
  use_everything(limiter, "key");
}

}  // namespace
}  // namespace sluice
