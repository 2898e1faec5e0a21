// What an engine reads of a whole file. The rest of the grammar is tested in app/config, which has
// all of it.
#include "embed/config/engine_configuration.h"

#include "config/diagnostics.h"
#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

namespace sluice::embed {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kRules = "rules: [{name: all, limit: 5/1h}]\n";

EngineConfiguration read(std::string_view text, config::Diagnostics& diagnostics) {
  return read_engine_configuration(text, "sluice.yaml", diagnostics);
}

TEST(EngineConfiguration, IsReadOfAFileThatAServerReadsToo) {
  config::Diagnostics diagnostics;
  const EngineConfiguration configuration =
      read(std::string{kRules} +
               "state: {memory: 8MiB}\n"
               "clients: {trusted_proxies: 10.0.0.0/8}\n"
               "lists: {deny: [ip=192.0.2.1]}\n"
               "overrides: [{subject: user=ann, multiplier: 2}]\n"
               "listen: {gateway: ':8080', admin: 127.0.0.1:9090}\n"
               "workers: 2\n"
               "upstreams: {app: {servers: [127.0.0.1:9000], tls: {ca_file: no-such-file.pem}}}\n"
               "routes: [{path: /, upstream: app}]\n"
               "gateway: {header_timeout: 5s}\n"
               "access_log: {file: '-'}\n"
               "admin: {token_file: no-such-file}\n"
               "drain: {timeout: 5s}\n",
           diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  EXPECT_EQ(configuration.rules.rules.size(), 1U);
  EXPECT_EQ(configuration.state.memory, std::size_t{8} << 20U);
  EXPECT_EQ(configuration.clients.address.trusted_proxies.size(), 1U);
  EXPECT_EQ(configuration.exceptions.deny.size(), 1U);
  EXPECT_EQ(configuration.exceptions.overrides.size(), 1U);
}

// They are for a server, which is told of its mistakes.
TEST(EngineConfiguration, LeavesTheValuesOfServerKeysAlone) {
  for (const char* value : {"", " 7", " no", " []", " {}", " [{a: {b: [c]}}]"}) {
    config::Diagnostics diagnostics;
    const std::string text = std::string{kRules} + "upstreams:" + value + "\n";
    EXPECT_EQ(read(text, diagnostics).rules.rules.size(), 1U) << value;
    EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  }
}

TEST(EngineConfiguration, KnowsWhatIsNoKeyAtAll) {
  config::Diagnostics diagnostics;
  (void)read(std::string{kRules} + "upstream: {}\ngatway: {}\nqueues: 3\n", diagnostics);
  EXPECT_EQ(diagnostics.errors(), 3U) << diagnostics.text();
  EXPECT_THAT(diagnostics.text(), HasSubstr("did you mean 'upstreams'?"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("did you mean 'gateway'?"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("sluice.yaml:4"));
}

TEST(EngineConfiguration, ReportsMistakesOfItsOwnSections) {
  config::Diagnostics diagnostics;
  (void)read("listen: {gateway: ':8080'}\nstate: {memory: much}\n", diagnostics);
  EXPECT_EQ(diagnostics.errors(), 2U) << diagnostics.text();
  EXPECT_THAT(diagnostics.text(), HasSubstr("is no size"));
  EXPECT_THAT(diagnostics.text(), HasSubstr("says nothing of 'rules' or 'rules_from'"));
}

TEST(EngineConfiguration, ReadsTheFileOfRulesThatItNames) {
  const testing::TempFolder folder;
  const std::string file = folder.file("rules.yaml");
  const std::string text = "rules_from: {file: " + file + "}\n";
  config::Diagnostics missing;
  EXPECT_EQ(read(text, missing).file_errors, 1U);
  EXPECT_THAT(missing.text(), HasSubstr("rules_from.file: "));

  std::ofstream{file} << "";
  config::Diagnostics empty;
  EXPECT_EQ(read(text, empty).file_errors, 1U);
  EXPECT_THAT(empty.text(), HasSubstr(file + " is empty"));

  std::ofstream{file} << kRules;
  config::Diagnostics diagnostics;
  EXPECT_EQ(read(text, diagnostics).rules.rules.size(), 1U);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
}

}  // namespace
}  // namespace sluice::embed
