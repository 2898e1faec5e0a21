// Where the parts of a call of the functions are: FCALL NAME 1 KEY OPERATION SESSION SEQUENCE, then
// a record for each limit. The top of store/redis/functions/main.lua explains them.
#pragma once

#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::sim {

inline constexpr std::size_t kKeyWord = 3;
inline constexpr std::size_t kOperationWord = 4;
inline constexpr std::size_t kSessionWord = 5;
inline constexpr std::size_t kSequenceWord = 6;
inline constexpr std::size_t kRecords = 7;

inline constexpr std::size_t kWordsOfRecord = 6;  // of checks and of refunds
inline constexpr std::size_t kCostWord = 3;       // of a check
inline constexpr std::size_t kAmountWord = 1;     // of a refund
inline constexpr std::size_t kEditionWord = 5;

// A reply is a status, the server's time, and so many numbers for each limit.
inline constexpr std::size_t kAnswers = 2;
inline constexpr std::size_t kNumbersOfAnswer = 9;
inline constexpr std::size_t kRemaining = 1;
inline constexpr std::size_t kReset = 2;
inline constexpr std::size_t kRetry = 3;
inline constexpr std::size_t kCharged = 7;
inline constexpr std::size_t kEdition = 8;

template <class Number>
[[nodiscard]] Number number_of(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number, base).ptr != end) {
    throw std::logic_error{"not a number: " + std::string{text}};
  }
  return number;
}

}  // namespace sluice::sim
