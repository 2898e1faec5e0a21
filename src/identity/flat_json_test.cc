#include "identity/flat_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

using namespace std::string_literals;

std::string fault(std::string_view text, const JsonLimits& limits = {}) {
  FlatJson json;
  const JsonFault found = json.parse(text, limits);
  EXPECT_TRUE(found.ok() || json.size() == 0) << "a broken text left members behind: " << text;
  return found.ok() ? "" : found.what;
}

TEST(FlatJson, JoinsNestedNamesByDots) {
  FlatJson json;
  ASSERT_TRUE(json.parse(R"( { "sub" : "u1", "org": {"id": 7, "plan": {"tier": "gold"}},
                              "aud": ["a", "b"], "ok": true, "no": false, "nil": null,
                              "https://example.com/x": -1.5e+3, "e": {}, "l": [] } )")
                  .ok());
  EXPECT_EQ(json.find("sub"), "u1");
  EXPECT_EQ(json.find("org.id"), "7");
  EXPECT_EQ(json.find("org.plan.tier"), "gold");
  EXPECT_EQ(json.find("aud.1"), "b");
  EXPECT_EQ(json.find("ok"), "true");
  EXPECT_EQ(json.find("no"), "false");
  EXPECT_EQ(json.find("https://example.com/x"), "-1.5e+3");
  for (const char* absent : {"nil", "org", "aud", "aud.2", "sub.x", "", "or", "org.", "e", "l"}) {
    EXPECT_EQ(json.find(absent), "") << absent;
  }
  EXPECT_EQ(json.member("aud")->kind, JsonKind::array);
  EXPECT_EQ(json.element("aud", 0)->value, "a");
  EXPECT_FALSE(json.element("aud", 2));
  EXPECT_FALSE(json.element(std::string(200, 'x'), 0));
}

TEST(FlatJson, UnescapesTexts) {
  FlatJson json;
  ASSERT_TRUE(json.parse(R"({"a":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00é"})").ok());
  EXPECT_EQ(json.find("a"), "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9");
}

// Each pair would let two readers of one token see two different claims.
TEST(FlatJson, RefusesANameThatOccursTwice) {
  for (const char* text :
       {R"({"a":1,"a":1})", R"({"a":1,"\u0061":2})", R"({"o":{"a":1,"a":2}})",
        R"({"o":{"a":1},"o.a":2})", R"({"o":{},"o":{"a":1}})", R"({"l":[1],"l.0":2})",
        R"({"a":null,"a":1})", R"({"a":1,"b":2,"a":{}})"}) {
    EXPECT_EQ(fault(text), "a member stands there twice") << text;
  }
  EXPECT_EQ(fault(R"({"a":{"x":1},"b":{"x":1}})"), "");
}

TEST(FlatJson, RefusesWhatIsNotJson) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "1"s,
                                  "[]"s,
                                  "\"a\""s,
                                  "{"s,
                                  "}"s,
                                  "{}x"s,
                                  "{}{}"s,
                                  "{\"a\"}"s,
                                  "{\"a\":}"s,
                                  "{\"a\":1,}"s,
                                  "{,}"s,
                                  "{a:1}"s,
                                  "{'a':1}"s,
                                  "{\"a\":01}"s,
                                  "{\"a\":-01}"s,
                                  "{\"a\":+1}"s,
                                  "{\"a\":.5}"s,
                                  "{\"a\":1.}"s,
                                  "{\"a\":1e}"s,
                                  "{\"a\":-}"s,
                                  "{\"a\":NaN}"s,
                                  "{\"a\":Infinity}"s,
                                  "{\"a\":tru}"s,
                                  "{\"a\":TRUE}"s,
                                  "{\"a\":[1,]}"s,
                                  "{\"a\":[1"s,
                                  "{\"a\":\"\n\"}"s,
                                  "{\"a\":\"\\x41\"}"s,
                                  "{\"a\":\"\\u12\"}"s,
                                  "{\"a\":\"\\ud800\"}"s,
                                  "{\"a\":\"\\ude00\"}"s,
                                  "{\"a\":\"\\ud800\\u0041\"}"s,
                                  "{\"a\":\"\\u0000\"}"s,
                                  "{\"a\":\"\xff\"}"s,
                                  "{\"a\":\"\xc0\x80\"}"s,
                                  "{\"a\":\"\xed\xa0\x80\"}"s,
                                  "{\"a\":\"\xf4\x90\x80\x80\"}"s,
                                  "{\"a\":\"\xc3\"}"s,
                                  "{\"a\":\"x"s,
                                  "{\"a\":\"\\"s,
                                  "{\"\":1}"s,
                                  "// c\n{}"s,
                                  "{\"a\":1 /* c */}"s,
                                  "\xef\xbb\xbf{}"s,
                                  "{\"a\":1}\0"s,
                                  "{\"a\" 1}"s,
                                  "{\"a\":1 \"b\":2}"s}) {
    EXPECT_NE(fault(text), "") << text;
  }
}

TEST(FlatJson, IsBoundedInEveryDirection) {
  const JsonLimits limits{.bytes_max = 200, .members_max = 3, .depth_max = 3};
  EXPECT_EQ(fault(R"({"a":1,"b":2,"c":3})", limits), "");
  EXPECT_EQ(fault(R"({"a":1,"b":2,"c":3,"d":4})", limits), "too many members");
  EXPECT_EQ(fault(R"({"a":{"b":{}}})", limits), "");
  EXPECT_EQ(fault(R"({"a":{"b":[[]]}})", limits), "nested too deeply");
  EXPECT_EQ(fault("{\"a\":\"" + std::string(200, 'x') + "\"}", limits), "the text is too long");
  EXPECT_EQ(fault(std::string(1000, '['), {}), "the outermost value must be an object");
  EXPECT_EQ(fault("{\"a\":" + std::string(10000, '['), {}), "nested too deeply");
  // One long name above many short members.
  std::string wide = "{\"" + std::string(1000, 'n') + "\":[0";
  for (int i = 0; i < 400; ++i) wide += ",0";
  EXPECT_EQ(fault(wide + "]}", {}), "the names are too long");
}

TEST(FlatJson, TellsWhereItStopped) {
  FlatJson json;
  EXPECT_EQ(json.parse(R"({"a": nope})").at, 6U);
}

}  // namespace
}  // namespace sluice::identity
