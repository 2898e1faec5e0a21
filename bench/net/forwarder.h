// The least that a gateway does with a request: take it from a client, give it to an upstream, and
// the same with the answer. Sizes are fixed, nothing is parsed; each client has its own connection
// to the upstream, and all of them stay open.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::bench {

inline constexpr std::size_t kRequestBytes = 300;
inline constexpr std::size_t kAnswerBytes = 1200;

struct ForwarderWish {
  int listener = -1;                // nonblocking
  std::uint16_t upstream_port = 0;  // on 127.0.0.1
  bool timers = false;              // each request puts a deadline of its connection off
};

// Both run in the calling thread until the process ends.
[[noreturn]] void forward_with_sluice(ForwarderWish wish);
[[noreturn]] void forward_with_asio(ForwarderWish wish);

// Of the Boost that it was compiled with: 1_74.
[[nodiscard]] const char* boost_version() noexcept;

}  // namespace sluice::bench
