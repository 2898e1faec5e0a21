// Closes connections without losing the last answer.
//
// When a socket is closed with unread bytes, as in the middle of a rejected upload, the system
// sends a reset, which may destroy the response before the client has read it. So the writing side
// is closed first, and further bytes are read and discarded, for a bounded time, up to a bounded
// amount, on a bounded number of connections; the oldest is closed first. One thread.
#pragma once

#include "net/event_loop.h"
#include "net/stream.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>

namespace sluice::net {

struct LingeringLimits {
  Nanos time{std::chrono::seconds{5}};  // from the farewell on
  std::size_t bytes = std::size_t{8} << 20U;
  std::size_t connections = 256;
};

class LingeringCloser {
 public:
  explicit LingeringCloser(EventLoop& loop, const LingeringLimits& limits = {});
  LingeringCloser(const LingeringCloser&) = delete;
  LingeringCloser& operator=(const LingeringCloser&) = delete;
  ~LingeringCloser();  // closes what is left

  // Says farewell; the stream is closed for its owner.
  void close(Stream& stream);

  [[nodiscard]] std::size_t size() const noexcept;
  // Connections that were cut off by one of the limits.
  [[nodiscard]] std::uint64_t cut_off() const noexcept { return cut_off_; }

 private:
  class Connection;
  void end(Connection& connection) noexcept;
  void cut(Connection& connection) noexcept;

  EventLoop& loop_;
  LingeringLimits limits_;
  std::list<Connection> connections_;  // oldest first
  std::uint64_t cut_off_ = 0;
};

}  // namespace sluice::net
