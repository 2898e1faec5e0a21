// A request of an operator, and the response.
#pragma once

#include "net/http/http_response.h"
#include "net/http/server/http_request.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::admin {

using Request = net::HttpRequest;
using Reply = net::HttpResponse;

[[nodiscard]] Reply plain(std::string body);
[[nodiscard]] Reply json(std::string body);
// A problem document (RFC 9457).
[[nodiscard]] Reply problem(std::uint16_t status, std::string_view detail);

}  // namespace sluice::admin
