// A simulated Redis 7.0 that executes the shipped Lua.
//
// A function of its state, the command and its own clock: no time passes in here, and nothing is
// sent. redis_node.h gives it a process, a clock and a place in the network.
//
// A call is atomic. What it wrote is told as one transaction: commands with absolute times, not the
// script. A replica applies them and answers reads; told to, it becomes the primary, with what has
// reached it.
#pragma once

#include "sim/redis_data.h"
#include "sim/redis_lua.h"
#include "sim/resp.h"
#include <sluice/time.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::sim {

// One thread.
class RedisServer final : private ScriptHost {
 public:
  // The id is what HELLO tells.
  explicit RedisServer(std::uint64_t id = 1) : id_(id), lua_(*this) {}

  // Commands: those of redis_data.cc, PING, ECHO, TIME, ROLE, HELLO, FUNCTION LOAD, FCALL,
  // FCALL_RO, SCRIPT LOAD, EVAL and EVALSHA. Others throw. `wall` is the server's clock.
  Reply handle(Words command, WallTime wall);

  // ---- replication ----------------------------------------------------------------------------

  using Transaction = std::function<void(const Effects&)>;
  // Called at the end of each command that wrote.
  void on_transaction(Transaction tell) { tell_ = std::move(tell); }
  // The commands that make this server's data and libraries from nothing, for a full resync.
  [[nodiscard]] Effects snapshot() const;
  // What the primary told; whatever the role.
  void apply(const Effects& effects);

  enum class Role : std::uint8_t { primary, replica };
  void set_role(Role role) noexcept { role_ = role; }
  [[nodiscard]] Role role() const noexcept { return role_; }
  // Commands written or applied, as ROLE tells it.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  void set_offset(std::uint64_t offset) noexcept { offset_ = offset; }

  // ---- faults ---------------------------------------------------------------------------------

  // A restart without data: also functions are gone.
  void clear();
  // A restart from disk: scripts are gone.
  void restart_with_data() { lua_.clear_scripts(); }
  // As if maxmemory was reached, with the policy noeviction.
  void set_memory_full(bool full) noexcept { memory_full_ = full; }
  // As min-replicas-to-write without enough replicas.
  void set_replicas_missing(bool missing) noexcept { replicas_missing_ = missing; }
  // As while a dataset is read: LOADING to everything.
  void set_loading(bool loading) noexcept { loading_ = loading; }

  [[nodiscard]] const RedisData& data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }

 private:
  Reply call(Words words) override;  // redis.call()
  Reply dispatch(Words words);
  Reply on_data(Words words);
  Reply time() const;
  Reply role_reply() const;
  Reply hello(Words words) const;
  Reply function_command(Words words);
  Reply script_command(Words words);
  Reply fcall(Words words, bool read_only);
  Reply eval(Words words, bool by_sha);
  Reply run(const RedisLua::Function& function, Words words);
  [[nodiscard]] RedisData::Context context();
  [[nodiscard]] std::string_view write_rejection(bool needs_memory) const noexcept;

  std::uint64_t id_;
  RedisData data_;
  RedisLua lua_;
  Transaction tell_;
  Effects effects_;  // of the command in progress
  std::int64_t now_us_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t calls_ = 0;
  Role role_ = Role::primary;
  bool memory_full_ = false;
  bool replicas_missing_ = false;
  bool loading_ = false;
  bool script_may_write_ = false;
  bool in_eval_ = false;
};

}  // namespace sluice::sim
