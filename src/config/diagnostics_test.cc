#include "config/diagnostics.h"

#include "config/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::config {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(Diagnostics, ShowTheLineAndACaretBelowTheMistake) {
  Diagnostics diagnostics;
  const auto document = parse_document("rules:\n  - limt: 100/1s\n", "rules.yaml", diagnostics);
  ASSERT_TRUE(document);
  diagnostics.error(document->root.value(0).items().front().key(0), "unknown key 'limt'",
                    "did you mean 'limit'?");
  EXPECT_EQ(diagnostics.text(),
            "rules.yaml:2:5: unknown key 'limt'; did you mean 'limit'?\n"
            "    2 |   - limt: 100/1s\n"
            "      |     ^\n");
}

TEST(Diagnostics, KeepTheCaretInViewAndInPlace) {
  Diagnostics diagnostics;
  const Source source{"f", std::string(500, 'x') + "\t€y"};
  diagnostics.error(source, 504, "here");
  const std::string text = diagnostics.text();
  const std::size_t line = text.find(" | ");
  const std::size_t caret = text.find('^');
  ASSERT_NE(caret, std::string::npos);
  const std::string shown = text.substr(line + 3, text.find('\n', line) - line - 3);
  EXPECT_LT(shown.size(), 130U);
  EXPECT_THAT(shown, EndsWith(" €y"));
  // The caret stands below y: as many characters from the left, of which one has three bytes.
  const std::size_t column = caret - (text.rfind(" | ", caret) + 3);
  EXPECT_EQ(column, shown.size() - 3);
}

TEST(Diagnostics, AreSortedByPlace) {
  Diagnostics diagnostics;
  const Source source{"f", "a\nb\nc\n"};
  diagnostics.error(source, 4, "third");
  diagnostics.error(source, 0, "first");
  diagnostics.error(source, 2, "second");
  diagnostics.error(source, 2, "second again");
  const auto mistakes = diagnostics.sorted();
  ASSERT_EQ(mistakes.size(), 4U);
  EXPECT_EQ(mistakes[0].message, "first");
  EXPECT_EQ(mistakes[1].message, "second");
  EXPECT_EQ(mistakes[2].message, "second again");
  EXPECT_EQ(mistakes[3].message, "third");
}

TEST(Diagnostics, ShowAHundredAndCountTheRest) {
  Diagnostics diagnostics;
  const Source source{"f", "a\n"};
  for (int i = 0; i < 1234; ++i) diagnostics.error(source, 0, "wrong");
  EXPECT_EQ(diagnostics.errors(), 1234U);
  EXPECT_EQ(diagnostics.sorted().size(), Diagnostics::kKept);
  EXPECT_THAT(diagnostics.text(), EndsWith("\nand 1134 more\n"));
  EXPECT_THAT(diagnostics.json(), EndsWith(R"("errors":1234,"warnings":0,"more":1134})"));
}

TEST(Diagnostics, WarningsAreNoErrors) {
  Diagnostics diagnostics;
  const auto document = parse_document("a: 1\n", "f", diagnostics);
  diagnostics.warning(document->root.key(0), "this does little", "remove it");
  EXPECT_TRUE(diagnostics.ok());
  EXPECT_FALSE(diagnostics.empty());
  EXPECT_THAT(diagnostics.text(), HasSubstr("f:1:1: warning: this does little; remove it\n"));
}

TEST(Diagnostics, AsJsonNameEveryField) {
  Diagnostics diagnostics;
  const auto document = parse_document("a: \"q\\\"\"\n", "f", diagnostics);
  diagnostics.error(document->root.value(0), "bad \"q\"", "fix");
  EXPECT_EQ(diagnostics.json(),
            R"({"mistakes":[{"severity":"error","file":"f","line":1,"column":4,"text":"q\"",)"
            R"("message":"bad \"q\"","remedy":"fix"}],"errors":1,"warnings":0,"more":0})");
}

}  // namespace
}  // namespace sluice::config
