// What is wrong with a message, and with which status to answer it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::net {

struct HttpFault {
  std::uint16_t status = 0;  // 0: nothing is wrong
  const char* why = "";      // static text, for logs and for the body of the response

  [[nodiscard]] explicit operator bool() const noexcept { return status != 0; }
};

inline constexpr HttpFault kNoFault{};

[[nodiscard]] constexpr HttpFault bad_request(const char* why) noexcept { return {400, why}; }

// After `complete` and `fault` the result stays the same until the parser is reset.
struct HeadParse {
  enum class State : std::uint8_t { need_more, complete, fault };
  State state = State::need_more;
  std::size_t head_bytes = 0;  // when complete: the body begins behind them
  HttpFault fault;             // when faulty
};

struct HeadLimits {
  std::size_t start_line_bytes = 8192;  // with its end; beyond: 414
  std::size_t header_bytes = 32768;     // all lines with their ends and the empty one; beyond: 431
  std::size_t headers = 128;            // also no more than the caller has room for; beyond: 431
};

}  // namespace sluice::net
