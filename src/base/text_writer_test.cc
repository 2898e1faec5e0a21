#include "base/text_writer.h"

#include "base/rfc3339.h"
#include "base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>
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
