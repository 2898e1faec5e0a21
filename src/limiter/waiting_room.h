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
  using Number = std::uint64_t;  // identifies a waiting caller
  using Turn = std::function<void()>;

  [[nodiscard]] Number take_number();

  // True if the queue was empty: then it is the caller's turn already. Otherwise the leaving thread
  // calls `turn`, once, when all callers before have left.
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
