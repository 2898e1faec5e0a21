#include "app/server/serve_files.h"

#include "support/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <sys/stat.h>

namespace sluice::app {
namespace {

using ::testing::HasSubstr;

class ServeFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text, mode_t mode) {
    std::ofstream{folder_.file(name)} << text;
    ASSERT_EQ(::chmod(folder_.file(name).c_str(), mode), 0);
  }

  void check(const std::string& text) {
    config::Diagnostics ignored;
    const Configuration configuration =
        read_configuration("rules: []\n" + text, folder_.file("sluice.yaml"), ignored);
    EXPECT_TRUE(ignored.ok()) << ignored.text();
    diagnostics_ = {};
    check_frontend_files(configuration.serve, diagnostics_);
  }

  testing::TempFolder folder_;
  config::Diagnostics diagnostics_;
};

// Whoever can write into it lets himself in; whoever can read it is in.
TEST_F(ServeFiles, AreToBeOfTheirOwnerWhereTheyHoldTheTokenOfOperators) {
  const std::string admin = "admin: {token_file: token}\n";
  write("token", "a token of more than 16 bytes", 0600);
  check(admin);
  EXPECT_TRUE(diagnostics_.empty()) << diagnostics_.text();
  write("token", "a token of more than 16 bytes", 0644);
  check(admin);
  EXPECT_TRUE(diagnostics_.ok());
  EXPECT_EQ(diagnostics_.warnings(), 1U);
  EXPECT_THAT(diagnostics_.text(), HasSubstr("chmod o-r " + folder_.file("token")));
  write("token", "a token of more than 16 bytes", 0666);
  check(admin);
  EXPECT_FALSE(diagnostics_.ok());
  EXPECT_THAT(diagnostics_.text(), HasSubstr("chmod o-w " + folder_.file("token")));
}

TEST_F(ServeFiles, AreWarnedOfWhereEverybodyMayReadAPrivateKey) {
  write("chain", "", 0644);
  write("key", "", 0644);
  check("gateway: {tls: {certificates: [{cert_file: chain, key_file: key}]}}\n");
  EXPECT_EQ(diagnostics_.warnings(), 1U);
  EXPECT_THAT(diagnostics_.text(), HasSubstr("chmod o-r " + folder_.file("key")));
}

}  // namespace
}  // namespace sluice::app
