// Why no connection to a server could begin, if the server is not to blame: this machine has too
// little of something. Pure.
#pragma once

#include "net/io_result.h"
#include "net/socket_address.h"

#include <cstdint>

namespace sluice::gateway {

enum class LocalExhaustion : std::uint8_t {
  nothing,
  descriptors,
  memory,
  ports  // to that address: others may have some
};

[[nodiscard]] LocalExhaustion local_exhaustion(const net::IoFailure& why,
                                               const net::SocketAddress& to) noexcept;

// The message for clients and operators.
[[nodiscard]] const char* text_of(LocalExhaustion lack) noexcept;

}  // namespace sluice::gateway
