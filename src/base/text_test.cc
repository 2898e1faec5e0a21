#include "base/text.h"

#include "support/property.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <string>
#include <string_view>

namespace sluice {
namespace {

using namespace std::string_literals;
using sluice::testing::check_property;

TEST(Text, NumbersAreDigitsAndNothingElse) {
  EXPECT_EQ(parse_number("0"), 0U);
  EXPECT_EQ(parse_number("18446744073709551615"), ~std::uint64_t{0});
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "18446744073709551616"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Text, DecimalsAreThousandths) {
  EXPECT_EQ(parse_thousandths("2"), 2000U);
  EXPECT_EQ(parse_thousandths("1.5"), 1500U);
  EXPECT_EQ(parse_thousandths("0.25"), 250U);
  EXPECT_EQ(parse_thousandths("0.001"), 1U);
  EXPECT_EQ(parse_thousandths("1.050"), 1050U);
  for (const char* wrong : {"", ".", "1.", ".5", "0.0001", "-1", "+1", "1e2", "1.2.3", "1x", "1.-2",
                            "18446744073709552", "99999999999999999999"}) {
    EXPECT_EQ(parse_thousandths(wrong), std::nullopt) << wrong;
  }
  for (const char* text : {"0", "2", "1.5", "0.25", "0.001", "10.05", "1000"}) {
    EXPECT_EQ(format_thousandths(parse_thousandths(text).value()), text);
  }
}

TEST(Text, NearestWordForgivesTyposAndGuessesNothingWild) {
  constexpr std::array<std::string_view, 3> words{"token_bucket", "leaky_bucket", "gcra"};
  EXPECT_EQ(nearest_word("token_buckt", words), "token_bucket");
  EXPECT_EQ(nearest_word("tokne_bucket", words), "token_bucket");
  EXPECT_EQ(nearest_word("laeky-bucket", words), "leaky_bucket");
  EXPECT_EQ(nearest_word("gcar", words), "gcra");
  EXPECT_EQ(nearest_word("gcra", words), "gcra");
  EXPECT_EQ(nearest_word("window", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'x'), words), "");
  EXPECT_EQ(nearest_word("gcra", {}), "");
}

TEST(Text, CountedWordsHaveTheirPlural) {
  EXPECT_EQ(counted(0, "rule"), "0 rules");
  EXPECT_EQ(counted(1, "rule"), "1 rule");
  EXPECT_EQ(counted(2, "rule"), "2 rules");
}

TEST(Text, WordsJoinIntoASentence) {
  constexpr std::array<std::string_view, 3> words{"a", "b", "c"};
  EXPECT_EQ(join_words(words), "a, b and c");
  EXPECT_EQ(join_words(std::span{words}.first(2)), "a and b");
  EXPECT_EQ(join_words(std::span{words}.first(1)), "a");
  EXPECT_EQ(join_words({}), "");
}

TEST(Text, JsonEscapesWhatItMust) {
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_string("\n\t\x1f\x7f"), R"("\u000a\u0009\u001f\u007f")");
  EXPECT_EQ(json_string("a\0b"s), R"("a\u0000b")");
  EXPECT_EQ(json_string("é€😀"), "\"é€😀\"");
}

// Eight characters are looked at together: each byte, at each place of two such groups.
TEST(Text, JsonEscapesEveryByteWhereverItStands) {
  for (std::size_t place = 0; place < 17; ++place) {
    for (unsigned byte = 0; byte < 0x80; ++byte) {
      std::string text(17, ' ');
      text[place] = static_cast<char>(byte);
      std::string escaped(1, static_cast<char>(byte));
      if (byte == '"' || byte == '\\') escaped.insert(0, 1, '\\');
      if (byte < 0x20 || byte == 0x7f) escaped = fmt::format("\\u{:04x}", byte);
      const std::string blanks(16, ' ');
      EXPECT_EQ(json_string(text),
                '"' + blanks.substr(0, place) + escaped + blanks.substr(place) + '"');
    }
  }
}

TEST(Text, TellsHowMuchOfATextIsUtf8) {
  EXPECT_EQ(valid_utf8_prefix(""), 0U);
  EXPECT_EQ(valid_utf8_prefix("aé€😀"), 10U);
  EXPECT_EQ(valid_utf8_prefix("ab\xff"), 2U);
  EXPECT_EQ(valid_utf8_prefix("a\xe2\x82"), 1U);
}

// Bytes that are not UTF-8 never reach the JSON: truncated, overlong, surrogate, too large.
TEST(Text, JsonReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_string("\xff"), R"("\ufffd")");
  EXPECT_EQ(json_string("\xc3"), R"("\ufffd")");
  EXPECT_EQ(json_string("\xc3("), R"("\ufffd(")");
  EXPECT_EQ(json_string("\xc0\xaf"), R"("\ufffd\ufffd")");
  EXPECT_EQ(json_string("\xe2\x82"), R"("\ufffd\ufffd")");
  EXPECT_EQ(json_string("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(json_string("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");
  EXPECT_EQ(json_string("\xf8\x88\x80\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd\ufffd")");
}

// Whatever goes in, a string of JSON comes out: quoted, no raw controls, no lone quotes.
TEST(Text, JsonOfAnyBytesIsWellFormed) {
  check_property(3000, [] {
    const std::string json = json_string(
        *rc::gen::container<std::string>(rc::gen::resize(100, rc::gen::arbitrary<char>())));
    RC_ASSERT(json.size() >= 2U);
    RC_ASSERT(json.front() == '"');
    RC_ASSERT(json.back() == '"');
    for (std::size_t i = 1; i + 1 < json.size(); ++i) {
      RC_ASSERT(static_cast<unsigned char>(json[i]) >= 0x20);
      RC_ASSERT(json[i] != '"');
      if (json[i] == '\\') ++i;
    }
  });
}

TEST(Text, QuotedShowsControlsAndCutsLongTexts) {
  EXPECT_EQ(sluice::quoted("abc"), "'abc'");
  EXPECT_EQ(sluice::quoted("a\nb\x7f"), R"('a\x0ab\x7f')");
  EXPECT_EQ(sluice::quoted(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(sluice::quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace sluice
