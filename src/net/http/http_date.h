// The text of a Date header, which changes once a second: callers keep it for that long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::net {

inline constexpr std::size_t kHttpDateBytes = 29;

// "Sun, 06 Nov 1994 08:49:37 GMT", from seconds since 1970. The years are 0 to 9999; seconds
// outside give the nearest date inside. No allocation.
std::string_view format_http_date(std::int64_t unix_seconds,
                                  std::span<char, kHttpDateBytes> into) noexcept;

}  // namespace sluice::net
