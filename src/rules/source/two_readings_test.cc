#include "rules/source/two_readings.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::rules {
namespace {

using Text = TwoReadings<std::string>;

TEST(TwoReadings, AChangeCountsWhenItIsSeenTwice) {
  Text text{"one"};
  EXPECT_EQ(text.look("one"), Text::Found::nothing);
  EXPECT_EQ(text.look("tw"), Text::Found::unsettled);
  EXPECT_EQ(text.look("two"), Text::Found::unsettled) << "it is still being written";
  EXPECT_EQ(text.look("two"), Text::Found::change);
  EXPECT_EQ(text.look("two"), Text::Found::nothing) << "it is known by now";
}

TEST(TwoReadings, AChangeThatIsTakenBackIsNone) {
  Text text{"one"};
  EXPECT_EQ(text.look("two"), Text::Found::unsettled);
  EXPECT_EQ(text.look("one"), Text::Found::nothing);
  EXPECT_EQ(text.look("two"), Text::Found::unsettled) << "seen once since it was \"one\"";
}

TEST(TwoReadings, AWriterThatNeverPausesIsNotWaitedForForEver) {
  Text text{"0", 4};
  EXPECT_EQ(text.look("1"), Text::Found::unsettled);
  EXPECT_EQ(text.look("2"), Text::Found::unsettled);
  EXPECT_EQ(text.look("3"), Text::Found::unsettled);
  EXPECT_EQ(text.look("4"), Text::Found::change);
  EXPECT_EQ(text.look("5"), Text::Found::unsettled);
}

}  // namespace
}  // namespace sluice::rules
