#include "config/document.h"

#include "config/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <string>

namespace sluice::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string json_of(std::string_view yaml, const DocumentOptions& options = {}) {
  Diagnostics diagnostics;
  const auto document = parse_document(yaml, "f", diagnostics, options);
  if (!document || !diagnostics.ok()) return diagnostics.text();
  return to_json(document->root);
}

// The only mistake in the text, without the name of the file.
std::string mistake_in(std::string_view yaml, const DocumentOptions& options = {}) {
  Diagnostics diagnostics;
  (void)parse_document(yaml, "", diagnostics, options);
  if (diagnostics.errors() != 1) return "errors: " + diagnostics.text();
  return diagnostics.sorted().front().headline();
}

TEST(Document, IsATreeOfMapsListsAndScalars) {
  EXPECT_EQ(json_of("a: 1\nb: [x, 'y', {c: true}]\nd:\n- e\n- f: \"2\"\n"),
            R"({"a":1,"b":["x","y",{"c":true}],"d":["e",{"f":"2"}]})");
  EXPECT_EQ(json_of(""), "null");
  EXPECT_EQ(json_of("# nothing\n"), "null");
}

TEST(Document, ReadsJsonToo) {
  EXPECT_EQ(json_of(R"({"a": [1, "\u00e9", null], "b": {"c": false}})"),
            R"({"a":[1,"é",null],"b":{"c":false}})");
}

TEST(Document, TellsQuotedFromPlainText) {
  Diagnostics diagnostics;
  const auto document = parse_document("- a\n- 'a'\n- \"a\"\n- |\n  a\n", "f", diagnostics);
  ASSERT_TRUE(document);
  const auto items = document->root.items();
  EXPECT_EQ(items[0].style, Node::Style::plain);
  EXPECT_EQ(items[1].style, Node::Style::quoted);
  EXPECT_EQ(items[2].style, Node::Style::quoted);
  EXPECT_EQ(items[3].style, Node::Style::block);
}

TEST(Document, KnowsWhereEachPartStands) {
  Diagnostics diagnostics;
  const auto document =
      parse_document("\xef\xbb\xbfä: {ö: ü, x: y}\r\nb:\r\n  - c\n", "f.yaml", diagnostics);
  ASSERT_TRUE(document);
  const Node& flow = document->root.value(0);
  EXPECT_EQ(flow.place().column, 4U) << "columns count characters, not bytes";
  EXPECT_EQ(flow.value(0).place().column, 8U);
  EXPECT_EQ(flow.value(1).place().column, 14U);
  const Node& item = document->root.value(1).items().front();
  EXPECT_EQ(item.place().line, 3U);
  EXPECT_EQ(item.place().column, 5U);
  EXPECT_EQ(item.place().file, "f.yaml");
  EXPECT_EQ(document->source->line(1), "ä: {ö: ü, x: y}");
}

// Columns far into a long line come from counts per block; each must agree with plain counting.
RC_GTEST_PROP(Source, PlacesAgreeWithCountingCharacters, (const std::vector<std::uint8_t>& picks)) {
  constexpr std::array<std::string_view, 5> kPieces{"a", "é", "€", "😀", "\n"};
  std::string text;
  for (const std::uint8_t pick : picks) {
    for (int i = 0; i < 40; ++i) text += kPieces[pick % kPieces.size()];
  }
  const Source source{"f", text};
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80) continue;
    const Place place = source.place(i);
    RC_ASSERT(place.line == line);
    RC_ASSERT(place.column == column);
    ++column;
    if (text[i] == '\n') ++line, column = 1;
  }
}

TEST(Document, RefusesKeysThatOccurTwice) {
  EXPECT_EQ(mistake_in("a: 1\nb: 2\na: 3\n"),
            "3:1: the key 'a' is written twice, first in line 1; remove one of the two");
  EXPECT_THAT(mistake_in("{x: 1, 'x': 2}"), StartsWith("1:8: the key 'x' is written twice"));
}

