#include "net/http/http_date.h"

#include "net/http/status_text.h"
#include "support/property.h"

#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <limits>
#include <string>

namespace sluice::net {
namespace {

std::string date(std::int64_t seconds) {
  std::array<char, kHttpDateBytes> text;
  return std::string{format_http_date(seconds, text)};
}

TEST(HttpDate, IsThatOfTheStandard) {
  EXPECT_EQ(date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(date(951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
}

TEST(HttpDate, AgreesWithTheLibraryOfC) {
  testing::check_property(500, [] {
    const auto seconds = *rc::gen::inRange<std::time_t>(-10'000'000'000, 200'000'000'000);
    std::tm parts{};
    RC_ASSERT(gmtime_r(&seconds, &parts) != nullptr);
    std::array<char, 64> text;
    const std::size_t size =
        std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    RC_ASSERT(date(seconds) == std::string(text.data(), size));
  });
}

TEST(HttpDate, StaysWithinFourDigitsOfAYear) {
  EXPECT_EQ(date(std::numeric_limits<std::int64_t>::max()), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(date(std::numeric_limits<std::int64_t>::min()), "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(ReasonPhrase, IsThatOfTheStandardOrNothing) {
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(429), "Too Many Requests");
  EXPECT_EQ(reason_phrase(299), "");
  EXPECT_EQ(reason_phrase(0), "");
}

}  // namespace
}  // namespace sluice::net
