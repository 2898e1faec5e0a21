#include "app/server/start_check.h"

#include "base/descriptor_limit.h"
#include "frontend/gateway/gateway_config.h"
#include "net/listen.h"
#include "store/local/mapping.h"
#include "support/temp_folder.h"
#include <sluice/clock.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace sluice::app {
namespace {

using ::testing::HasSubstr;

// What is said of a configuration in a folder of its own, with errors counted.
class StartCheckOf : public ::testing::Test {
 protected:
  std::string told(const std::string& more, StartCheck how = StartCheck::beside_a_server) {
    return told_of("rules: [{name: r, per: ip, limit: 5/1s}]\n" + more, how);
  }
  std::string told_of(const std::string& text, StartCheck how = StartCheck::beside_a_server) {
    diagnostics_ = {};
    const Configuration configuration =
        read_configuration(text, folder_.file("sluice.yaml"), diagnostics_);
    EXPECT_TRUE(diagnostics_.ok()) << diagnostics_.text();
    diagnostics_ = {};
    check_start(configuration, how, diagnostics_);
    return diagnostics_.text();
  }
  static std::string gateway(const std::string& address) {
    return fmt::format(
        "listen: {{gateway: '{}'}}\nupstreams: {{a: {{servers: [':1']}}}}\n"
        "routes: [{{upstream: a}}]\n",
        address);
  }
  [[nodiscard]] bool is_there(const std::string& name) const {
    return std::filesystem::exists(folder_.file(name));
  }

