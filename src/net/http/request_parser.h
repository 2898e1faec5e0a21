// Parses request line and headers of HTTP/1.1, strictly.
//
// The parser works in place on the caller's bytes and fills the caller's headers: no copies, no
// allocation. While the headers are incomplete it is called again with all bytes from the first of
// the request on; it does not look at bytes twice, unless they were moved, which restarts the
// parse. Views point into the bytes of the call that completed it.
//
// Ambiguous requests are rejected, and the result for some bytes does not depend on the pieces in
// which they arrived. One thread.
#pragma once

#include "net/http/fault.h"
#include "net/http/head_progress.h"
#include "net/http/message.h"

#include <span>
#include <string_view>

namespace sluice::net {

class RequestParser {
 public:
  // The caller may reuse the headers once it is done with the message.
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
