// The HTTP statuses that the engine decides on.
#pragma once

#include <cstdint>

namespace sluice::engine {

inline constexpr std::uint16_t kOk = 200;
inline constexpr std::uint16_t kBadRequest = 400;
inline constexpr std::uint16_t kUnauthorized = 401;
inline constexpr std::uint16_t kForbidden = 403;
inline constexpr std::uint16_t kUnavailable = 503;

}  // namespace sluice::engine
