#include "identity/fields.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::identity {
namespace {

std::optional<std::string> query(std::string_view text, std::string_view name) {
  std::array<char, 64> scratch{};
  const auto value = find_query_field(text, name, scratch);
  return value ? std::optional{std::string{*value}} : std::nullopt;
}

TEST(Cookie, IsFoundByItsExactName) {
  const std::vector<HeaderView> headers{{"accept", "session=no"},
                                        {"Cookie", "a=1; session=abc ;SESSION=other; b"},
                                        {"cookie", "session=second; late=x=y"}};
  EXPECT_EQ(find_cookie(headers, "session"), "abc");
  EXPECT_EQ(find_cookie(headers, "SESSION"), "other");
  EXPECT_EQ(find_cookie(headers, "late"), "x=y");
  EXPECT_EQ(find_cookie(headers, "b"), std::nullopt);
  EXPECT_EQ(find_cookie(headers, "sess"), std::nullopt);
  EXPECT_EQ(find_cookie(headers, ""), std::nullopt);
  EXPECT_EQ(find_cookie({}, "session"), std::nullopt);
}

TEST(Cookie, IsTakenAsItWasSent) {
  const std::vector<HeaderView> headers{{"cookie", "q=\"a b\"; empty=; enc=%41"}};
  EXPECT_EQ(find_cookie(headers, "q"), "\"a b\"");
  EXPECT_EQ(find_cookie(headers, "empty"), "");
  EXPECT_EQ(find_cookie(headers, "enc"), "%41");
}

TEST(QueryField, IsDecoded) {
  EXPECT_EQ(query("a=1&key=x%20y+z%2B", "key"), "x y z+");
  EXPECT_EQ(query("%6bey=v", "key"), "v");
  EXPECT_EQ(query("my+key=v", "my key"), "v");
  EXPECT_EQ(query("key=plain", "key"), "plain");
  EXPECT_EQ(query("key=a=b", "key"), "a=b");
  EXPECT_EQ(query("key", "key"), "");
  EXPECT_EQ(query("key=", "key"), "");
  EXPECT_EQ(query("key=100%&x", "key"), "100%");
  EXPECT_EQ(query("key=%zz%4", "key"), "%zz%4");
}

TEST(QueryField, ThatIsRepeatedCountsOnce) {
  EXPECT_EQ(query("key=first&key=second", "key"), "first");
  EXPECT_EQ(query("&&key=first&%6bey=second", "key"), "first");
}

TEST(QueryField, IsAbsentUnderAnyOtherName) {
  for (const char* text : {"", "keys=1", "ke=1", "KEY=1", "x=key=1", "key%00=1", "=key"}) {
    EXPECT_EQ(query(text, "key"), std::nullopt) << text;
  }
}

// Nothing is cut: half a value would be another client's.
TEST(QueryField, ThatDoesNotFitCountsAsAbsent) {
  std::array<char, 4> scratch{};
  EXPECT_EQ(find_query_field("k=%61%61%61%61", "k", scratch), "aaaa");
  EXPECT_EQ(find_query_field("k=%61%61%61%61a", "k", scratch), std::nullopt);
  EXPECT_EQ(find_query_field("k=aaaaaaaa", "k", scratch), "aaaaaaaa") << "needs no scratch";
}

TEST(QueryField, IsTakenOneByOne) {
  std::string_view rest = "&a=1&&b&=x&c=%31";
  std::vector<std::pair<std::string_view, std::string_view>> all;
  while (const auto field = take_query_field(rest)) all.emplace_back(field->name, field->value);
  using Pair = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(all, (std::vector{Pair{"a", "1"}, Pair{"b", ""}, Pair{"", "x"}, Pair{"c", "%31"}}));
}

TEST(QueryField, IsDecodedAsFarAsItFits) {
  std::array<char, 4> scratch{};
  EXPECT_EQ(decode_field("%61bcd", scratch).text, "abcd");
  EXPECT_TRUE(decode_field("%61bcd", scratch).whole);
  EXPECT_EQ(decode_field("%61bcde", scratch).text, "abcd");
  EXPECT_FALSE(decode_field("%61bcde", scratch).whole);
  EXPECT_TRUE(decode_field("abcde", scratch).whole) << "needs no scratch";
}

TEST(Cookie, IsTakenOneByOne) {
  std::string_view rest = "a=1; b ;; c=x=y;a=2";
  std::vector<std::pair<std::string_view, std::string_view>> all;
  while (const auto field = take_cookie(rest)) all.emplace_back(field->name, field->value);
  using Pair = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(all, (std::vector{Pair{"a", "1"}, Pair{"c", "x=y"}, Pair{"a", "2"}}));
}

}  // namespace
}  // namespace sluice::identity
