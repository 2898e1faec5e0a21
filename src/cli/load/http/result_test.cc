// What is counted, and what is made of it.

#include "cli/load/http/findings.h"
#include "cli/load/http/plot.h"
#include "cli/load/http/report.h"
#include "cli/load/http/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

HttpPlan plan(std::vector<std::string> headers = {"x: {n}"}) {
  LoadOptions options;
  options.url = "http://127.0.0.1:1/a?b&c";
  options.duration = "2s";
  options.rate = "5/s";
  options.http.clients = "2";
  options.http.headers = std::move(headers);
  options.http.expect = "2/1s";
  options.limit.algorithm = "token_bucket";
  return make_http_plan(options).value();
}

// Ten requests of two clients: seven admitted, two rejected, one timed out.
HttpRun run() {
  Tally tally{500ms, 2};
  for (int i = 0; i < 10; ++i) {
    const Nanos due = i * 200ms;
    tally.count_offered(due);
    tally.lateness.record(1us);
    const Ending ending = i < 7   ? Ending::answered(200)
                          : i < 9 ? Ending::answered(429)
                                  : Ending::failed(LoadError::timeout);
    tally.count_ending({.due = due, .sent = due + 1ms, .over = due + (i < 9 ? 3ms : 101ms)},
                       i < 7 ? 0 : 1, ending);
  }
  tally.note_retry_after(1);
  tally.note_retry_after(4);
  tally.policies.note(R"("<api>";q=2;w=1)");
  return {.tally = std::move(tally), .elapsed = 2s, .offered_for = 2s};
}

TEST(Tally, EveryRequestHasOneEnding) {
  const HttpRun result = run();
  const Tally& tally = result.tally;
  EXPECT_EQ(tally.offered, 10U);
  EXPECT_EQ(tally.admitted(), 7U);
  EXPECT_EQ(tally.rejected(), 2U);
  EXPECT_EQ(tally.failed(), 1U);
  EXPECT_EQ(tally.answered() + tally.failed(), tally.offered);
  EXPECT_EQ(tally.whole_latency.count(), tally.offered);
}

// Latency counts from the scheduled start, service time from sending.
TEST(Tally, KeepsBothTimes) {
  const HttpRun result = run();
  EXPECT_EQ(result.tally.admitted_latency.max(), 3ms);
  EXPECT_EQ(result.tally.admitted_service.max(), 2ms);
  EXPECT_EQ(result.tally.whole_latency.max(), 101ms);
}

// Neither does a run that is stopped forget what it was still waiting for.
TEST(Tally, CountsTheWaitOfWhatDidNotEnd) {
  Tally tally{1s, 1};
  tally.count_offered(1s);
  tally.count_unfinished(1s, 9s);
  EXPECT_EQ(tally.unfinished, 1U);
  EXPECT_EQ(tally.whole_latency.count(), tally.offered);
  EXPECT_EQ(tally.whole_latency.max(), 8s);
}

// What never went out was waited for as well.
TEST(Tally, CountsTheWaitOfWhatWasNotSent) {
  Tally tally{1s, 1};
  tally.count_offered(1s);
  tally.count_not_sent(1s, 7s);
  EXPECT_EQ(tally.not_sent, 1U);
  EXPECT_EQ(tally.whole_latency.max(), 6s);
  EXPECT_EQ(tally.series.at(7).other, 1U);
}

TEST(Tally, ThreadsAddUp) {
  Tally sum = run().tally;
  sum.add(run().tally);
  EXPECT_EQ(sum.offered, 20U);
  EXPECT_EQ(sum.admitted(), 14U);
  EXPECT_EQ(sum.rejected_latency.count(), 4U);
  EXPECT_EQ(sum.admitted_by_client.at(0), 14U);
  EXPECT_EQ(sum.series.at(0).offered, 6U);
  EXPECT_EQ(sum.retry_after_least, 1U);
  EXPECT_EQ(sum.retry_after_most, 4U);
}

TEST(Tally, PointsAreWideEnoughForTheEye) {
  EXPECT_EQ(point_width_for(1s), 250ms);
  EXPECT_EQ(point_width_for(30s), 500ms);
  EXPECT_EQ(point_width_for(61s), 2s);
  EXPECT_EQ(point_width_for(1h), 1min);
  EXPECT_LE(std::chrono::hours{24 * 7} / point_width_for(std::chrono::hours{24 * 7}), 60);
}

