#include "embed/config/api_key_file.h"

#include "embed/config/api_key_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::embed {
namespace {

using identity::ApiKey;
using identity::ApiKeyRecord;
using identity::hash_api_key;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<ApiKeyRecord> read(std::string_view text) {
  config::Diagnostics diagnostics;
  std::vector<ApiKeyRecord> records = read_api_keys(text, "keys.yaml", diagnostics);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text() << text;
  return records;
}

std::string mistakes(std::string_view text) {
  config::Diagnostics diagnostics;
  (void)read_api_keys(text, "keys.yaml", diagnostics);
  return diagnostics.text();
}

std::string hash_of(int number) { return hash_api_key("k" + std::to_string(number)); }

ApiKeyRecord record(std::string name, std::string hash) {
  return {.name = std::move(name), .hash = std::move(hash)};
}

std::vector<std::string> names(std::string_view text) {
  std::vector<std::string> names;
  for (const ApiKeyRecord& one : read(text)) names.push_back(one.name);
  return names;
}

void expect_all_members(const std::vector<ApiKeyRecord>& records) {
  ASSERT_EQ(records.size(), 2U);
  const ApiKeyRecord& first = records.front();
  EXPECT_EQ(first.name, "ci");
  EXPECT_EQ(first.hash, hash_of(1));
  EXPECT_EQ(first.user, "u");
  EXPECT_EQ(first.tenant, "t");
  EXPECT_EQ(first.tier, "paid");
  EXPECT_EQ(ApiKey{first}.find("plan.seats"), "5");
  EXPECT_EQ(ApiKey{first}.find("plan.name"), "big");
  EXPECT_EQ(ApiKey{first}.find("beta"), "true");
  EXPECT_EQ(first.expires, WallTime{std::chrono::seconds{1'893'456'000}});
  EXPECT_EQ(records.back().name, "b");
  EXPECT_FALSE(records.back().expires);
}

TEST(ApiKeyFile, HoldsRecords) {
  expect_all_members(
      read("keys:\n"
           "  - name: ci\n"
           "    hash: " +
           hash_of(1) +
           "\n"
           "    user: u\n"
           "    tenant: t\n"
           "    tier: paid\n"
           "    attributes: {plan: {seats: 5, name: big}, beta: true}\n"
           "    expires: 2030-01-01T00:00:00Z\n"
           "  - {name: b, hash: '" +
           hash_of(2) + "'}\n"));
}

// Files from before YAML, and those that programs write.
TEST(ApiKeyFile, MayBeJson) {
  expect_all_members(read(R"({"keys": [{"name": "ci", "hash": ")" + hash_of(1) +
                          R"(", "user": "u", "tenant": "t", "tier": "paid",
                    "attributes": {"plan": {"seats": 5, "name": "big"}, "beta": true},
                    "expires": "2030-01-01T00:00:00Z"},
                   {"name": "b", "hash": ")" +
                          hash_of(2) + R"("}]})"));
  EXPECT_TRUE(read(R"({"keys": []})").empty());
}

TEST(ApiKeyFile, KeepsManyKeysApart) {
  std::vector<ApiKeyRecord> records;
  for (int i = 0; i < 25; ++i) records.push_back(record("n" + std::to_string(i), hash_of(i)));
  const std::vector<ApiKeyRecord> again = read(key_file_text(records));
  ASSERT_EQ(again.size(), 25U);
  for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ(again[i].name, "n" + std::to_string(i));
}

TEST(ApiKeyFile, ReportsAllMistakesWithTheirPlaces) {
  const std::string text = mistakes(
      "keys:\n"
      "  - nmae: a\n"
      "    hash: " +
      hash_of(1) +
      "\n"
      "  - name: b\n"
      "  - {name: c, hash: " +
      hash_of(2) +
      ", expires: tomorrow}\n"
      "  - {name: c, hash: " +
      hash_of(3) +
      "}\n"
      "  - {name: d, hash: " +
      hash_of(3) +
      "}\n"
      "  - {name: 5, hash: " +
      hash_of(4) +
      "}\n"
      "  - {name: e, hash: " +
      hash_of(5) +
      ", attributes: {a.b: 1, a: {b: 2}}}\n"
      "version: 1\n");
  EXPECT_THAT(text, HasSubstr("keys.yaml:2:5: unknown key 'nmae' in key; did you mean 'name'?"));
  EXPECT_THAT(text, HasSubstr("keys.yaml:4:5: 'hash' is missing in key"));
  EXPECT_THAT(text, HasSubstr("keys.yaml:5:103: expires: "));
  EXPECT_THAT(text, HasSubstr("keys.yaml:6:12: the name 'c' is taken, first in line 5"));
  EXPECT_THAT(text, HasSubstr("keys.yaml:7:21: the same hash stands in line 6 already"));
  EXPECT_THAT(text, HasSubstr("keys.yaml:8:12: name: '5' is a number in YAML"));
  EXPECT_THAT(text, HasSubstr("the attribute 'a.b' is given twice"));
  EXPECT_THAT(text, HasSubstr("keys.yaml:10:1: unknown key '...' in key_file; known are keys"));
}

TEST(ApiKeyFile, RefusesWhatIsNoListOfKeys) {
  for (const char* const text :
       {"", "{}", "keys:", "keys: {}", "keys: [1]", "- a", "5", "keys: [{}]", "keys: [nope]",
        "keys: [{user: ~}]", "keys: [{attributes: []}]", "{\"keys\":", "keys: &a []"}) {
    EXPECT_THAT(mistakes(text), HasSubstr("keys.yaml")) << text;
  }
}

// Somebody who writes the key where its hash belongs, or anywhere else that is wrong, must not read
// it in a log afterwards.
TEST(ApiKeyFile, NeverShowsWhatMayBeAKey) {
  const std::string secret = "my-secret-key";
  for (const std::string& text :
       {"keys:\n  - {name: a, hash: " + secret + "}\n",
        "keys:\n  - {name: a, key: " + secret + "}\n",
        "keys:\n  - {name: a, hash: [" + secret + "]}\n", "keys:\n  - {" + secret + ": a}\n",
        "keys:\n  - " + secret + "\n", secret + "\n", "keys: {" + secret + ": {tier: paid}}\n",
        "keys:\n  - name: a\n    hash: " + secret + "\n   tier: x\n", "keys:\n  " + secret + "\n x",
        secret + ": 1\n" + secret + ": 2\n", "keys: [{hash: \"" + secret + "\n"}) {
    config::Diagnostics diagnostics;
    (void)read_api_keys(text, "keys.yaml", diagnostics);
    ASSERT_FALSE(diagnostics.ok()) << text;
    EXPECT_THAT(diagnostics.text(), Not(HasSubstr(secret))) << text;
    EXPECT_THAT(diagnostics.json(), Not(HasSubstr(secret))) << text;
    EXPECT_THAT(diagnostics.text(), HasSubstr("keys.yaml:"));
  }
  EXPECT_THAT(mistakes("keys: [{name: a, key: x}]"), HasSubstr("write its hash instead"));
}

TEST(ApiKeyFile, IsWrittenSoThatItReadsTheSame) {
  ApiKeyRecord odd = record("no", hash_of(1));
  odd.user = "a: #b \"c\"\n";
  odd.tenant = "010";
  odd.tier =
      "pa\xc3\xaf"
      "d";
  odd.attributes = {{"a b", "null"}, {"plan.seats", "5"}};
  odd.expires = WallTime{std::chrono::milliseconds{1'893'456'000'250}};
  const std::vector<ApiKeyRecord> again = read(key_file_text({odd, record("~", hash_of(2))}));
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].name, "no");
  EXPECT_EQ(again[0].user, odd.user);
  EXPECT_EQ(again[0].tenant, odd.tenant);
  EXPECT_EQ(again[0].tier, odd.tier);
  EXPECT_EQ(again[0].attributes, odd.attributes);
  EXPECT_EQ(again[0].expires, odd.expires);
  EXPECT_EQ(again[1].name, "~");
  EXPECT_TRUE(read(key_file_text({})).empty());
}

