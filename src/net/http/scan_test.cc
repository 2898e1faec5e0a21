#include "net/http/scan.h"

#include "support/property.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::net {
namespace {

// Every byte value at every place of two blocks, behind bytes that mean nothing.
template <class Check>
void for_each_byte_and_place(const Check& check) {
  for (const std::size_t size : {1U, 7U, 8U, 9U, 15U, 16U, 17U, 33U, 40U}) {
    for (std::size_t place = 0; place < size; ++place) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string text(size, 'a');
        text[place] = static_cast<char>(byte);
        check(text);
      }
    }
  }
}

TEST(Scan, FindsControlsInStepsAsItFindsThemOneByOne) {
  for_each_byte_and_place([](const std::string& text) {
    const std::size_t expected = find_control_bytewise(text, 0);
    ASSERT_EQ(find_control(text), expected) << text;
    ASSERT_EQ(find_control_wordwise(text, 0), expected) << text;
  });
}

TEST(Scan, FindsTheEndOfTokensAndTargetsInStepsAsOneByOne) {
  for_each_byte_and_place([](const std::string& text) {
    ASSERT_EQ(find_not_token(text), find_not_a(token_character, text)) << text;
    ASSERT_EQ(find_not_target(text), find_not_a(target_character, text)) << text;
  });
}

// One mark beside another: a step must not overlook what follows a tab or a high byte.
TEST(Scan, FindsTheFirstOfManyFromAnyPlace) {
  testing::check_property(2000, [] {
    const auto text = *rc::gen::container<std::string>(
        rc::gen::element('a', '\t', ' ', '\x7f', '\x80', '\xff', '\x1f', '\r', '\n', '\0', '#'));
    const auto from = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    RC_ASSERT(find_control(text, from) == find_control_bytewise(text, from));
    RC_ASSERT(find_control_wordwise(text, from) == find_control_bytewise(text, from));
    RC_ASSERT(find_not_token(text, from) == find_not_a(token_character, text, from));
    RC_ASSERT(find_not_target(text, from) == find_not_a(target_character, text, from));
  });
}

TEST(Scan, LetsTabsAndHighBytesStandInValues) {
  EXPECT_EQ(find_control("a\tb \x80\xff~"), 7U);
  EXPECT_EQ(find_control("a\tb\x7f"), 3U);
  EXPECT_EQ(find_control(std::string_view{"a\0", 2}), 1U);
}

}  // namespace
}  // namespace sluice::net