TEST(Tally, RedirectionsPassAndOtherRefusalsDoNot) {
  EXPECT_EQ(class_of(204), AnswerClass::admitted);
  EXPECT_EQ(class_of(304), AnswerClass::admitted);
  EXPECT_EQ(class_of(429), AnswerClass::rejected);
  EXPECT_EQ(class_of(403), AnswerClass::other);
  EXPECT_EQ(class_of(503), AnswerClass::other);
}

// Two at once and two a second: five after 1.9 seconds, and client 1 got seven.
TEST(Findings, AccuseALimitThatAdmitsTooMuch) {
  const Verdict verdict = judge(plan(), run().tally).value();
  EXPECT_EQ(verdict.most_allowed, 5U);
  EXPECT_EQ(verdict.most_admitted, 7U);
  EXPECT_FALSE(verdict.kept());
}

TEST(Findings, NameTheBusiestClient) {
  const ClientFindings clients = find_clients(run().tally);
  EXPECT_EQ(clients.busiest, 1U);
  EXPECT_EQ(clients.most, 7U);
  EXPECT_EQ(clients.least, 0U);
  EXPECT_EQ(clients.mean, 3.5);
}

TEST(Findings, SeeAGeneratorThatIsLate) {
  Tally tally{1s, 1};
  for (int i = 0; i < 1000; ++i) tally.lateness.record(i < 985 ? 10us : 20ms);
  EXPECT_FALSE(kept_schedule(tally));
  EXPECT_TRUE(kept_schedule(run().tally));
}

TEST(Report, SaysWhatHappened) {
  const Output plain;
  const std::string text = report_text(plan(), run(), plain);
  EXPECT_THAT(text, HasSubstr("offered          10         5.0  100.0%\n"));
  EXPECT_THAT(text, HasSubstr("admitted          7         3.5   70.0%\n"));
  EXPECT_THAT(text, HasSubstr("timed out         1         0.5   10.0%\n"));
  EXPECT_THAT(text, HasSubstr("<api>: 2 in 1s"));
  EXPECT_THAT(text, HasSubstr("Retry-After of rejections: 1s to 4s"));
  EXPECT_THAT(
      text, HasSubstr("BROKEN: at most 5 of one client were to be admitted; of client 1 it was 7"));
  EXPECT_THAT(text, Not(HasSubstr("not sent")));
}

TEST(Report, IsOneLineOfJson) {
  const std::string json = report_json(plan(), run());
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  EXPECT_THAT(json, HasSubstr(R"("statuses":{"200":7,"429":2})"));
  EXPECT_THAT(json, HasSubstr(R"("errors":{"connect":0,"timeout":1,"closed":0,"bad_response":0})"));
  EXPECT_THAT(json, HasSubstr(R"("expect":{"amount":2,"period_ns":1000000000,)"
                              R"("most_allowed":5,"most_admitted":7,"kept":false})"));
}

// ---- plot -------------------------------------------------------------------------------------

TEST(Plot, TicksAreRoundAndReachTheTop) {
  EXPECT_THAT(axis_ticks(3000), ElementsAre(0, 1000, 2000, 3000));
  EXPECT_THAT(axis_ticks(10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(axis_ticks(1),
              ElementsAre(0, 0.2, ::testing::DoubleEq(0.4), ::testing::DoubleNear(0.6, 1e-9),
                          ::testing::DoubleEq(0.8), 1));
  for (const double top : {1e-6, 0.0123, 7.0, 999.0, 1e7}) {
    const auto ticks = axis_ticks(top);
    EXPECT_GE(ticks.back(), top * (1 - 1e-9));
    EXPECT_GE(ticks.size(), 3U);
    EXPECT_LE(ticks.size(), 11U);
  }
}

TEST(Plot, DrawsEveryCurveAndTheLimit) {
  const std::string svg = plot_svg(plan(), run());
  for (const char* const part :
       {"line offered", "line admitted", "line rejected", "line other", "line p50", "line p99",
        "class=\"limit\"", "10 offered, 7 admitted, 2 rejected, 1 other"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, HasSubstr("http://127.0.0.1:1/a?b&amp;c"));
}

TEST(Plot, OfARunWithoutAnswersIsEmptyButWhole) {
  const std::string svg =
      plot_svg(plan(), {.tally = Tally{250ms, 2}, .elapsed = 0s, .offered_for = 0s});
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace sluice::cli
