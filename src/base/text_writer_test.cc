#include "base/text_writer.h"

#include "base/json_escape.h"
#include "base/rfc3339.h"
#include "base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace sluice {
namespace {

using namespace std::chrono_literals;

template <class Write>
std::string written(Write&& write) {
  std::array<char, 256> room;
  TextWriter writer{room};
  write(writer);
  EXPECT_FALSE(writer.is_full());
  return std::string{writer.text()};
}

TEST(TextWriter, PutsNumbersWithAndWithoutZerosInFront) {
  EXPECT_EQ(written([](TextWriter& w) { w.number(0); }), "0");
  EXPECT_EQ(written([](TextWriter& w) { w.number(std::numeric_limits<std::uint64_t>::max()); }),
            "18446744073709551615");
  EXPECT_EQ(written([](TextWriter& w) { w.padded(7, 3); }), "007");
  EXPECT_EQ(written([](TextWriter& w) { w.padded(1234, 3); }), "1234");
  EXPECT_EQ(written([](TextWriter& w) { w.padded(0, 20); }), "00000000000000000000");
}

TEST(TextWriter, PutsAddressesAsTheyPrintThemselves) {
  for (const char* text : {"192.0.2.1", "2001:db8::1", "::", "fe80::1:2:3:4"}) {
    const IpAddress address = IpAddress::parse(text).value();
    EXPECT_EQ(written([&](TextWriter& w) { w.address(address); }), address.text());
  }
}

TEST(TextWriter, PutsTimesOfAccessLogs) {
  const WallTime time = parse_rfc3339("2022-01-20T00:13:05.25Z").value();
  EXPECT_EQ(written([&](TextWriter& w) { write_log_time(w, time); }), "20/Jan/2022:00:13:05 +0000");
  EXPECT_EQ(written([&](TextWriter& w) { write_rfc3339(w, time + 5ns); }),
            "2022-01-20T00:13:05.250000005Z");
}

// Whatever the room, what stands there is a beginning of what was meant, made of whole pieces.
RC_GTEST_PROP(TextWriter, LeavesABeginningOfWhatWasMeant,
              (const std::vector<std::string>& pieces, std::uint8_t room_bytes)) {
  std::string room(room_bytes, '#');
  TextWriter writer{room};
  std::string meant;
  bool fits = true;
  for (const std::string& piece : pieces) {
    writer.put(piece);
    fits = fits && meant.size() + piece.size() <= room.size();
    if (fits) meant += piece;
  }
  RC_ASSERT(writer.text() == meant);
  RC_ASSERT(writer.is_full() == !fits);
}

// Pieces of one call stand together or not at all.
TEST(TextWriter, PutsThePiecesOfOneCallTogether) {
  for (std::size_t size = 0; size <= 6; ++size) {
    std::string room(size, '#');
    TextWriter writer{room};
    writer.put("ab", std::string_view{}, std::string{"cd"}, "e");
    EXPECT_EQ(writer.text(), size >= 5 ? "abcde" : "") << size;
    EXPECT_EQ(writer.is_full(), size < 5) << size;
  }
}

// Digits are written in place: never behind the room, and nothing follows a number without room.
TEST(TextWriter, PutsNumbersWholeOrNotAtAll) {
  for (std::size_t size = 0; size <= 4; ++size) {
    std::string room(6, '#');
    TextWriter writer{std::span{room}.first(size)};
    writer.number(123);
    writer.put('.');
    EXPECT_EQ(writer.text(), size > 3 ? "123." : size == 3 ? "123" : "") << size;
    EXPECT_EQ(writer.is_full(), size <= 3) << size;
    EXPECT_EQ(room.substr(size), std::string(6 - size, '#'));
  }
}

// Steps of eight characters find what one by one finds, at every place of texts of every length.
TEST(JsonEscape, FindsThePlainBeginningInStepsAsOneByOne) {
  for (std::size_t size = 0; size <= 25; ++size) {
    EXPECT_TRUE(is_plain_in_json(std::string(size, 'a'))) << size;
    for (std::size_t place = 0; place < size; ++place) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string text(size, 'a');
        text[place] = static_cast<char>(byte);
        const bool is_plain = is_plain_in_json(static_cast<char>(byte));
        ASSERT_EQ(plain_json_prefix(text), is_plain ? size : place) << size << ' ' << byte;
      }
    }
  }
}

RC_GTEST_PROP(TextWriter, WritesJsonAsTheFunctionThatAllocates, (const std::string& text)) {
  std::string room(6 * text.size() + 2, '#');
  TextWriter writer{room};
  writer.json(text);
  RC_ASSERT(writer.text() == json_string(text));
}

TEST(TextWriter, GoesBackToAnEarlierSize) {
  std::array<char, 4> room;
  TextWriter writer{room};
  writer.put("ab");
  writer.put("too long");
  EXPECT_TRUE(writer.is_full());
  writer.rewind(1);
  writer.put("cde");
  EXPECT_EQ(writer.text(), "acde");
}

}  // namespace
}  // namespace sluice