  testing::TempFolder folder_;
  config::Diagnostics diagnostics_;
};

TEST_F(StartCheckOf, AGoodConfigurationSaysNothingAndLeavesNothingBehind) {
  EXPECT_EQ(told(gateway("127.0.0.1:0") + "state: {file: state}\naccess_log: {file: log}\n"), "");
  EXPECT_EQ(told(gateway("unix:" + folder_.file("socket"))), "");
  for (const char* name : {"state", "state.blocks", "log", "socket"}) {
    EXPECT_FALSE(is_there(name)) << name;
  }
}

TEST_F(StartCheckOf, FoldersThatAreMissingAreNamedWithTheirKeys) {
  EXPECT_THAT(told("state: {file: no/state}\n"),
              HasSubstr("sluice.yaml:2:15: state.file: cannot write '"));
  EXPECT_EQ(diagnostics_.errors(), 1U);
  EXPECT_THAT(told(gateway(":0") + "access_log: {file: no/log}\n"),
              HasSubstr("sluice.yaml:5:20: access_log.file: cannot write '"));
  EXPECT_THAT(told(gateway("unix:" + folder_.file("no/socket"))),
              HasSubstr("the folder does not exist"));
  EXPECT_EQ(diagnostics_.errors(), 1U);
}

// The server starts without it.
TEST_F(StartCheckOf, AMissingFolderForTheLastGoodRulesIsAWarning) {
  std::ofstream{folder_.file("rules.yaml")} << "rules: [{name: r, per: ip, limit: 5/1s}]\n";
  EXPECT_THAT(told_of("rules_from: {file: rules.yaml, last_good_file: no/good}\n",
                      StartCheck::before_a_start),
              HasSubstr("sluice.yaml:1:48: warning: rules_from.last_good_file: cannot write '"));
}

TEST_F(StartCheckOf, AStateFileForOtherMemoryIsAnError) {
  const std::string file = folder_.file("state");
  const auto mapping =
      store::Mapping::open({.memory = std::size_t{8} << 20U, .file = file}, SystemClock{}.now());
  ASSERT_TRUE(mapping) << mapping.error().text();
  EXPECT_THAT(told("state: {file: state, memory: 16MiB}\n"),
              HasSubstr("was made for 8388608 bytes of memory, 16777216 are configured"));
  EXPECT_EQ(diagnostics_.errors(), 1U);
  EXPECT_THAT(told("state: {file: state, memory: 8MiB}\n"),
              HasSubstr("warning: state.file: the state file"));
  EXPECT_TRUE(diagnostics_.ok()) << "a server that runs is no mistake";
}

TEST_F(StartCheckOf, AStateFileThatIsNoneIsAnErrorAndStaysAsItIs) {
  std::ofstream{folder_.file("state")} << std::string(5000, 'x');
  ASSERT_EQ(::chmod(folder_.file("state").c_str(), 0600), 0);
  EXPECT_THAT(told("state: {file: state}\n"), HasSubstr("is not a state file of sluice"));
  EXPECT_EQ(std::filesystem::file_size(folder_.file("state")), 5000U);
  std::filesystem::remove(folder_.file("state"));
  std::filesystem::create_directory(folder_.file("state.blocks"));
  EXPECT_THAT(told("state: {file: state}\n"), HasSubstr("it is a folder"));
}

// Which the server rejects.
TEST_F(StartCheckOf, AFileOfBlocksThatIsNoneIsAnErrorAndStaysAsItIs) {
  std::ofstream{folder_.file("state.blocks")} << std::string(5000, 'x');
  EXPECT_THAT(told("state: {file: state}\n", StartCheck::beside_a_server),
              HasSubstr("state.file: " + folder_.file("state.blocks") +
                        " is not a file of blocks; remove it, or name another one"));
  EXPECT_EQ(diagnostics_.errors(), 1U);
  EXPECT_EQ(std::filesystem::file_size(folder_.file("state.blocks")), 5000U);
}

TEST_F(StartCheckOf, AnAddressInUseIsAWarningBesideAServerAndAnErrorBeforeAStart) {
  const auto tcp =
      net::listen_on(net::Endpoint::parse("127.0.0.1:0").value(), {.reuse_port = true});
  const auto path = net::listen_on(net::Endpoint::parse("unix:" + folder_.file("socket")).value());
  ASSERT_TRUE(tcp && path);
  for (const std::string& address : {tcp->endpoint().text(), path->endpoint().text()}) {
    EXPECT_THAT(told(gateway(address)), HasSubstr("listen.gateway: cannot listen on " + address));
    EXPECT_EQ(diagnostics_.errors(), 0U) << address;
    EXPECT_EQ(diagnostics_.warnings(), 1U) << address;
    (void)told(gateway(address), StartCheck::before_a_start);
    EXPECT_EQ(diagnostics_.errors(), 1U) << address;
  }
  EXPECT_TRUE(is_there("socket"));
}

TEST_F(StartCheckOf, TheAddressOfTheAdminListenerIsLookedAtAsWell) {
  const auto taken = net::listen_on(net::Endpoint::parse("127.0.0.1:0").value());
  ASSERT_TRUE(taken);
  std::string file = gateway("127.0.0.1:0");
  file.insert(file.find("gateway"), fmt::format("admin: '{}', ", taken->endpoint().text()));
  EXPECT_THAT(told(file),
              HasSubstr("warning: listen.admin: cannot listen on " + taken->endpoint().text()));
  (void)told(file, StartCheck::before_a_start);
  EXPECT_EQ(diagnostics_.errors(), 1U);
}

TEST_F(StartCheckOf, AnAddressOfAnotherMachineIsAnError) {
  EXPECT_THAT(told(gateway("192.0.2.1:8080")), HasSubstr("this machine has no such address"));
  EXPECT_EQ(diagnostics_.errors(), 1U);
}

// Beside a server the limit of another process counts.
TEST_F(StartCheckOf, FewDescriptorsAreAWarningBeforeAStart) {
  const std::string few = gateway("127.0.0.1:0") + "workers: 1024\n";
  EXPECT_EQ(told(few), "");
  if (gateway::connections_within(descriptors_max(), 1024) >= 50'000) {
    GTEST_SKIP() << "there are enough for 1024 workers";
  }
  const std::string room = std::to_string(gateway::connections_within(descriptors_max(), 1024));
  EXPECT_THAT(
      told(few, StartCheck::before_a_start),
      HasSubstr(fmt::format("each worker takes at most {} instead of 50000 connections: the "
                            "process may have {} file descriptors; raise the hard limit",
                            room, descriptors_max())));
  EXPECT_EQ(diagnostics_.errors(), 0U);
  EXPECT_EQ(diagnostics_.warnings(), 1U);
  const std::string written = fmt::format("gateway: {{max_connections_per_worker: {}}}\n", room);
  EXPECT_EQ(told(few + written, StartCheck::before_a_start), "") << "somebody knows of it";
}

TEST_F(StartCheckOf, AFileOfRulesIsGoodUnlessAServerIsToStartWithIt) {
  EXPECT_EQ(told(""), "");
  EXPECT_THAT(told("", StartCheck::before_a_start), HasSubstr("names nothing to listen on"));
}

}  // namespace
}  // namespace sluice::app
