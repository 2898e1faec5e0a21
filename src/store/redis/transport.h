// What carries commands to Redis and replies back. The seam at which the simulator takes over from
// sockets.
//
// Each command that was taken is reported once: with its reply, or with `disconnected`, after which
// its outcome stays unknown. Commands about one key go over one connection, in the order in which
// they were sent, and their replies come in that order; after a loss of that connection, all
// commands that were on it are reported before another one about the key is taken. Replies of
// different connections come in any order.
//
// One thread.
#pragma once

#include "base/digest.h"
#include <sluice/time.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::store {

struct TransportReply {
  enum class Kind : std::uint8_t {
    numbers,  // a list of integers
    text,
    error,
    disconnected,
    other,  // some other reply
  };
  std::uint64_t tag = 0;  // of the command
  Kind kind = Kind::other;
  // Until the next call of the transport.
  std::span<const std::int64_t> numbers;
  std::string_view text;  // of a text or an error
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // The part of the keys that fails as a whole; below Authority::kShardsMax.
  [[nodiscard]] virtual std::uint32_t shard_of(const Digest& /*key*/) const noexcept { return 0; }

  // A command, to the shard that has this key. The words are copied. False: not taken, because
  // there is no connection, or too much is waiting in it.
  [[nodiscard]] virtual bool send(std::uint64_t tag, const Digest& key,
                                  std::span<const std::string_view> words) noexcept = 0;
  // What was taken since the last time goes out.
  virtual void flush() noexcept {}
  // The next report. False: there is none at the moment.
  [[nodiscard]] virtual bool receive(TransportReply& reply) noexcept = 0;

  // Blocks until there may be a report, or it is `until`. Says what time it is then.
  [[nodiscard]] virtual Now wait(MonoTime until) noexcept = 0;
};

}  // namespace sluice::store
