#include "base/rfc3339.h"

#include "base/text.h"

#include <date/date.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>

namespace sluice {
namespace {

constexpr std::string_view kTimeRemedy = "write an RFC 3339 time, as in 2022-01-20T00:13:05Z";

// Reads from the front of a text and remembers whether everything was as expected.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : rest_(text) {}

  int digits(std::size_t count) noexcept {
    if (rest_.size() < count) {
      good_ = false;
      return 0;
    }
    int number = 0;
    for (const char c : rest_.substr(0, count)) {
      good_ = good_ && is_digit(c);
      number = number * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return good_ ? number : 0;
  }

  // Takes one of the given characters and says which; 0 when the next one is none of them.
  char one_of(std::string_view wanted) noexcept {
    if (rest_.empty() || wanted.find(rest_.front()) == std::string_view::npos) return 0;
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }

  void expect(std::string_view wanted) noexcept { good_ = one_of(wanted) != 0 && good_; }

  std::string_view all_digits() noexcept {
    std::size_t count = 0;
    while (count < rest_.size() && is_digit(rest_[count])) ++count;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

// Digits after the point, as nanoseconds; nothing when they are finer than that.
std::optional<Nanos> fraction(std::string_view digits) noexcept {
  std::int64_t nanos = 0;
  std::int64_t scale = 100'000'000;
  for (const char c : digits) {
    if (scale == 0 && c != '0') return std::nullopt;
    nanos += (c - '0') * scale;
    scale /= 10;
  }
  return Nanos{nanos};
}

struct CivilTime {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  std::uint64_t nanos = 0;
};

CivilTime civil_time(WallTime time) noexcept {
  const auto day = date::floor<date::days>(date::sys_time<Nanos>{time.time_since_epoch()});
  const date::year_month_day ymd{day};
  const date::hh_mm_ss<Nanos> clock{time.time_since_epoch() - day.time_since_epoch()};
  return {.year = static_cast<unsigned>(static_cast<int>(ymd.year())),
          .month = static_cast<unsigned>(ymd.month()),
          .day = static_cast<unsigned>(ymd.day()),
          .hour = static_cast<unsigned>(clock.hours().count()),
          .minute = static_cast<unsigned>(clock.minutes().count()),
          .second = static_cast<unsigned>(clock.seconds().count()),
          .nanos = static_cast<std::uint64_t>(clock.subseconds().count())};
}

void write_clock(TextWriter& writer, const CivilTime& civil) noexcept {
  writer.padded(civil.hour, 2);
  writer.put(':');
  writer.padded(civil.minute, 2);
  writer.put(':');
  writer.padded(civil.second, 2);
}

}  // namespace

Parsed<WallTime> parse_rfc3339(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return mistake(fmt::format("{} {}", quoted(text), why), std::string{kTimeRemedy});
  };

  Reader reader{text};
  const int year = reader.digits(4);
  reader.expect("-");
  const int month = reader.digits(2);
  reader.expect("-");
  const int day = reader.digits(2);
  reader.expect("Tt ");
  const int hour = reader.digits(2);
  reader.expect(":");
  const int minute = reader.digits(2);
  reader.expect(":");
  const int second = reader.digits(2);
  std::string_view fraction_digits;
  if (reader.one_of(".") != 0) {
    fraction_digits = reader.all_digits();
    if (fraction_digits.empty()) return wrong("has no digits after the point");
  }
  if (!reader.good()) return wrong("is not a time");
  std::chrono::minutes offset{0};
  const char sign = reader.one_of("Zz+-");
  if (sign == 0) return wrong("lacks its offset from UTC (Z or +01:00)");
  if (sign == '+' || sign == '-') {
    const int offset_hours = reader.digits(2);
    reader.expect(":");
    const int offset_minutes = reader.digits(2);
    if (!reader.good() || offset_hours > 23 || offset_minutes > 59) {
      return wrong("has an offset that is not one");
    }
    offset = std::chrono::hours{offset_hours} + std::chrono::minutes{offset_minutes};
    if (sign == '-') offset = -offset;
  }
  if (!reader.at_end()) return wrong("goes on after the time");

  const date::year_month_day ymd{date::year{year}, date::month{static_cast<unsigned>(month)},
                                 date::day{static_cast<unsigned>(day)}};
  if (!ymd.ok()) return wrong("names a day that does not exist");
  if (hour > 23 || minute > 59 || second > 60) return wrong("names a time that does not exist");
  const std::optional<Nanos> nanos = fraction(fraction_digits);
  if (!nanos) return wrong("is finer than a nanosecond");
  if (year < 1969 || year > 2250) return wrong("is outside 1970 to 2249");

  const std::chrono::seconds seconds = date::sys_days{ymd}.time_since_epoch() +
                                       std::chrono::hours{hour} + std::chrono::minutes{minute} +
                                       std::chrono::seconds{second} - offset;
  const WallTime time{seconds + *nanos};
  if (time < WallTime{} || time >= kWallTimeEnd) return wrong("is outside 1970 to 2249");
  return time;
}

void write_rfc3339(TextWriter& writer, WallTime time) noexcept {
  const CivilTime civil = civil_time(time);
  writer.padded(civil.year, 4);
  writer.put('-');
  writer.padded(civil.month, 2);
  writer.put('-');
  writer.padded(civil.day, 2);
  writer.put('T');
  write_clock(writer, civil);
  if (civil.nanos != 0) {
    unsigned digits = 9;
    std::uint64_t fraction = civil.nanos;
    for (; fraction % 10 == 0; fraction /= 10) --digits;
    writer.put('.');
    writer.padded(fraction, digits);
  }
  writer.put('Z');
}

std::string format_rfc3339(WallTime time) {
  std::array<char, 40> room;
  TextWriter writer{room};
  write_rfc3339(writer, time);
  return std::string{writer.text()};
}

void write_log_time(TextWriter& writer, WallTime time) noexcept {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const CivilTime civil = civil_time(time);
  writer.padded(civil.day, 2);
  writer.put('/');
  writer.put(kMonths.substr(std::size_t{3} * (civil.month - 1), 3));
  writer.put('/');
  writer.padded(civil.year, 4);
  writer.put(':');
  write_clock(writer, civil);
  writer.put(" +0000");
}

}  // namespace sluice
