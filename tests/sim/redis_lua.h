// The Lua of a simulated Redis: function libraries and scripts, run by liblua 5.1 as Redis 7.0 runs
// them by its own copy.
//
// What scripts find is what the shipped ones use: redis.call, error_reply, status_reply and
// register_function, and from Lua's own libraries what is safe and deterministic. Another name is
// an error that says so, as it is in Redis. Conversions are Redis's: a number becomes an integer by
// truncation, an array ends at its first nil, nothing is false.
#pragma once

#include "sim/resp.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct lua_State;

namespace sluice::sim {

// Where redis.call() ends up.
class ScriptHost {
 public:
  ScriptHost() = default;
  ScriptHost(const ScriptHost&) = delete;
  ScriptHost& operator=(const ScriptHost&) = delete;
  virtual ~ScriptHost() = default;

  // May throw: the exception leaves run().
  virtual Reply call(Words words) = 0;
};

// One thread. The host outlives it.
class RedisLua {
 public:
  explicit RedisLua(ScriptHost& host);
  RedisLua(const RedisLua&) = delete;
  RedisLua& operator=(const RedisLua&) = delete;
  ~RedisLua();

  struct Function {
    std::string name;
    int reference = 0;  // in Lua's registry
    bool no_writes = false;
    bool is_script = false;
  };

  // Of `#!lua name=NAME`, a line end, and the text: the name, or an error. None replaces another.
  Reply load_library(std::string_view text);
  // Null if there is none. Valid until clear().
  [[nodiscard]] const Function* find_function(std::string_view name) const;
  // In the order of their names.
  void describe(const std::function<void(std::string_view library)>& tell) const;

  // The script of this text, compiled when it is new; null, with `error`, if it does not compile.
  const Function* load_script(std::string_view text, Reply& error);
  [[nodiscard]] const Function* find_script(std::string_view sha) const;

  Reply run(const Function& function, Words keys, Words arguments);

  // All libraries and scripts are gone, and what they kept between calls.
  void clear();
  // As a restart does: Redis keeps libraries with the data, and scripts not at all.
  void clear_scripts() { scripts_.clear(); }

 private:
  struct CloseState {
    void operator()(lua_State* state) const noexcept;
  };

  static RedisLua& of(lua_State* lua);
  static int redis_call(lua_State* lua);
  static int register_function(lua_State* lua);
  // Leaves an error on Lua's stack and returns -1, or results.
  int call(lua_State* lua) noexcept;
  const char* add_function(lua_State* lua) noexcept;

  void open();
  void push_reply(const Reply& reply);
  [[nodiscard]] Reply to_reply(int index) const;
  [[nodiscard]] Reply failure(const Function& function) const;

  ScriptHost& host_;
  std::unique_ptr<lua_State, CloseState> state_;
  std::map<std::string, std::string, std::less<>> libraries_;  // texts
  std::map<std::string, Function, std::less<>> functions_;
  std::map<std::string, Function, std::less<>> scripts_;  // by their SHA-1
  std::vector<Function>* registering_ = nullptr;          // while a library is loaded
  std::exception_ptr thrown_;                             // by the host
  std::vector<std::string_view> words_;                   // of the call in progress
  std::vector<std::string> numbers_;
};

// 40 hexadecimal digits.
[[nodiscard]] std::string script_sha(std::string_view text);

}  // namespace sluice::sim
