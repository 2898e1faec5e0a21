// Parses status line and headers of HTTP/1.1, as strictly as those of a request, in the same way.
//
// The framing of the body depends on the method of the request, which the parser is given. Every
// fault has the status 502, for the client of the proxy. One thread.
#pragma once

#include "net/http/fault.h"
#include "net/http/head_progress.h"
#include "net/http/message.h"

#include <span>
#include <string_view>

namespace sluice::net {

class ResponseParser {
 public:
  explicit ResponseParser(std::span<HeaderView> headers, const HeadLimits& limits = {}) noexcept
      : headers_(headers), limits_(limits) {}

  // For the response to the next request.
  void expect_answer_to(std::string_view method) noexcept;

  // As RequestParser::parse.
  [[nodiscard]] HeadParse parse(std::string_view bytes) noexcept;

  // When complete. After a status of 1xx other than 101 another response follows: reset, and go on.
  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }

  // For the next response to the same request.
  void reset() noexcept { progress_.bytes_begin = nullptr; }

 private:
  [[nodiscard]] HeadParse parse_further(std::string_view bytes) noexcept;
  [[nodiscard]] HttpFault conclude() noexcept;
  [[nodiscard]] HttpFault decide_body() noexcept;

  std::span<HeaderView> headers_;
  HeadLimits limits_;
  bool answers_head_ = false;
  HeadProgress progress_;
  ResponseHead head_;
};

}  // namespace sluice::net
