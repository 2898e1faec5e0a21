// What is said about a request is said without an allocation. A program of its own, since it counts
// them.

#include "frontend/access_log/access_log.h"
#include "frontend/metrics/decision_counters.h"
#include "frontend/responses/answers.h"
#include "support/counted_new.h"
#include "support/frontend_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sluice::frontend {
namespace {

using engine::limit;
using engine::rule;

class FrontendAllocations : public fixture::FrontendFixture {
 protected:
  // Answers, counts and logs once. Whether all went well.
  bool tell(const engine::Op& op) {
    HeaderView headers[]{{"user-agent", "curl"}, {"x-plan", "free"}};
    const Asking asking{.now = now_.wall(),
                        .client = "ann",
                        .request_id = "r-1",
                        .content_type = {},
                        .is_cors = true};
    net::HeadWriter head{head_room_};
    const std::string_view body = answers_.refuse(head, body_room_, op, asking);
    const bool is_answered = head.finish().has_value() && !body.empty();
    counters_->count(0, op);
    for (AccessLog* log : {&text_log_, &json_log_}) {
      log->log({.at = now_.wall(),
                .ip = *IpAddress::parse("2001:db8:1111:2222:3333:4444:5555:6666"),
                .method = "GET",
                .target = "/v1/users?token=secret&page=2&a-rather-long-query=0123456789",
                .headers = headers,
                .status = op.status,
                .op = &op},
               now_.mono);
    }
    return is_answered && !text_log_.flush().empty() && !json_log_.flush().empty();
  }

  std::array<char, 4096> head_room_;
  std::array<char, kProblemBytesMax> body_room_;
  metrics::Registry registry_{1};
  std::unique_ptr<DecisionCounters> counters_;
  Answers answers_{
      RateHeaders::create({.families = {Family::ietf_11, Family::ietf_03, Family::x_ratelimit_epoch,
                                        Family::x_rate_limit_epoch},
                           .partition_secret = "secret"})
          .value()};
  AccessLog text_log_{std::make_shared<const AccessFormat>(AccessFormat::Options{}), {}};
  AccessLog json_log_{std::make_shared<const AccessFormat>(
                          AccessFormat::Options{.form = LogForm::json, .headers = {"x-plan"}}),
                      {}};
};

TEST_F(FrontendAllocations, AreNotMadeToTellOfARefusal) {
  auto made = engine::Snapshot::make(
      {.rules = {rule("api", {limit("1/1m"), limit("1/1h")}), rule("other", {limit("9/1s")})}},
      *limits_, now_);
  ASSERT_TRUE(made);
  worker_->use(*made);
  counters_ = std::make_unique<DecisionCounters>(registry_, (*made)->shared_rules());
  const engine::Op& op = decided_after(1);
  ASSERT_EQ(op.action, engine::Action::reject);
  const std::uint64_t before = testing::allocations();
  const bool is_told = tell(op);
  EXPECT_EQ(testing::allocations(), before);
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace sluice::frontend
