#include "frontend/access_log/log_secrets.h"

#include "support/property.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace sluice::frontend {
namespace {

std::string shown(std::string_view target, const LogSecrets& secrets = LogSecrets{}) {
  std::array<char, 4096> room;
  TextWriter writer{room};
  secrets.write_target(writer, target);
  EXPECT_FALSE(writer.is_full());
  return std::string{writer.text()};
}

TEST(LogSecrets, HidesValuesOfTheirFields) {
  EXPECT_EQ(shown("/a?x=1&api_key=secret&y=2"), "/a?x=1&api_key=***&y=2");
  EXPECT_EQ(shown("/a?token=a=b"), "/a?token=***");
  EXPECT_EQ(shown("/a?token="), "/a?token=***") << "nobody sees that it is empty";
  EXPECT_EQ(shown("/a?token"), "/a?token");
  EXPECT_EQ(shown("/a?tokens=1&mytoken=2"), "/a?tokens=1&mytoken=2");
}

TEST(LogSecrets, LeavesTheRestAsItIs) {
  for (const char* target :
       {"", "/", "*", "/a/b", "/a?", "/a?&&", "/a?x=%20&y;z", "/a=b;token=c"}) {
    EXPECT_EQ(shown(target), target);
  }
}

// Servers decode names before they compare them, and some ignore case.
TEST(LogSecrets, SeesThroughSpellings) {
  EXPECT_EQ(shown("/?Api%5FKey=s"), "/?Api%5FKey=***");
  EXPECT_EQ(shown("/?%74oken=s"), "/?%74oken=***");
  EXPECT_EQ(shown("/?TOKEN=s"), "/?TOKEN=***");
  EXPECT_EQ(shown("/?token[]=s&token%5B0%5D=t"), "/?token[]=***&token%5B0%5D=***");
}

TEST(LogSecrets, HidesSessionsTokensAndKeysOfEveryUsualName) {
  for (const char* const name : {"session",       "sid",
                                 "sessionid",     "session_id",
                                 "auth_token",    "x-api-key",
                                 "jsessionid",    "PHPSESSID",
                                 "JSESSIONID",    "access_token",
                                 "api_key",       "apikey",
                                 "token",         "signature",
                                 "password",      "X-Amz-Signature",
                                 "connect.sid",   "asp.net_sessionid",
                                 "refresh_token", "client_secret",
                                 "csrftoken",     "x_auth_token",
                                 "code",          "otp",
                                 "pin",           "jwt"}) {
    EXPECT_EQ(shown("/?" + std::string{name} + "=s3cret"), "/?" + std::string{name} + "=***");
  }
}

TEST(LogSecrets, TakesSeparatorsForAlike) {
  for (const char* const name :
       {"api-key", "api_key", "apiKey", "API.KEY", "api%2Dkey", "%61pi_%6bey", "X_API-KEY",
        "xApiKey", "access-token", "accessToken", "session-id", "sess%69onId", "auth-Token[0]"}) {
    EXPECT_EQ(shown("/?" + std::string{name} + "=s3cret"), "/?" + std::string{name} + "=***");
  }
  const LogSecrets usual;
  EXPECT_TRUE(usual.is_secret_header("X_Api_Key"));
  EXPECT_TRUE(usual.is_secret_cookie("Session-Id"));
  EXPECT_TRUE(usual.is_secret_cookie("__Host-session"));
  EXPECT_TRUE(usual.is_secret_cookie("__Secure-sid"));
  EXPECT_FALSE(usual.is_secret_cookie("theme"));
  const LogSecrets own{{"My_Key"}, {"my-key"}, {"my.key"}};
  EXPECT_EQ(shown("/?my-key=s&mykeys=1", own), "/?my-key=***&mykeys=1");
  EXPECT_TRUE(own.is_secret_header("MY_KEY"));
  EXPECT_TRUE(own.is_secret_cookie("mykey"));
}

TEST(LogSecrets, ShowsWhatMerelyResemblesASecret) {
  for (const char* const target : {"/?keyword=a", "/?sidebar=1", "/?sessions=2", "/?codec=x",
                                   "/?author=ann", "/?page=3&sort=key", "/?-_.=x", "/?=x"}) {
    EXPECT_EQ(shown(target), target);
  }
}

// A name that is longer than what is compared is a secret if its beginning is that of one.
TEST(LogSecrets, HidesSecretsOfLongNames) {
  const std::string name(300, 'n');
  const LogSecrets own{{name}, {}};
  EXPECT_EQ(shown("/?" + name + "=s", own), "/?" + name + "=***");
  EXPECT_EQ(shown("/?" + name.substr(0, 100) + "=s", own), "/?" + name.substr(0, 100) + "=s");
}

// Whichever way a server splits at semicolons, nothing of the value is left.
TEST(LogSecrets, HidesBehindSemicolons) {
  EXPECT_EQ(shown("/?a=1;token=s;b=2&c=3"), "/?a=1;token=***;***&c=3");
}

TEST(LogSecrets, HidesUserAndPasswordOfUrls) {
  EXPECT_EQ(shown("https://ann:pw@example.com/x?token=t"), "https://***@example.com/x?token=***");
  EXPECT_EQ(shown("https://ann:p@w@example.com"), "https://***@example.com");
  EXPECT_EQ(shown("https://example.com/a@b"), "https://example.com/a@b");
  EXPECT_EQ(shown("/go?to=https://a@b"), "/go?to=https://a@b") << "not the URL itself";
}

TEST(LogSecrets, KnowsItsHeaders) {
  const LogSecrets usual;
  for (const char* name :
       {"Authorization", "COOKIE", "x-api-key", "Api-Key", "apikey", "X-Session-Id", "session-id",
        "x-amz-security-token", "Token", "X-Access-Token"}) {
    EXPECT_TRUE(usual.is_secret_header(name)) << name;
  }
  EXPECT_FALSE(usual.is_secret_header("accept"));
  const LogSecrets own{{"Pin"}, {"X-Pin"}};
  EXPECT_TRUE(own.is_secret_header("x-pin"));
  EXPECT_EQ(shown("/?pin=1&token=2", own), "/?pin=***&token=2");
}

// Whatever surrounds it, a secret does not come through.
TEST(LogSecrets, HidesASecretAnywhereInAQuery) {
  testing::check_property(100, [] {
    const std::string alphabet = "ab=&;%+[]?/";
    const auto noise = [&] {
      return *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
    };
    const std::string target =
        "/p?" + noise() + *rc::gen::element<std::string>("&", ";") + "token=S3CRET" + noise();
    RC_ASSERT(shown(target).find("S3CRET") == std::string::npos);
  });
}

}  // namespace
}  // namespace sluice::frontend
