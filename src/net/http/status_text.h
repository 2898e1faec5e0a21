// What the statuses of HTTP are called.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::net {

// The reason phrase of RFC 9110 and its relatives; empty for a status that has none there.
[[nodiscard]] std::string_view reason_phrase(std::uint16_t status) noexcept;

}  // namespace sluice::net
