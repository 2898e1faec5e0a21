#include "net/http/http_date.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace sluice::net {
namespace {

using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

constexpr std::string_view kWeekdays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// All names have three letters.
constexpr std::string_view name_at(std::string_view names, std::size_t place) noexcept {
  return names.substr(place * 3, 3);
}

constexpr sys_seconds kFirst = sys_days{year{0} / 1 / 1};
constexpr sys_seconds kLast = sys_days{year{10000} / 1 / 1} - std::chrono::seconds{1};

// Fills a text from the left.
class Pen {
 public:
  explicit Pen(char* at) noexcept : at_(at) {}

  void text(std::string_view text) noexcept {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void two_digits(unsigned number) noexcept {
    *at_++ = static_cast<char>('0' + number / 10);
    *at_++ = static_cast<char>('0' + number % 10);
  }

 private:
  char* at_;
};

}  // namespace

std::string_view format_http_date(std::int64_t unix_seconds,
                                  std::span<char, kHttpDateBytes> into) noexcept {
  const sys_seconds time =
      std::clamp(sys_seconds{std::chrono::seconds{unix_seconds}}, kFirst, kLast);
  const sys_days day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  const auto year_number = static_cast<unsigned>(static_cast<int>(date.year()));
  Pen pen{into.data()};
  pen.text(name_at(kWeekdays, std::chrono::weekday{day}.c_encoding()));
  pen.text(", ");
  pen.two_digits(static_cast<unsigned>(date.day()));
  pen.text(" ");
  pen.text(name_at(kMonths, static_cast<unsigned>(date.month()) - 1));
  pen.text(" ");
  pen.two_digits(year_number / 100);
  pen.two_digits(year_number % 100);
  pen.text(" ");
  pen.two_digits(static_cast<unsigned>(clock.hours().count()));
  pen.text(":");
  pen.two_digits(static_cast<unsigned>(clock.minutes().count()));
  pen.text(":");
  pen.two_digits(static_cast<unsigned>(clock.seconds().count()));
  pen.text(" GMT");
  return {into.data(), into.size()};
}

}  // namespace sluice::net
