// The first line of a request, complete and without its end. Pure; no allocation.
#pragma once

#include "net/http/fault.h"
#include "net/http/message.h"

#include <string_view>

namespace sluice::net {

// Fills method, target, path_and_query, version, and the host if the target names one.
[[nodiscard]] HttpFault parse_request_line(std::string_view line, RequestHead& head) noexcept;

// The fault of an overlong request line, by its beginning.
[[nodiscard]] HttpFault long_request_line(std::string_view beginning) noexcept;

}  // namespace sluice::net
