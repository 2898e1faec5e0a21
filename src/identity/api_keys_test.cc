#include "identity/api_keys.h"

#include "identity/api_key_file.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

constexpr std::string_view kSecret = "a secret of the node";

ApiKeyRecord record(std::string name, std::string hash) {
  return {.name = std::move(name), .hash = std::move(hash)};
}

std::string presented(const RequestView& request, std::vector<ApiKeySource> sources) {
  std::array<char, 600> scratch{};
  const auto key = presented_api_key(request, sources, scratch);
  return key ? std::string{*key} : "nothing";
}

TEST(Sha256, AgreesWithPublishedVectors) {
  // FIPS 180-2, appendix B.1, and RFC 4231, test cases 1, 2 and 6.
  EXPECT_EQ(hash_api_key("abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_api_key("Hi There", std::string(20, '\x0b')),
            "hmac-sha256:b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hash_api_key("what do ya want for nothing?", "Jefe"),
            "hmac-sha256:5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hash_api_key("Test Using Larger Than Block-Size Key - Hash Key First",
                         std::string(131, '\xaa')),
            "hmac-sha256:60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(ApiKeys, AreFoundByEitherHash) {
  std::vector<ApiKeyRecord> records{record("plain", hash_api_key("key-1")),
                                    record("keyed", hash_api_key("key-2", kSecret))};
  records[0].user = "acme";
  records[0].attributes = {{"z", "26"}, {"plan", "big"}};
  const ApiKeys keys = ApiKeys::create(records, kSecret).value();
  ASSERT_NE(keys.find("key-1"), nullptr);
  EXPECT_EQ(keys.find("key-1")->record().name, "plain");
  EXPECT_EQ(keys.find("key-1")->record().user, "acme");
  EXPECT_EQ(keys.find("key-1")->find("plan"), "big");
  EXPECT_EQ(keys.find("key-1")->find("z"), "26");
  EXPECT_EQ(keys.find("key-1")->find("pla"), "");
  ASSERT_NE(keys.find("key-2"), nullptr);
  EXPECT_EQ(keys.find("key-2")->record().name, "keyed");
  for (const char* unknown : {"", "key-3", "key-1 ", "KEY-1", "plain"}) {
    EXPECT_EQ(keys.find(unknown), nullptr) << unknown;
  }
}

// The hash itself opens nothing.
TEST(ApiKeys, AreNotFoundByWhatIsStored) {
  const std::string hash = hash_api_key("key-1");
  const ApiKeys keys = ApiKeys::create({record("one", hash)}).value();
  EXPECT_EQ(keys.find(hash), nullptr);
  EXPECT_EQ(keys.find(hash.substr(7)), nullptr);
}

TEST(ApiKeys, OfAnotherSecretAreUnknown) {
  const ApiKeys keys =
      ApiKeys::create({record("one", hash_api_key("key-1", kSecret))}, "another long secret")
          .value();
  EXPECT_EQ(keys.find("key-1"), nullptr);
}

TEST(ApiKeys, AreFoundAmongMany) {
  std::vector<ApiKeyRecord> records;
  for (int i = 0; i < 1000; ++i) {
    records.push_back(record("n" + std::to_string(i), hash_api_key("k" + std::to_string(i))));
  }
  const ApiKeys keys = ApiKeys::create(records).value();
  for (int i = 0; i < 1000; ++i) {
    const ApiKey* const key = keys.find("k" + std::to_string(i));
    ASSERT_NE(key, nullptr) << i;
    EXPECT_EQ(key->record().name, "n" + std::to_string(i));
  }
  EXPECT_EQ(keys.find("k1000"), nullptr);
}

TEST(ApiKeys, LongerThanAnyKeyAreUnknown) {
  const std::string longest(kApiKeyBytesMax, 'k');
  const ApiKeys keys = ApiKeys::create({record("a", hash_api_key(longest)),
                                        record("b", hash_api_key(longest + "k"))})
                           .value();
  EXPECT_NE(keys.find(longest), nullptr);
  EXPECT_EQ(keys.find(longest + "k"), nullptr);
}

TEST(ApiKeys, ExpireAtAnInstant) {
  ApiKeyRecord mortal = record("a", hash_api_key("k"));
  mortal.expires = WallTime{std::chrono::seconds{100}};
  const ApiKey key{mortal};
  EXPECT_FALSE(key.is_expired(WallTime{std::chrono::nanoseconds{99'999'999'999}}));
  EXPECT_TRUE(key.is_expired(WallTime{std::chrono::seconds{100}}));
  EXPECT_FALSE(ApiKey{record("b", "")}.is_expired(kWallTimeEnd));
}

// Somebody who writes the key where its hash belongs must not read it in the log afterwards.
TEST(ApiKeys, AreRefusedWithoutSayingWhatWasWritten) {
  const std::string good = hash_api_key("k");
  const std::vector<std::vector<ApiKeyRecord>> mistakes{
      {record("a", "my-secret-key")},
      {record("a", "sha256:my-secret-key")},
      {record("a", "sha256:" + std::string(63, '0') + "x")},
      {record("a", good), record("a", hash_api_key("l"))},
      {record("a", good), record("b", good)},
      {record("", good)},
      {record("a", hash_api_key("k", kSecret))}};
  for (const std::vector<ApiKeyRecord>& records : mistakes) {
    const Parsed<ApiKeys> keys = ApiKeys::create(records);
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().text().find("my-secret-key"), std::string::npos) << keys.error().text();
    EXPECT_EQ(keys.error().text().find(good.substr(7)), std::string::npos) << keys.error().text();
    EXPECT_FALSE(keys.error().remedy.empty());
  }
  EXPECT_FALSE(ApiKeys::create({record("a", hash_api_key("k", "short"))}, "short"));
}

TEST(PresentedApiKey, IsTakenFromTheFirstPlaceThatHoldsOne) {
  using Kind = ApiKeySource::Kind;
  const std::vector<HeaderView> headers{
      {"X-API-Key", " h "}, {"Cookie", "key=c"}, {"Authorization", "Basic dTpw"}, {"empty", ""}};
  RequestView request;
  request.headers = headers;
  request.target = "/a?key=q%20q";
  EXPECT_EQ(presented(request, {{Kind::header, "x-api-key"}}), "h");
  EXPECT_EQ(presented(request, {{Kind::query, "key"}}), "q q");
  EXPECT_EQ(presented(request, {{Kind::cookie, "key"}}), "c");
  EXPECT_EQ(presented(request, {{Kind::basic, ""}}), "u");
  EXPECT_EQ(presented(request, {{Kind::header, "empty"}, {Kind::cookie, "key"}}), "c");
  EXPECT_EQ(presented(request, {{Kind::cookie, "key"}, {Kind::header, "x-api-key"}}), "c");
  EXPECT_EQ(presented(request, {{Kind::header, "absent"}, {Kind::query, "absent"}}), "nothing");
  EXPECT_EQ(presented(request, {}), "nothing");
}

TEST(PresentedApiKey, OfBasicIsTheUserName) {
  const auto user = [](std::string_view value) {
    const std::vector<HeaderView> headers{{"authorization", value}};
    RequestView request;
    request.headers = headers;
    return presented(request, {{ApiKeySource::Kind::basic, ""}});
  };
  EXPECT_EQ(user("bAsIc a2V5Og=="), "key");
  for (const char* none : {"Basic", "Basic ", "Basic a2V5", "Basic a2V5Og", "Basic *", "Bearer a",
                           "Basic OnB3", "Basica2V5Og=="}) {
    EXPECT_EQ(user(none), "nothing") << none;
  }
}

TEST(ApiKeyFile, HoldsRecords) {
  const auto records = parse_api_keys(
      R"({"keys": [{"name": "ci", "hash": "sha256:00", "user": "u", "tenant": "t", "tier": "paid",
                    "attributes": {"plan": {"seats": 5}, "beta": true},
                    "expires": "2030-01-01T00:00:00Z"}, {"name": "b", "hash": "h"}]})",
      "keys.json");
  ASSERT_TRUE(records) << records.error().text();
  ASSERT_EQ(records->size(), 2U);
  const ApiKeyRecord& first = records->front();
  EXPECT_EQ(first.name, "ci");
  EXPECT_EQ(first.hash, "sha256:00");
  EXPECT_EQ(first.user, "u");
  EXPECT_EQ(first.tenant, "t");
  EXPECT_EQ(first.tier, "paid");
  EXPECT_EQ(ApiKey{first}.find("plan.seats"), "5");
  EXPECT_EQ(ApiKey{first}.find("beta"), "true");
  EXPECT_EQ(first.expires, WallTime{std::chrono::seconds{1'893'456'000}});
  EXPECT_EQ(records->back().name, "b");
  EXPECT_FALSE(records->back().expires);
}

// Ordered by their names as text, the eleventh key comes before the third.
TEST(ApiKeyFile, KeepsMoreThanTenKeysApart) {
  std::string json = R"({"keys": [)";
  for (int i = 0; i < 25; ++i) {
    json += (i > 0 ? "," : "") + (R"({"name": "n)" + std::to_string(i) + R"(", "hash": "h"})");
  }
  const auto records = parse_api_keys(json + "]}", "keys.json");
  ASSERT_TRUE(records) << records.error().text();
  ASSERT_EQ(records->size(), 25U);
  for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ((*records)[i].name, "n" + std::to_string(i));
}

TEST(ApiKeyFile, NamesThePlaceOfAMistake) {
  const auto message = [](std::string_view json) {
    const auto records = parse_api_keys(json, "keys.json");
    return records ? "fine" : records.error().text();
  };
  EXPECT_EQ(message("{\"keys\":\n [nope]}"), "keys.json:2:3: not a value");
  EXPECT_NE(message(R"({"keys": [{"nam": "a"}]})").find("did you mean 'name'?"), std::string::npos);
  EXPECT_NE(message(R"({"keys": [{"name": 1}]})").find("key 1"), std::string::npos);
  for (const char* json :
       {"{}", R"({"keys": {}})", R"({"keys": [1]})", R"({"keys": [], "x": 1})",
        R"({"keys": [], "keys.999999999999": {}})", R"({"keys": [{"expires": "tomorrow"}]})",
        R"({"keys": [{"user": null}]})", R"({"keys": [{"attributes": []}]})"}) {
    EXPECT_EQ(message(json).rfind("keys.json", 0), 0U) << json << ": " << message(json);
  }
}

TEST(ApiKeyFile, IsReadFromDisk) {
  const testing::TempFolder folder;
  const std::string path = folder.file("keys.json");
  std::ofstream{path} << R"({"keys": [{"name": "a", "hash": "h"}]})";
  const auto records = read_api_keys(path);
  ASSERT_TRUE(records) << records.error().text();
  EXPECT_EQ(records->size(), 1U);
  EXPECT_NE(read_api_keys(folder.file("absent")).error().text().find("absent"), std::string::npos);
  EXPECT_FALSE(read_api_keys(folder.file(".")));
}

}  // namespace
}  // namespace sluice::identity
