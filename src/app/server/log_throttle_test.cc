#include "app/server/log_throttle.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;

TEST(LogThrottle, SayTheFirstAtOnceAndThenOneASecond) {
  std::vector<std::string> said;
  LogThrottle throttle{[&](LogLevel, std::string line) { said.push_back(std::move(line)); }};
  const frontend::ServerFailure expired{.place = {.upstream = "app", .server = "127.0.0.1:443"},
                                        .what = "the server cannot be trusted",
                                        .reason = "certificate has expired"};
  const MonoTime begin{1h};
  throttle.add(expired, begin);
  throttle.add(expired, begin + 1ms);
  throttle.add(expired, begin + 999ms);
  throttle.add({.place = {.upstream = "app", .server = "b:1"}, .what = "no answer", .reason = ""},
               begin + 1s);
  EXPECT_EQ(said, (std::vector<std::string>{
                      "app at 127.0.0.1:443: the server cannot be trusted: certificate has expired",
                      "app at b:1: no answer (and 2 failures before)"}));
}

// A name alone does not tell which of its addresses is down.
TEST(LogThrottle, TellTheAddressWhereANameHasSeveral) {
  std::vector<std::string> said;
  LogThrottle throttle{[&](LogLevel, std::string line) { said.push_back(std::move(line)); }};
  throttle.add({.place = {.upstream = "app",
                          .server = "app.internal:80",
                          .address = IpAddress::parse("10.0.0.7")},
                .what = "no answer",
                .reason = ""},
               MonoTime{1h});
  EXPECT_EQ(said, (std::vector<std::string>{"app at app.internal:80 (10.0.0.7): no answer"}));
}

}  // namespace
}  // namespace sluice::app
