#include "config/grammar.h"

#include "base/duration.h"
#include "config/plain.h"
#include "config/reference.h"
#include "config/schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A grammar of every form there is.
const Format kDuration{"DURATION", "^[0-9a-z]+$",
                       [](std::string_view text) -> std::optional<Diagnostic> {
                         const auto parsed = parse_duration(text);
                         if (parsed) return std::nullopt;
                         return parsed.error();
                       }};

const Section& door() {
  static const Section kDoor{
      .name = "door",
      .meaning = "A way in.",
      .keys =
          {{.name = "height",
            .shape = number(1, 300),
            .meaning = "In centimetres.",
            .required = true,
            .examples = {"200"},
            .formerly = {"tallness", "size"}},
           {.name = "colour", .shape = word({"red", "green"}), .meaning = "Its paint."},
           {.name = "locked", .shape = flag(), .meaning = "Whether it is.", .fallback = "false"},
           {.name = "opens", .shape = text(kDuration), .meaning = "How long it stays open."},
           {.name = "weight",
            .shape = decimal(1, 1'500),
            .meaning = "In tonnes.",
            .examples = {"0.25", "1"}},
           {.name = "key", .shape = text(), .meaning = "Who has one."},
           {.name = "code", .shape = text(), .meaning = "Instead of a key."},
           {.name = "bell", .shape = text(), .meaning = "Rings beside the code."}},
      .exactly_one = {{"key", "code"}},
      .needs = {{"bell", "code"}},
      .hints = {{"width", "all doors are equally wide"}}};
  return kDoor;
}

const Section& house() {
  static const Section kHouse{
      .name = "house",
      .meaning = "Where somebody lives.",
      .keys = {{.name = "doors",
                .shape = text() | map_of(door) | list_of(map_of(door)),
                .meaning = "Ways in."},
               {.name = "years", .shape = any_list_of(number(1, 9999)), .meaning = "Of repair."}}};
  return kHouse;
}

std::vector<std::string> mistakes_in(std::string_view yaml) {
  Diagnostics diagnostics;
  const auto document = parse_document(yaml, "", diagnostics);
  if (document) (void)check(document->root, map_of(house), "the file", diagnostics);
  std::vector<std::string> mistakes;
  for (const Mistake& mistake : diagnostics.sorted()) mistakes.push_back(mistake.headline());
  return mistakes;
}

TEST(Grammar, AcceptsEveryFormOfAShape) {
  EXPECT_THAT(mistakes_in("doors: front\nyears: []\n"), IsEmpty());
  EXPECT_THAT(mistakes_in("doors: {height: 200, key: ann, locked: true, opens: 5s}\n"), IsEmpty());
  EXPECT_THAT(mistakes_in("doors: [{height: 200, code: '17', bell: ding}]\n"), IsEmpty());
  EXPECT_THAT(mistakes_in("{}"), IsEmpty());
}

TEST(Grammar, ReportsAllMistakesAtOnce) {
  EXPECT_THAT(
      mistakes_in(
          "doors:\n  - heigt: 1\n    key: a\n  - {height: 0, key: a, colour: gren}\nyeers: 3\n"),
      ElementsAre(
          "2:5: unknown key 'heigt' in door; did you mean 'height'?",
          "4:14: height: 0 is out of range; use 1 to 300",
          "4:33: colour: unknown value 'gren'; did you mean 'green'? known are red and green",
          "5:1: unknown key 'yeers' in house; did you mean 'years'?"));
}

TEST(Grammar, SaysWhatIsMissing) {
  EXPECT_THAT(mistakes_in("doors: {key: a}"),
              ElementsAre("1:8: 'height' is missing in door; add it, as in height: 200"));
  EXPECT_THAT(mistakes_in("doors: {height: 1}"),
              ElementsAre("1:8: door says nothing of 'key' or 'code'; write one of them"));
  EXPECT_THAT(mistakes_in("doors: {height: 1, key: a, code: b}"),
              ElementsAre("1:8: door has more than one of 'key' or 'code'; keep one of them"));
  EXPECT_THAT(
      mistakes_in("doors: {height: 1, key: a, bell: b}"),
      ElementsAre("1:34: 'bell' has no effect without 'code'; add 'code', or leave it out"));
  EXPECT_THAT(mistakes_in("years:\n"),
              ElementsAre("1:1: 'years' has no value; leave it out, or write a list"));
  EXPECT_THAT(mistakes_in("years: [~]\n"),
              ElementsAre("1:9: an item of 'years' has no value; leave it out, or write a number"));
  EXPECT_THAT(mistakes_in("doors: []\n"),
              ElementsAre("1:8: the list 'doors' is empty; leave the key out, or add an item"));
}

TEST(Grammar, SaysWhatAValueMustBe) {
  EXPECT_THAT(mistakes_in("years: 1990\n"),
              ElementsAre("1:8: 'years' cannot be a single value; write a list"));
  EXPECT_THAT(mistakes_in("- a\n"),
              ElementsAre("1:1: 'the file' cannot be a list; write a map of keys and values"));
  EXPECT_THAT(mistakes_in("doors: {height: 1, key: [a]}"),
              ElementsAre("1:25: 'key' cannot be a list; write text"));
  EXPECT_THAT(mistakes_in("doors: {height: 1, key: a, width: 3}"),
              ElementsAre("1:28: unknown key 'width' in door; all doors are equally wide"));
}

// A key that was renamed: its old name is not read, and its new one is told, not missed.
const Section& attic() {
  static const Section kAttic{
      .name = "attic",
      .meaning = "Nobody tidies it.",
      .keys = {{.name = "things", .shape = anything(), .meaning = "Whatever was left there."}}};
  return kAttic;
}

TEST(Grammar, LooksAtNoneOfAnything) {
  for (const char* value : {"", " 7", " [a, {b: c}, []]", " {d: {e: }}"}) {
    Diagnostics diagnostics;
    const auto document = parse_document(fmt::format("things:{}\n", value), "f", diagnostics);
    ASSERT_TRUE(document);
    (void)check(document->root, map_of(attic), "the attic", diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  }
  EXPECT_THAT(reference_markdown(map_of(attic)), HasSubstr("| `things` | anything |"));
  EXPECT_THAT(json_schema(map_of(attic), {}), HasSubstr("\"things\":{"));
}

TEST(Grammar, NamesTheNewNameOfAKeyThatWasRenamed) {
  EXPECT_THAT(mistakes_in("doors: {tallness: 200, key: a}"),
              ElementsAre("1:9: unknown key 'tallness' in door; it is called 'height' now"));
  EXPECT_THAT(mistakes_in("doors: {size: 200, key: a}"),
              ElementsAre("1:9: unknown key 'size' in door; it is called 'height' now"));
}

TEST(Grammar, TakesDecimalsOfThreeDigitsBehindThePoint) {
  const auto told = [](const std::string& weight) {
    const auto mistakes = mistakes_in("doors: {height: 1, key: a, weight: " + weight + "}");
    return mistakes.size() > 1 ? "several mistakes" : mistakes.empty() ? "" : mistakes.front();
  };
  for (const char* good : {"1", "0.001", "0.25", "1.5", "1.500"}) EXPECT_EQ(told(good), "") << good;
  for (const char* far : {"0", "0.000", "1.501", "2"}) {
    EXPECT_EQ(told(far), fmt::format("1:36: weight: {} is out of range; use 0.001 to 1.5", far));
  }
  for (const char* wrong : {"1.2345", ".5", "1.", "1e2", "+1", "-1", "1_0", "light"}) {
    EXPECT_THAT(told(wrong), HasSubstr("is not a decimal number")) << wrong;
  }
  EXPECT_EQ(told("1.5t"), "1:36: weight: '1.5t' is not a decimal number; write 1.5");
  EXPECT_THAT(told("'1'"), HasSubstr("write the number without quotes"));
}

TEST(Grammar, RefusesWhatReadersOfYamlDisagreeAbout) {
  const auto number_mistake = [](const std::string& text) {
    const auto mistakes = mistakes_in("years: [" + text + "]");
    return mistakes.size() == 1 ? mistakes.front() : "not one mistake";
  };
  EXPECT_THAT(number_mistake("010"), HasSubstr("begins with 0"));
  EXPECT_THAT(number_mistake("1_000"), HasSubstr("write 1000"));
  for (const char* odd : {"0x10", "1e3", ".5", "1.0", "1:30", "+5", "0o17"}) {
    EXPECT_THAT(number_mistake(odd), HasSubstr("is not a whole number in digits")) << odd;
  }
  EXPECT_THAT(number_mistake("'10'"), HasSubstr("write the number without quotes"));
  EXPECT_THAT(number_mistake("ten"), HasSubstr("is not a whole number"));
  EXPECT_THAT(number_mistake("-1"), HasSubstr("-1 is out of range"));
  EXPECT_THAT(number_mistake("99999999999999999999"), HasSubstr("is out of range"));

  for (const char* word : {"no", "NO", "yes", "on", "off", "y", "N", "true", "False", "010", "1.0",
                           "1e3", "1:30", "1_000", "7", "0x1f", ".inf"}) {
    EXPECT_THAT(mistakes_in(std::string{"doors: "} + word),
                ElementsAre(HasSubstr("put it in quotes")))
        << word;
    EXPECT_THAT(mistakes_in(std::string{"doors: '"} + word + "'"), IsEmpty()) << word;
  }
  for (const char* word : {"yes", "on", "True", "1", "'true'"}) {
    EXPECT_THAT(mistakes_in(std::string{"doors: {height: 1, key: a, locked: "} + word + "}"),
                ElementsAre(HasSubstr("write true or false")))
        << word;
  }
}

TEST(Plain, TextIsNoNumber) {
  for (const char* text : {"10.0.0.1", "5xx", "500-599", "100/1s", "a1", "-", "1.2.3", "+", "e3",
                           "::1", "12:ab", "_1", "nope", "5%", "1h30m", "."}) {
    EXPECT_EQ(classify_plain(text), Plain::text) << text;
  }
  EXPECT_EQ(classify_plain("0"), Plain::integer);
  EXPECT_EQ(classify_plain("-12"), Plain::integer);
}

TEST(Reader, GivesOnlyWhatIsWellFormed) {
  Diagnostics diagnostics;
  const auto document =
      parse_document("{height: 2000, key: ann, locked: true, opens: soon}", "", diagnostics);
  const Checked checked = check(document->root, map_of(door), "it", diagnostics);
  EXPECT_EQ(diagnostics.errors(), 2U);
  const Reader reader{document->root, door(), checked};
  EXPECT_FALSE(reader.number("height"));
  EXPECT_FALSE(reader.has("opens"));
  EXPECT_EQ(reader.text("key"), "ann");
  EXPECT_TRUE(reader.flag("locked", false));
  EXPECT_EQ(reader.text("colour", "none"), "none");
}

TEST(Reader, TakesWhatIsThereAndLeavesTheRest) {
  Diagnostics diagnostics;
  const auto document = parse_document("{height: 200, key: ann, opens: soon}", "", diagnostics);
  const Checked checked = check(document->root, map_of(door), "it", diagnostics);
  const Reader reader{document->root, door(), checked};
  std::uint16_t height = 1;
  Nanos opens{7};
  reader.take("height", height);
  reader.take("opens", opens);
  EXPECT_EQ(height, 200U);
  EXPECT_EQ(opens, Nanos{7}) << "it is no duration";
}

TEST(Reader, TakesOneValueForAListOfOne) {
  Diagnostics diagnostics;
  const auto document = parse_document("years: [1, x, 3]\ndoors: front\n", "", diagnostics);
  const Checked checked = check(document->root, map_of(house), "it", diagnostics);
  const Reader reader{document->root, house(), checked};
  const auto years = reader.list("years");
  ASSERT_EQ(years.size(), 2U) << "x is no number";
  EXPECT_EQ(number_of(*years[1]), 3U);
  EXPECT_EQ(reader.list("doors").size(), 1U);
}

TEST(Reader, TellsWhichKeysWereAskedFor) {
  Diagnostics diagnostics;
  const auto document = parse_document("{}", "", diagnostics);
  Checked checked = check(document->root, map_of(house), "it", diagnostics);
  std::set<std::string> asked;
  checked.watch(&asked);
  (void)Reader{document->root, house(), checked}.has("doors");
  EXPECT_THAT(asked, ElementsAre("house.doors"));
}

TEST(Schema, DescribesEveryForm) {
  const std::string schema = json_schema(map_of(house), {.id = "urn:x", .title = "House"});
  EXPECT_THAT(schema, HasSubstr(R"("$schema":"https://json-schema.org/draft/2020-12/schema")"));
  EXPECT_THAT(schema, HasSubstr(R"("$ref":"#/$defs/house")"));
  EXPECT_THAT(schema, HasSubstr(R"({"type":"integer","minimum":1,"maximum":9999})"));
  EXPECT_THAT(schema, HasSubstr(R"("enum":["red","green"])"));
  EXPECT_THAT(schema, HasSubstr(R"("required":["height"])"));
  EXPECT_THAT(schema, HasSubstr(R"("oneOf":[{"required":["key"]},{"required":["code"]}])"));
  EXPECT_THAT(schema, HasSubstr(R"("dependentRequired":{"bell":["code"]})"));
  EXPECT_THAT(schema, HasSubstr(R"("additionalProperties":false)"));
  EXPECT_THAT(schema, HasSubstr(R"("default":false)"));
  EXPECT_THAT(schema, HasSubstr(R"("examples":[200])"));
  EXPECT_THAT(schema, HasSubstr(R"("type":"number","minimum":0.001,"maximum":1.5)"));
  EXPECT_THAT(schema, HasSubstr(R"("examples":[0.25,1])"));
  EXPECT_THAT(schema, HasSubstr(R"("pattern":"^[0-9a-z]+$")"));
}

TEST(Reference, HasATableForEverySection) {
  const std::string text = reference_markdown(map_of(house));
  EXPECT_THAT(
      text, HasSubstr("## house\n\nWhere somebody lives.\n\n| key | value | default | meaning |"));
  EXPECT_THAT(
      text, HasSubstr("| `doors` | text, [door](#door), or list of [door](#door) |  | Ways in. |"));
  EXPECT_THAT(text, HasSubstr("## door"));
  EXPECT_THAT(text, HasSubstr("| `height` | number (1 to 300) | required | In centimetres. "
                              "Example: `height: 200`. |"));
  EXPECT_THAT(text, HasSubstr("| `weight` | decimal (0.001 to 1.5) |  | In tonnes. "
                              "Example: `weight: 0.25`, `weight: 1`. |"));
  EXPECT_THAT(text, HasSubstr("Exactly one of `key` and `code`."));
}

}  // namespace
}  // namespace sluice::config
