// What a simulated Redis stores, and the commands that read and change it: those that the shipped
// functions use, and what tests and nodes need beside them.
//
// Behaves as Redis 7.0 does, for what it knows. A command or an option that it does not know is a
// mistake of the test, not an error of the server: it throws std::logic_error. A function that
// needs another command adds it here, and to redis_proof_test.cc, which compares all of this with a
// real server.
#pragma once

#include "sim/resp.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::sim {

// Commands that lead from one state to the next: what Redis sends to its replicas instead of the
// scripts. Times in them are absolute.
using Effects = std::vector<std::vector<std::string>>;

// One thread.
class RedisData {
 public:
  struct Context {
    std::int64_t now_ms = 0;  // the server's wall clock, rounded down
    bool is_replica = false;  // keys past their end are hidden, and stay until the primary says so
    Effects* effects = nullptr;  // null: not wanted
  };

  enum class Access : std::uint8_t { none, read, write };
  // Of a command; none for one that is not about data, or not known.
  [[nodiscard]] static Access access_of(std::string_view command) noexcept;
  // Whether it is rejected while the memory is used up: all writes but those that free some.
  [[nodiscard]] static bool needs_memory(std::string_view command) noexcept;

  // Whether a known command has as many arguments as it takes.
  [[nodiscard]] static bool has_arity(Words words) noexcept;

  // An error leaves everything as it was.
  Reply execute(Words words, const Context& context);

  // Commands that make this state from an empty one; of keys in their order.
  void describe(const std::function<void(Words)>& tell) const;
  void clear() noexcept { keys_.clear(); }
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  using Hash = std::map<std::string, std::string, std::less<>>;
  struct Value {
    std::variant<std::string, Hash> data;
    std::int64_t ends_ms = -1;  // -1: never
  };
  using Keys = std::map<std::string, Value, std::less<>>;
  struct Call;
  struct Command;
  [[nodiscard]] static const Command* find_command(std::string_view name) noexcept;

  // The key, unless it is past its end.
  Value* find(std::string_view key, const Context& context);
  // The hash, null if there is none; `wrong_type` is set for another type.
  Hash* find_hash(Call& call);

  Reply get(Call& call);
  Reply set(Call& call);
  Reply del(Call& call);
  Reply exists(Call& call);
  Reply type(Call& call);
  Reply pexpire(Call& call);
  Reply pexpireat(Call& call);
  Reply expire_at(Call& call, std::int64_t ends_ms);
  Reply pttl(Call& call);
  Reply pexpiretime(Call& call);
  Reply hget(Call& call);
  Reply hmget(Call& call);
  Reply hset(Call& call);
  Reply hdel(Call& call);
  Reply hlen(Call& call);
  Reply hexists(Call& call);
  Reply hgetall(Call& call);
  Reply dbsize(Call& call);
  Reply flushall(Call& call);

  Keys keys_;
};

}  // namespace sluice::sim