TEST(ApiKeyFile, GrowsByOneKeyAndKeepsTheRest) {
  const auto longer = [](const std::string& text) {
    const auto added = with_api_key(text, "keys.yaml", record("new", hash_of(9)));
    return added ? *added : "refused: " + added.error().text();
  };
  const std::string item = "- name: new\n";
  EXPECT_EQ(longer("keys: []\n"), "keys:\n  - name: new\n    hash: " + hash_of(9) + "\n\n");
  EXPECT_EQ(names(longer("# mine\nkeys: [ ] # none yet\n")), std::vector<std::string>{"new"});

  const std::string two = "# mine\nkeys:\n# first\n- name: a  # of Ann\n  hash: " + hash_of(1) +
                          "\n\n- {name: b, hash: '" + hash_of(2) + "'}";
  EXPECT_EQ(longer(two), two + "\n- name: new\n  hash: " + hash_of(9) + "\n");
  EXPECT_EQ(names(longer(key_file_text({record("a", hash_of(1))}))),
            (std::vector<std::string>{"a", "new"}));
  EXPECT_THAT(longer("keys:\n      - {name: a, hash: '" + hash_of(1) + "'}\n"),
              HasSubstr("\n      - name: new\n        hash: "));
}

TEST(ApiKeyFile, DoesNotGrowWhereOnlyAPersonCanAddToIt) {
  const auto refused = [](const std::string& text, const char* name = "new") {
    const auto added = with_api_key(text, "keys.yaml", record(name, hash_of(9)));
    return added ? "added:\n" + *added : added.error().text();
  };
  EXPECT_THAT(refused(key_file_text({record("a", hash_of(1))}), "a"),
              HasSubstr("keys.yaml has a key called 'a'; choose another name"));
  EXPECT_THAT(refused("keys: nope\n"), HasSubstr("has mistakes already"));
  EXPECT_THAT(refused(""), HasSubstr("has mistakes already"));
  const std::string flow = "{\"keys\": [{\"name\": \"a\", \"hash\": \"" + hash_of(1) + "\"}]}";
  EXPECT_THAT(refused(flow), HasSubstr("in brackets; add it by hand:\n  - name: new\n"));
  EXPECT_THAT(refused("{keys: [\n]}\n"), HasSubstr("unusual"));
  EXPECT_THAT(refused("---\nkeys:\n- {name: a, hash: '" + hash_of(1) + "'}\n...\n"),
              HasSubstr("unusual"));
}

TEST(ApiKeyFile, HasASchemaOfAllItsKeys) {
  const std::string schema = key_file_schema();
  for (const char* key : {"\"keys\"", "\"hash\"", "\"tenant\"", "\"attributes\"", "\"expires\""}) {
    EXPECT_THAT(schema, HasSubstr(key));
  }
}

}  // namespace
}  // namespace sluice::embed
