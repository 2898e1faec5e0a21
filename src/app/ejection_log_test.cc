#include "app/ejection_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::app {
namespace {

TEST(EjectionLog, TellsOnceOfWhatEachWorkerFindsOut) {
  std::vector<std::string> said;
  EjectionLog log{[&](LogLevel level, const std::string& line) {
    said.push_back(fmt::format("{} {}", name_of(level), line));
  }};
  const std::string text = "ejected for 10s after 3 consecutive failures";
  log.recovered("app at a:1");
  log.ejected("app at a:1", text);
  log.ejected("app at a:1", text);
  log.ejected("app at b:1", text);
  log.recovered("app at a:1");
  log.recovered("app at a:1");
  log.ejected("app at a:1", text);
  EXPECT_EQ(said, (std::vector<std::string>{
                      "warning app at a:1: " + text, "warning app at b:1: " + text,
                      "info app at a:1: recovered", "warning app at a:1: " + text}));
}

}  // namespace
}  // namespace sluice::app
