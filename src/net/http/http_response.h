// A response as owned text.
//
// For code that may allocate: the server beside the proxy path, and the client. The proxy path
// passes views on and never holds a response.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  std::uint16_t status = 200;
  HttpHeaders headers;
  std::string body;

  // The value of the first header of that name, in any case; empty if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
};

[[nodiscard]] HttpResponse text_response(std::uint16_t status, std::string body);

// Whether a message with these headers carries the given one, in any case.
[[nodiscard]] bool has_header(const HttpHeaders& headers, std::string_view name) noexcept;

// Whether a header frames the message or is hop-by-hop, so that only the writer of the message may
// set it. False also for text that is no name of a header.
[[nodiscard]] bool is_stated_by_writer(std::string_view name) noexcept;

}  // namespace sluice::net