TEST(Document, FindsARepeatedKeyInALargeMapQuickly) {
  std::string yaml;
  for (int i = 0; i < 20'000; ++i) yaml += "key" + std::to_string(i) + ": 1\n";
  yaml += "key19999: 2\n";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(mistake_in(yaml), StartsWith("20001:1: the key 'key19999' is written twice"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{10});
}

TEST(Document, RefusesAnchorsAliasesTagsAndMergeKeys) {
  Diagnostics diagnostics;
  (void)parse_document("a: &x 1\nb: *x\nc: !!str 5\n<<: {d: 1}\n", "", diagnostics);
  const auto mistakes = diagnostics.sorted();
  ASSERT_EQ(mistakes.size(), 4U);
  EXPECT_EQ(mistakes[0].headline(),
            "1:4: anchors are not supported; write the value out where it is used");
  EXPECT_EQ(mistakes[1].headline(),
            "2:4: aliases are not supported; write the value out where it is used");
  EXPECT_EQ(mistakes[2].headline(), "3:4: tags are not supported; leave it out");
  EXPECT_EQ(mistakes[3].headline(), "4:1: merge keys are not supported; write the keys out");
  EXPECT_THAT(mistake_in("a: &m {b: 1}"), StartsWith("1:4: anchors are not supported"));
  EXPECT_THAT(mistake_in("a: *nowhere"), StartsWith("1:4: aliases are not supported"));
}

TEST(Document, RefusesASecondDocument) {
  EXPECT_EQ(mistake_in("---\na: 1\n---\nb: 2\n"),
            "3:1: a second document begins here; keep one document in a file");
  EXPECT_EQ(json_of("---\na: 1\n...\n"), R"({"a":1})");
}

TEST(Document, RefusesDeepNestingAndLargeFiles) {
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  EXPECT_EQ(mistake_in(deep), "1:33: there are more than 32 levels; nest less deeply");
  EXPECT_EQ(mistake_in("a: 12345", {.bytes_max = 7}),
            "the file has 8 bytes, more than 7; split it");
  EXPECT_EQ(mistake_in("[1, 2, 3]", {.nodes_max = 3}),
            "1:8: there are more than 3 values; split the file");
}

TEST(Document, RefusesBytesThatAreNoText) {
  EXPECT_EQ(mistake_in("a: b\nc: \xff"), "2:4: the byte 0xff is not UTF-8; save the file as UTF-8");
  EXPECT_EQ(mistake_in(std::string_view{"a: b\0c", 6}),
            "1:5: there is a control character, 0x00; remove it");
}

// Each of these is what the library says in its own words, or lets pass.
TEST(Document, ExplainsWhatIsNotYaml) {
  EXPECT_EQ(mistake_in("a:\n\tb: c\n"), "2:1: a tab cannot indent a line; indent with spaces");
  EXPECT_THAT(mistake_in("a: b: c\n"), StartsWith("1:5: a ':' is not expected here"));
  EXPECT_THAT(mistake_in("a: [1, 2\n"),
              StartsWith("1:4: a list that begins with '[' does not end"));
  EXPECT_THAT(mistake_in("a: {b: 1\n"), HasSubstr("a map that begins with '{' does not end"));
  EXPECT_THAT(mistake_in("a: \"x\nb: 1\n"), StartsWith("1:4: a quote is opened and never closed"));
  EXPECT_THAT(mistake_in("a: 'it''s\n"), StartsWith("1:4: a quote is opened and never closed"));
  EXPECT_THAT(mistake_in("a: @b\n"), StartsWith("1:4: no text can begin with this character"));
  EXPECT_THAT(mistake_in("a: {b: 1}}"), HasSubstr("a closing bracket has no opening one"));
  EXPECT_THAT(mistake_in("a: 'b' c\n"), HasSubstr("neither a new key nor part of the value"));
  EXPECT_EQ(mistake_in("a: b\nlonely\n"), "2:1: there is no ':' after 'lonely'; write key: value");
  EXPECT_EQ(mistake_in("[a]: b\n"), "1:1: a key must be a word; write key: value");
  EXPECT_THAT(mistake_in(R"(a: "\d+")"), HasSubstr("there is no such escape"));
}

TEST(Document, KeepsWhatStandsForNothing) {
  Diagnostics diagnostics;
  const auto document = parse_document("a:\nb: ~\nc: null\nd: ''\n", "f", diagnostics);
  ASSERT_TRUE(document);
  EXPECT_TRUE(document->root.value(0).is_null());
  EXPECT_EQ(document->root.value(0).place().line, 1U) << "the place of nothing is that of its key";
  EXPECT_EQ(document->root.value(1).text, "~");
  EXPECT_EQ(document->root.value(2).text, "null");
  EXPECT_TRUE(document->root.value(3).is_scalar());
}

TEST(LenientDocument, ExpandsAliasesAndMergeKeys) {
  const DocumentOptions lenient{.lenient = true};
  EXPECT_EQ(json_of("a: &x {k: 1, m: 2}\nb: *x\nc: {<<: *x, m: 3}\n", lenient),
            R"({"a":{"k":1,"m":2},"b":{"k":1,"m":2},"c":{"m":3,"k":1}})");
  EXPECT_EQ(json_of("a: !!str 5\n---\nb: 1\n", lenient), R"({"a":5})");
}

TEST(LenientDocument, BoundsAliasesOfAliases) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(mistake_in(bomb, {.lenient = true, .nodes_max = 100'000}),
              HasSubstr("there are more than 100000 values"));
}

// Whatever the bytes are, the answer is a tree or a mistake with a place inside the text.
RC_GTEST_PROP(Document, AnyTextGivesATreeOrAMistake, (const std::vector<std::uint8_t>& picks)) {
  constexpr std::array<std::string_view, 20> kPieces{"a",  ": ",  "- ", "\n", "  ",    "[", "]",
                                                     "{",  "}",   ",",  "'",  "\"",    "|", "&x ",
                                                     "*x", "!t ", "? ", "#",  "---\n", "\t"};
  std::string text;
  for (const std::uint8_t pick : picks) text += kPieces[pick % kPieces.size()];
  Diagnostics diagnostics;
  const auto document = parse_document(text, "f", diagnostics);
  RC_ASSERT(document || !diagnostics.ok());
  for (const Mistake& mistake : diagnostics.sorted()) {
    RC_ASSERT(!mistake.message.empty());
    RC_ASSERT(mistake.place.line >= 1U);
  }
}

}  // namespace
}  // namespace sluice::config
