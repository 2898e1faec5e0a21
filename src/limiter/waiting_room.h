// Queues of callers that wait for a key: only the first of a queue checks the limiter, the others
// follow in their order.
//
// Thread-safe. Allocates: its callers wait anyway.
#pragma once

#include "base/digest.h"

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>

namespace sluice {

class WaitingRoom {
 public:
  using Number = std::uint64_t;  // names a waiting caller
  using Turn = std::function<void()>;

  [[nodiscard]] Number take_number();

  // True if the line was empty: then it is one's turn already. Otherwise `turn` is called, once and
  // by whichever thread leaves, when everybody before has left.
  [[nodiscard]] bool join(const Digest& key, Number number, Turn turn);

  void leave(const Digest& key, Number number);

  [[nodiscard]] bool is_empty(const Digest& key) const;

 private:
  struct Waiter {
    Number number = 0;
    Turn turn;
  };
  struct Hash {
    std::size_t operator()(const Digest& key) const noexcept { return key.low; }
  };

  mutable std::mutex mutex_;
  Number last_ = 0;  // guarded by mutex_, as all below
  std::unordered_map<Digest, std::list<Waiter>, Hash> lines_;
};

}  // namespace sluice
