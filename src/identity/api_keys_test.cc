#include "identity/api_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

constexpr std::string_view kSecret = "a secret of the node";

ApiKeyRecord record(std::string name, std::string hash) {
  return {.name = std::move(name), .hash = std::move(hash)};
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

// The text may be a key that stands in the wrong place.
TEST(ApiKeys, HaveHashesThatAreCheckedWithoutBeingTold) {
  EXPECT_FALSE(api_key_hash_mistake(hash_api_key("k")));
  EXPECT_FALSE(api_key_hash_mistake(hash_api_key("k", kSecret)));
  for (const char* const wrong : {"", "my-secret-key", "sha256:my-secret-key", "sha256:"}) {
    const auto mistake = api_key_hash_mistake(wrong);
    ASSERT_TRUE(mistake) << wrong;
    EXPECT_EQ(mistake->text().find("my-secret-key"), std::string::npos);
    EXPECT_FALSE(mistake->remedy.empty());
  }
}

// Long enough that nobody finds one by trying, and of characters that survive headers, URLs, shells
// and YAML as they are.
TEST(ApiKeys, AreMadeAtRandom) {
  std::set<std::string> made;
  std::set<char> used;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = new_api_key();
    ASSERT_EQ(key.size(), 7U + 32U);
    ASSERT_EQ(key.rfind("sluice_", 0), 0U);
    for (const char c : key.substr(7)) used.insert(c);
    EXPECT_TRUE(made.insert(key).second);
  }
  EXPECT_EQ(used.size(), 32U);
  EXPECT_TRUE(std::all_of(used.begin(), used.end(),
                          [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); }));
}

}  // namespace
}  // namespace sluice::identity
