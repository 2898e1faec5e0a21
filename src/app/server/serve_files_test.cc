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

  testing::TempFolder folder_;
  config::Diagnostics diagnostics_;
};

// Whoever can write into it lets himself in; whoever can read it is in.
TEST_F(ServeFiles, AreToBeOfTheirOwnerWhereTheyHoldTheTokenOfOperators) {
  ServeConfig serve;
  serve.admin.token_file = folder_.file("token");
  write("token", "a token of more than 16 bytes", 0600);
  EXPECT_NE(load_guard(serve, diagnostics_), nullptr);
  EXPECT_TRUE(diagnostics_.empty()) << diagnostics_.text();
  write("token", "a token of more than 16 bytes", 0644);
  EXPECT_NE(load_guard(serve, diagnostics_), nullptr);
  EXPECT_EQ(diagnostics_.warnings(), 1U);
  EXPECT_THAT(diagnostics_.text(), HasSubstr("chmod o-r " + serve.admin.token_file));
  write("token", "a token of more than 16 bytes", 0666);
  EXPECT_EQ(load_guard(serve, diagnostics_), nullptr);
  EXPECT_THAT(diagnostics_.text(), HasSubstr("chmod o-w " + serve.admin.token_file));
}

TEST_F(ServeFiles, AreWarnedOfWhereEverybodyMayReadAPrivateKey) {
  ServeConfig serve;
  serve.tls.emplace().options.certificates = {
      {.cert_file = folder_.file("chain"), .key_file = folder_.file("key")}};
  write("chain", "", 0644);
  write("key", "", 0644);
  (void)load_tls(serve, diagnostics_);
  EXPECT_EQ(diagnostics_.warnings(), 1U);
  EXPECT_THAT(diagnostics_.text(), HasSubstr("chmod o-r " + folder_.file("key")));
}

}  // namespace
}  // namespace sluice::app
