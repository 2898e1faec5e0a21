// The head of an HTTP/1.1 request, read strictly.
//
// The parser works in place on the caller's bytes and fills the caller's headers: no copies, no
// allocation. While a head is incomplete it is called again with all bytes from the head's first
// on; bytes that were looked at are not looked at again, unless they were moved, which starts the
// parse anew. Views in the head point into the bytes of the call that completed it.
//
// Refused is whatever two readers could understand differently, and the answer on some bytes is
// the same in whatever pieces they came. One thread.
#pragma once

#include "net/http/fault.h"
#include "net/http/head_progress.h"
#include "net/http/message.h"

#include <span>
#include <string_view>

namespace sluice::net {

class RequestParser {
 public:
  // The headers are the caller's to reuse once it is done with the head.
  explicit RequestParser(std::span<HeaderView> headers, const HeadLimits& limits = {}) noexcept
      : headers_(headers), limits_(limits) {}

  // Statuses of faults: 400, 414, 417, 431, 501, 505. An empty line before the request is let pass.
  [[nodiscard]] HeadParse parse(std::string_view bytes) noexcept;

  // When complete.
  [[nodiscard]] const RequestHead& head() const noexcept { return head_; }

  // For the next request.
  void reset() noexcept { progress_.bytes_begin = nullptr; }

 private:
  [[nodiscard]] HeadParse parse_further(std::string_view bytes) noexcept;
  [[nodiscard]] HttpFault conclude() noexcept;

  std::span<HeaderView> headers_;
  HeadLimits limits_;
  HeadProgress progress_;
  RequestHead head_;
};

}  // namespace sluice::net
