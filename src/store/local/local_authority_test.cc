// The table as a store of the engine.
#include "store/local/local_authority.h"

#include "base/digest.h"
#include "support/traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace sluice::store {
namespace {

using namespace std::chrono_literals;
using testing::at;

constexpr std::int64_t kStart = std::int64_t{1'700'000'000} * 1'000'000'000;

Now after(Nanos passed) { return at(kStart + passed.count()); }

class LocalAuthorityTest : public ::testing::Test {
 protected:
  Call ask(const Check& check, Now now) {
    Call call;
    call.checks[0] = check;
    call.count = 1;
    call.group_from(0);
    EXPECT_EQ(authority_.decide_all(call, now), Completion::now);
    return call;
  }

  std::unique_ptr<LocalStore> table_ =
      LocalStore::open({.mapping = {.memory = Mapping::kMemoryMin}}, after(0ns)).value();
  LocalLimits limits_{*table_};
  LocalAuthority authority_{*table_, 2};
  // So fast that a worker takes some units ahead.
  LimitNumber limit_ =
      limits_
          .use({.algorithm = Algorithm::token_bucket, .amount = 36'000'000, .period = 1h}, {},
               after(0ns))
          .value();
  Digest key_ = KeyDigest{table_->secret()}.add(1, "key").finish();
};

// Requests that turn out not to count cost nothing in the end, also where `thread_leases` was asked
// for.
TEST_F(LocalAuthorityTest, GivesBackWhatMayBeRefundedDespiteThreadLeases) {
  const Check check{
      .key = key_, .limit = limit_, .cost = 10, .may_be_refunded = true, .thread_leases = true};
  for (int i = 0; i < 1000; ++i) {
    const Now now = after(i * 1us);
    Call call = ask(check, now);
    ASSERT_TRUE(call.admitted) << i;
    Holding holding = store::holding(call.answers[0].charge, check.cost);
    authority_.refund(check, holding, now);
  }
  const Call last = ask({.key = key_, .limit = limit_, .cost = 0}, after(1ms));
  EXPECT_EQ(last.answers[0].decision.remaining, 36'000'000U);
}

TEST_F(LocalAuthorityTest, TakesUnitsAheadOfWhatStays) {
  const Check check{.key = key_, .limit = limit_, .cost = 1, .thread_leases = true};
  ASSERT_TRUE(ask(check, after(0ns)).admitted);
  const Call peek = ask({.key = key_, .limit = limit_, .cost = 0}, after(0ns));
  EXPECT_LT(peek.answers[0].decision.remaining, 36'000'000U - 1) << "what the worker holds";
}

}  // namespace
}  // namespace sluice::store
