#include "app/server/ejection_log.h"

#include "frontend/gateway/gateway_options.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::app {
namespace {

using namespace std::chrono_literals;
using gateway::replaced_upstreams;
using Lines = std::vector<std::string>;

constexpr const char* kText = "ejected for 10s after 3 consecutive failures";

class EjectionLogTest : public ::testing::Test {
 protected:
  void eject(const std::string& address, const std::string& upstream = "app") {
    log_.ejected(
        {.upstream = upstream, .server = upstream + " at " + address, .text = kText, .lasts = 10s},
        now_);
  }
  // Since the last time.
  Lines said() { return std::exchange(said_, {}); }
  static std::string ejected(const std::string& server) {
    return "warning " + server + ": " + kText;
  }
  static std::string recovered(const std::string& server) {
    return "info " + server + ": recovered";
  }

  Lines said_;
  MonoTime now_{1h};
  EjectionLog log_{[this](LogLevel level, const std::string& line) {
    said_.push_back(fmt::format("{} {}", name_of(level), line));
  }};
};

TEST_F(EjectionLogTest, TellsOnceOfWhatEachWorkerFindsOut) {
  log_.recovered("app at a:1");
  eject("a:1");
  now_ += 9s;
  eject("a:1");
  eject("b:1");
  log_.recovered("app at a:1");
  log_.recovered("app at a:1");
  eject("a:1");
  EXPECT_EQ(said(), (Lines{ejected("app at a:1"), ejected("app at b:1"), recovered("app at a:1"),
                           ejected("app at a:1")}));
}

// It may have been back without a word: after a lookup the same address begins anew.
TEST_F(EjectionLogTest, TellsOfTheNextEjectionWhenTheFirstIsOver) {
  eject("a:1");
  now_ += 10s;
  eject("a:1");
  now_ += 9s;
  eject("a:1");
  log_.recovered("app at a:1");
  EXPECT_EQ(said(), (Lines{ejected("app at a:1"), ejected("app at a:1"), recovered("app at a:1")}));
}

// The workers forget what they knew of upstreams that a reload changes, and of no others.
TEST_F(EjectionLogTest, AReloadForgetsServersOfUpstreamsThatChanged) {
  gateway::UpstreamOptions app;
  app.name = "app";
  gateway::UpstreamOptions files = app;
  files.name = "files";
  const std::vector before{app, files};
  eject("a:1", "app");
  eject("b:1", "files");
  eject("c:1", "of_another_frontend");
  ASSERT_EQ(said().size(), 3U);
  log_.forget(replaced_upstreams(before, before));
  eject("a:1", "app");
  eject("b:1", "files");
  EXPECT_EQ(said(), Lines{});

  app.max_consecutive_failures += 1;
  log_.forget(replaced_upstreams(before, std::vector{app, files}));
  eject("a:1", "app");
  eject("b:1", "files");
  EXPECT_EQ(said(), Lines{ejected("app at a:1")});
  log_.recovered("files at b:1");
  EXPECT_EQ(said(), Lines{recovered("files at b:1")});
  log_.forget(replaced_upstreams(std::vector{app}, {}));
  log_.recovered("app at a:1");
  EXPECT_EQ(said(), Lines{}) << "there is no such upstream";
  log_.recovered("of_another_frontend at c:1");
  EXPECT_EQ(said(), Lines{recovered("of_another_frontend at c:1")});
}

}  // namespace
}  // namespace sluice::app
