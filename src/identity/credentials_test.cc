#include "identity/credentials.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::identity {
namespace {

using Kind = ApiKeySource::Kind;
using Headers = std::vector<HeaderView>;

const std::vector<ApiKeySource> kEverywhere{{Kind::header, "x-api-key"}, {Kind::header, "api-key"},
                                            {Kind::query, "key"},        {Kind::query, "api_key"},
                                            {Kind::cookie, "key"},       {Kind::basic, ""}};

// What was read, for people: "token T", "key K", both, "nothing", or why it is ambiguous.
std::string read(const Headers& headers, std::string_view target = "/",
                 const std::vector<ApiKeySource>& places = kEverywhere, bool tokens = true) {
  std::array<char, kCredentialScratchBytes> scratch{};
  RequestView request;
  request.headers = headers;
  request.target = target;
  const CredentialReader reader{{.tokens = tokens, .api_keys = places}};
  const Credentials found = reader.read(request, scratch);
  if (!found.ambiguous.empty()) return "ambiguous: " + std::string{found.ambiguous};
  std::string text;
  if (!found.token.empty()) text += "token " + std::string{found.token};
  if (!found.api_key.empty()) {
    text += (text.empty() ? "key " : ", key ") + std::string{found.api_key};
  }
  return text.empty() ? "nothing" : text;
}

const std::string kTwoKeys = "ambiguous: different API keys";
const std::string kTwoLines = "ambiguous: more than one Authorization header";
const std::string kTwoInOne = "ambiguous: more than one value in the Authorization header";

TEST(Credentials, AreFoundInEveryPlace) {
  EXPECT_EQ(read({{"X-API-Key", " h "}}), "key h");
  EXPECT_EQ(read({}, "/a?key=q%20q"), "key q q");
  EXPECT_EQ(read({{"Cookie", "key=c"}}), "key c");
  EXPECT_EQ(read({{"Authorization", "Basic dTpw"}}), "key u");
  EXPECT_EQ(read({{"Authorization", "Bearer t"}}), "token t");
  EXPECT_EQ(read({{"accept", "*/*"}}, "/?x=1"), "nothing");
}

TEST(Credentials, AreNotFoundElsewhere) {
  const Headers all{{"x-api-key", "h"}, {"cookie", "key=c"}, {"authorization", "Basic dTpw"}};
  EXPECT_EQ(read(all, "/?key=q", {{Kind::query, "other"}}, false), "nothing");
  EXPECT_EQ(read(all, "/?key=q", {}, false), "nothing");
  EXPECT_EQ(read(all, "/?key=q", {{Kind::cookie, "key"}}, false), "key c");
  EXPECT_EQ(read({{"x-other", "key=c"}}), "nothing") << "a cookie stands in Cookie";
  EXPECT_EQ(read({{"authorization", "Bearer t"}, {"authorization", "Bearer t"}}, "/",
                 {{Kind::header, "x-api-key"}}, false),
            "nothing")
      << "the header is not read, so nothing depends on it";
  EXPECT_TRUE((CredentialReader{{.tokens = false, .api_keys = {}}}).is_idle());
}

TEST(Credentials, OfTwoKindsMayBePresentTogether) {
  EXPECT_EQ(read({{"authorization", "Bearer t"}, {"x-api-key", "k"}}), "token t, key k");
}

// Which of the two would the server behind believe? Equal ones are no better: some servers join
// them.
TEST(Credentials, OfTwoAuthorizationLinesAreAmbiguous) {
  EXPECT_EQ(read({{"Authorization", "Bearer t"}, {"authorization", "Bearer t"}}), kTwoLines);
  EXPECT_EQ(read({{"Authorization", "Basic dTpw"}, {"authorization", "Bearer t"}}), kTwoLines);
  EXPECT_EQ(read({{"Authorization", ""}, {"authorization", "Bearer t"}}), kTwoLines);
  EXPECT_EQ(read({{"Authorization", "Digest a=b"}, {"authorization", "Bearer t"}}), kTwoLines);
}

// Servers split at blanks or commas, and take what comes first or last.
TEST(Credentials, OfSeveralInOneAuthorizationAreAmbiguous) {
  for (const char* const value : {"Bearer t, Bearer u", "Bearer t,u", "Bearer t u", "Bearer t\tu",
                                  "bearer\tt u", "Basic dTpw, Basic dTpw"}) {
    EXPECT_EQ(read({{"authorization", value}}), kTwoInOne) << value;
  }
  EXPECT_EQ(read({{"authorization", "Digest user=\"a\", realm=\"b\""}}), "nothing");
  EXPECT_EQ(read({{"authorization", "Basic dTpw, x"}}, "/", {}), "nothing") << "not read";
}

TEST(Credentials, OfBearerAreReadHoweverTheyAreSpaced) {
  EXPECT_EQ(read({{"authorization", "bEARER  t "}}), "token t");
  EXPECT_EQ(read({{"authorization", "Bearer\tt"}}), "token t") << "servers split at tabs, too";
  for (const char* const none : {"Bearer", "Bearer ", "Bearert", "t", ""}) {
    EXPECT_EQ(read({{"authorization", none}}), "nothing") << none;
  }
}

TEST(Credentials, OfBasicAreTheUserName) {
  EXPECT_EQ(read({{"authorization", "bAsIc a2V5Og=="}}), "key key");
  for (const char* const none : {"Basic", "Basic ", "Basic a2V5", "Basic OnB3", "Basica2V5Og=="}) {
    EXPECT_EQ(read({{"authorization", none}}), "nothing") << none;
  }
  // What is refused here another server may decode.
  for (const char* const broken : {"Basic a2V5Og", "Basic *", "Basic a2V5Og=*"}) {
    EXPECT_EQ(read({{"authorization", broken}}),
              "ambiguous: an Authorization header that cannot be read")
        << broken;
  }
  // "key:aaaa..."
  std::string endless = "Basic a2V5OmFh";
  for (int i = 0; i < 2000; ++i) endless += "YWFh";
  EXPECT_EQ(read({{"authorization", endless}}), "key key") << "a long password hides no name";
}

TEST(Credentials, ThatDifferAreAmbiguous) {
  struct Row {
    const char* what;
    Headers headers;
    std::string_view target = "/";
  };
  const std::vector<Row> rows{
      {"two lines", {{"x-api-key", "bogus"}, {"X-Api-Key", "real"}}},
      {"two headers", {{"x-api-key", "bogus"}, {"api-key", "real"}}},
      {"an underscore", {{"x-api-key", "bogus"}, {"X_Api_Key", "real"}}},
      {"an empty line first", {{"x-api-key", ""}, {"x-api-key", "a"}, {"x-api-key", "b"}}},
      {"header and query", {{"x-api-key", "bogus"}}, "/?key=real"},
      {"header and cookie", {{"x-api-key", "bogus"}, {"cookie", "key=real"}}},
      {"header and basic", {{"authorization", "Basic dTpw"}, {"x-api-key", "k"}}},
      {"basic and query", {{"authorization", "Basic dTpw"}}, "/?key=k"},
      {"two query fields", {}, "/?key=bogus&key=real"},
      {"two names in the query", {}, "/?key=bogus&api_key=real"},
      {"an encoded name", {}, "/?key=bogus&%6bey=real"},
      {"an encoded name first", {}, "/?%6bey=bogus&key=real"},
      {"two cookies", {{"cookie", "key=bogus; key=real"}}},
      {"two Cookie lines", {{"cookie", "key=bogus"}, {"cookie", "a=b;key=real"}}},
      {"a cookie inside quotes", {{"cookie", "a=\"x; key=bogus\"; key=real"}}},
      {"a difference in case", {{"x-api-key", "K"}, {"x-api-key", "k"}}},
      {"a longer one", {}, "/?key=real&key=realer"},
      {"a shorter one", {}, "/?key=realer&key=real"}};
  for (const Row& row : rows) EXPECT_EQ(read(row.headers, row.target), kTwoKeys) << row.what;
}

TEST(Credentials, ThatAreEqualAreOne) {
  EXPECT_EQ(read({{"x-api-key", "k"}, {"X-Api-Key", " k "}, {"api-key", "k"}}), "key k");
  EXPECT_EQ(read({{"x-api-key", "k k"}}, "/?key=k+k&api_key=%6b%20k"), "key k k");
  EXPECT_EQ(read({{"cookie", "key=k; key=\"k\""}, {"cookie", "key=%6b"}}, "/?%6bey=%6B"), "key k");
  EXPECT_EQ(read({{"authorization", "Basic dTpw"}, {"x-api-key", "u"}}), "key u");
  EXPECT_EQ(read({}, "/?key=%6b+&key=k%20"), "key k ");
}

TEST(Credentials, AreNotHiddenByEmptyOnes) {
  EXPECT_EQ(read({{"x-api-key", ""}, {"x-api-key", "k"}}), "key k");
  EXPECT_EQ(read({{"x-api-key", "k"}, {"x-api-key", " "}}), "key k");
  EXPECT_EQ(read({{"cookie", "key=; key=\"\"; key=k"}}, "/?key=&key"), "key k");
  EXPECT_EQ(read({{"x-api-key", ""}, {"authorization", "Basic OnB3"}}, "/?key=k"), "key k");
}

// Some proxies join lines of one name, and some servers split them.
TEST(Credentials, InAListAreAmbiguous) {
  const std::string list = "ambiguous: a list of API keys in one header";
  EXPECT_EQ(read({{"x-api-key", "bob, ann"}}), list);
  EXPECT_EQ(read({{"x-api-key", "ann,ann"}}), list);
  EXPECT_EQ(read({{"x-api-key", "ann,"}}), list);
  EXPECT_EQ(read({}, "/?key=a,b"), "key a,b") << "only headers are joined";
}

// As a server behind may read it.
TEST(Credentials, AreReadInEverySpelling) {
  EXPECT_EQ(read({{"X_API_KEY", "k"}}), "key k") << "CGI has one name for both";
  EXPECT_EQ(read({{"cookie", "key=\"k\""}}), "key k");
  EXPECT_EQ(read({{"cookie", " key = k ;b=c"}}), "key k");
  EXPECT_EQ(read({{"cookie", "key=%6B%2b+"}}), "key k++");
  EXPECT_EQ(read({{"cookie", "key=\""}}), "key \"");
  EXPECT_EQ(read({{"x-api-key", "%6B+"}}), "key %6B+") << "headers are not decoded";
}

// It is unknown, not absent, and no part of it is another key.
TEST(Credentials, ThatAreTooLongStayTooLong) {
  std::string endless = "/?key=";
  for (std::size_t i = 0; i < 2 * kApiKeyBytesMax; ++i) endless += "%6b";
  const std::string found = read({}, endless);
  EXPECT_GT(found.size(), kApiKeyBytesMax + 4);
  EXPECT_EQ(read({{"x-api-key", "k"}}, endless), kTwoKeys);
}

}  // namespace
}  // namespace sluice::identity
