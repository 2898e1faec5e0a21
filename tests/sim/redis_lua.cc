#include "sim/redis_lua.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <cstdio>
#include <lua.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

// Lua is compiled as C: its errors jump out of C++ functions without running destructors. So a
// function that raises one has no object alive when it does; the work is done in functions that
// leave the error on the stack and return normally.

namespace sluice::sim {
namespace {

// Names in Lua's registry.
constexpr const char* kSelf = "sluice";
constexpr const char* kErrorHandler = "error handler";
constexpr const char* kApi = "api";
constexpr const char* kLoadApi = "load api";

// What Redis's error handler adds to an error: where it was raised.
constexpr const char* kHandlerText = R"(
local getinfo = debug.getinfo
return function(err)
  local place = getinfo(2, 'nSl')
  if place and place.what == 'C' then place = getinfo(3, 'nSl') end
  if type(err) ~= 'table' then err = {err = 'ERR ' .. tostring(err)} end
  if place then err.source, err.line = place.source, place.currentline end
  return err
end
)";

int missing_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

int read_only(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

// {err = text}, as Redis writes it: a text without a code gets one.
void push_error(lua_State* lua, std::string_view text) {
  lua_newtable(lua);
  if (text.find(' ') == std::string_view::npos) {
    lua_pushliteral(lua, "ERR ");
    lua_pushlstring(lua, text.data(), text.size());
    lua_concat(lua, 2);
  } else {
    lua_pushlstring(lua, text.data(), text.size());
  }
  lua_setfield(lua, -2, "err");
}

int error_reply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    push_error(lua, "ERR wrong number or type of arguments");
    return 1;  // not raised, as in Redis
  }
  std::string_view text{lua_tostring(lua, 1), lua_objlen(lua, 1)};
  if (text.starts_with('-')) text.remove_prefix(1);
  push_error(lua, text);
  return 1;
}

int status_reply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    push_error(lua, "ERR wrong number or type of arguments");
    return 1;  // not raised, as in Redis
  }
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

// The table on top of the stack reads missing names from the one at `from`, or fails there if that
// is 0; it cannot be written.
void protect(lua_State* lua, int from) {
  lua_newtable(lua);
  if (from == 0) {
    lua_pushcfunction(lua, missing_global);
  } else {
    lua_pushvalue(lua, from);
  }
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, read_only);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);
}

// Lua's own functions that scripts may use. What depends on the machine is not among them.
void copy_lua(lua_State* lua) {
  for (const char* const name :
       {"assert", "error", "ipairs", "math", "next", "pairs", "pcall", "select", "string", "table",
        "tonumber", "tostring", "type", "unpack"}) {
    lua_getfield(lua, LUA_GLOBALSINDEX, name);
    lua_setfield(lua, -2, name);
  }
}

struct Header {
  std::string name;
  std::string_view code;  // begins with the end of the first line, so that lines keep their numbers
};

std::optional<Header> header_of(std::string_view text) {
  constexpr std::string_view kBegin = "#!lua name=";
  const std::size_t end = text.find('\n');
  if (!text.starts_with(kBegin) || end == std::string_view::npos) return std::nullopt;
  return Header{.name = std::string{text.substr(kBegin.size(), end - kBegin.size())},
                .code = text.substr(end)};
}

std::string text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return text == nullptr ? std::string{} : std::string{text, size};
}

std::string field_of(lua_State* lua, int table, const char* field) {
  lua_getfield(lua, table, field);
  std::string text = text_at(lua, -1);
  lua_pop(lua, 1);
  return text;
}

}  // namespace

std::string script_sha(std::string_view text) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

void RedisLua::CloseState::operator()(lua_State* state) const noexcept { lua_close(state); }

RedisLua::RedisLua(ScriptHost& host) : host_(host) { open(); }

RedisLua::~RedisLua() = default;

void RedisLua::clear() {
  libraries_.clear();
  functions_.clear();
  scripts_.clear();
  open();
}

// ---- the state --------------------------------------------------------------------------------

void RedisLua::open() {
  state_.reset(luaL_newstate());
  lua_State* const lua = state_.get();
  if (lua == nullptr) throw std::bad_alloc{};
  luaL_openlibs(lua);
  lua_pushlightuserdata(lua, this);
  lua_setfield(lua, LUA_REGISTRYINDEX, kSelf);
  if (luaL_loadstring(lua, kHandlerText) != 0) throw std::logic_error{text_at(lua, -1)};
  lua_call(lua, 0, 1);
  lua_setfield(lua, LUA_REGISTRYINDEX, kErrorHandler);

  const auto add = [lua](const char* name, lua_CFunction function) {
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, name);
  };
  // The same for functions and scripts while they run; register_function is there during a load
  // alone, by which the shipped text knows that it is a library.
  lua_newtable(lua);
  copy_lua(lua);
  lua_newtable(lua);
  add("call", redis_call);
  add("error_reply", error_reply);
  add("status_reply", status_reply);
  lua_setfield(lua, -2, "redis");
  protect(lua, 0);
  lua_setfield(lua, LUA_REGISTRYINDEX, kApi);
  lua_newtable(lua);
  lua_newtable(lua);
  add("register_function", register_function);
  protect(lua, 0);
  lua_setfield(lua, -2, "redis");
  protect(lua, 0);
  lua_setfield(lua, LUA_REGISTRYINDEX, kLoadApi);
}

RedisLua& RedisLua::of(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, kSelf);
  auto* const self = static_cast<RedisLua*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *self;
}

// ---- loading ----------------------------------------------------------------------------------

int RedisLua::register_function(lua_State* lua) {
  const char* const wrong = of(lua).add_function(lua);
  if (wrong == nullptr) return 0;
  push_error(lua, wrong);
  return lua_error(lua);
}

// Of (name, callback), or of one table with function_name, callback and flags. Returns what is
// wrong.
const char* RedisLua::add_function(lua_State* lua) noexcept {
  if (registering_ == nullptr) {
    return "ERR redis.register_function can only be called on FUNCTION LOAD command";
  }
  Function function;
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2) return "ERR wrong number of arguments to redis.register_function";
  if (count == 2) {
    if (lua_type(lua, 1) != LUA_TSTRING) {
      return "ERR first argument to redis.register_function must be a string";
    }
    if (!lua_isfunction(lua, 2)) {
      return "ERR second argument to redis.register_function must be a function";
    }
    function.name = text_at(lua, 1);
  } else {
    if (!lua_istable(lua, 1)) {
      return "ERR calling redis.register_function with a single argument is only applicable to Lua "
             "table (representing named arguments).";
    }
    function.name = field_of(lua, 1, "function_name");
    if (function.name.empty()) {
      return "ERR redis.register_function must get a function name argument";
    }
    lua_getfield(lua, 1, "flags");
    for (int i = 1; lua_istable(lua, -1); ++i) {
      lua_rawgeti(lua, -1, i);
      if (lua_isnil(lua, -1)) break;
      if (text_at(lua, -1) != "no-writes") return "ERR unknown flag given";
      function.no_writes = true;
      lua_pop(lua, 1);
    }
    lua_getfield(lua, 1, "callback");
    if (!lua_isfunction(lua, -1)) {
      return "ERR redis.register_function must get a callback argument";
    }
  }
  function.reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  registering_->push_back(std::move(function));
  return nullptr;
}

Reply RedisLua::load_library(std::string_view text) {
  const std::optional<Header> header = header_of(text);
  if (!header) return Reply::error("ERR Missing library metadata");
  if (libraries_.contains(header->name)) {
    return Reply::error(fmt::format("ERR Library '{}' already exists", header->name));
  }
  lua_State* const lua = state_.get();
  lua_settop(lua, 0);
  if (luaL_loadbuffer(lua, header->code.data(), header->code.size(), "@user_function") != 0) {
    return Reply::error("ERR Error compiling function: " + text_at(lua, -1));
  }
  // While it is loaded, nothing but register_function is there.
  lua_newtable(lua);
  lua_getfield(lua, LUA_REGISTRYINDEX, kLoadApi);
  lua_insert(lua, 2);  // chunk, load api, globals
  protect(lua, 2);
  lua_pushvalue(lua, 3);
  lua_setfenv(lua, 1);
  std::vector<Function> found;
  registering_ = &found;
  lua_getfield(lua, LUA_REGISTRYINDEX, kErrorHandler);
  lua_pushvalue(lua, 1);
  const int failed = lua_pcall(lua, 0, 0, 4);
  registering_ = nullptr;
  if (failed != 0) {
    return Reply::error("ERR Error registering functions: " +
                        field_of(lua, lua_gettop(lua), "err"));
  }
  if (found.empty()) return Reply::error("ERR No functions registered");
  for (const Function& function : found) {
    if (functions_.contains(function.name)) {
      return Reply::error(fmt::format("ERR Function {} already exists", function.name));
    }
  }
  lua_getmetatable(lua, 3);
  lua_getfield(lua, LUA_REGISTRYINDEX, kApi);
  lua_setfield(lua, -2, "__index");
  lua_settop(lua, 0);
  for (Function& function : found) {
    std::string name = function.name;
    functions_.emplace(std::move(name), std::move(function));
  }
  libraries_.emplace(header->name, text);
  return Reply::bulk(header->name);
}

const RedisLua::Function* RedisLua::find_function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

void RedisLua::describe(const std::function<void(std::string_view library)>& tell) const {
  for (const auto& [name, text] : libraries_) tell(text);
}

const RedisLua::Function* RedisLua::find_script(std::string_view sha) const {
  const auto found = scripts_.find(sha);
  return found == scripts_.end() ? nullptr : &found->second;
}

const RedisLua::Function* RedisLua::load_script(std::string_view text, Reply& error) {
  std::string sha = script_sha(text);
  if (const Function* const known = find_script(sha)) return known;
  lua_State* const lua = state_.get();
  lua_settop(lua, 0);
  if (luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0) {
    error = Reply::error("ERR Error compiling script (new function): " + text_at(lua, -1));
    return nullptr;
  }
  // KEYS and ARGV are written into its globals by run().
  lua_newtable(lua);
  lua_getfield(lua, LUA_REGISTRYINDEX, kApi);
  lua_insert(lua, 2);
  protect(lua, 2);
  lua_setfenv(lua, 1);
  lua_settop(lua, 1);
  const int reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  Function script{.name = sha, .reference = reference, .is_script = true};
  return &scripts_.emplace(std::move(sha), std::move(script)).first->second;
}

// ---- running ----------------------------------------------------------------------------------

namespace {

void push_words(lua_State* lua, Words words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    lua_pushlstring(lua, words[i].data(), words[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

}  // namespace

Reply RedisLua::run(const Function& function, Words keys, Words arguments) {
  lua_State* const lua = state_.get();
  lua_settop(lua, 0);
  lua_getfield(lua, LUA_REGISTRYINDEX, kErrorHandler);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, function.reference);
  int count = 2;
  if (function.is_script) {
    lua_getfenv(lua, 2);
    for (const auto& [name, words] : {std::pair{"KEYS", keys}, std::pair{"ARGV", arguments}}) {
      lua_pushstring(lua, name);
      push_words(lua, words);
      lua_rawset(lua, 3);
    }
    lua_settop(lua, 2);
    count = 0;
  } else {
    push_words(lua, keys);
    push_words(lua, arguments);
  }
  const int failed = lua_pcall(lua, count, 1, 1);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  Reply reply = failed == 0 ? to_reply(lua_gettop(lua)) : failure(function);
  lua_settop(lua, 0);
  return reply;
}

Reply RedisLua::failure(const Function& function) const {
  lua_State* const lua = state_.get();
  if (!lua_istable(lua, -1)) {
    return Reply::error(
        fmt::format("ERR Error running script {}, {}", function.name, text_at(lua, -1)));
  }
  const int top = lua_gettop(lua);
  std::string text = field_of(lua, top, "err");
  const std::string source = field_of(lua, top, "source");
  const std::string line = field_of(lua, top, "line");
  if (!source.empty() && !line.empty()) {
    text += fmt::format(" script: {}, on {}:{}.", function.name, source, line);
  }
  return Reply::error(text);
}

int RedisLua::redis_call(lua_State* lua) {
  const int results = of(lua).call(lua);
  return results < 0 ? lua_error(lua) : results;
}

int RedisLua::call(lua_State* lua) noexcept {
  const int count = lua_gettop(lua);
  words_.clear();
  numbers_.clear();
  numbers_.reserve(static_cast<std::size_t>(count));  // views of them stay valid
  for (int i = 1; i <= count; ++i) {
    const int type = lua_type(lua, i);
    if (type == LUA_TNUMBER) {
      // As Redis does it; lua_tolstring() would keep 14 digits.
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "%.17g", lua_tonumber(lua, i));
      words_.emplace_back(numbers_.emplace_back(text.data()));
    } else if (type == LUA_TSTRING) {
      words_.emplace_back(lua_tostring(lua, i), lua_objlen(lua, i));
    } else {
      push_error(lua, "ERR Lua redis lib command arguments must be strings or integers");
      return -1;
    }
  }
  if (words_.empty()) {
    push_error(lua, "ERR Please specify at least one argument for this redis lib call");
    return -1;
  }
  try {
    const Reply reply = host_.call(words_);
    if (reply.is_error()) {
      push_error(lua, reply.text);
      return -1;
    }
    push_reply(reply);
    return 1;
  } catch (...) {
    thrown_ = std::current_exception();
  }
  push_error(lua, "ERR the simulation stops here");
  return -1;
}

// ---- conversions ------------------------------------------------------------------------------

void RedisLua::push_reply(const Reply& reply) {
  lua_State* const lua = state_.get();
  switch (reply.kind) {
    case Reply::Kind::integer: return lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
    case Reply::Kind::bulk: return lua_pushlstring(lua, reply.text.data(), reply.text.size());
    case Reply::Kind::nil: return lua_pushboolean(lua, 0);
    case Reply::Kind::status:
    case Reply::Kind::error:
      lua_newtable(lua);
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      return lua_setfield(lua, -2, reply.is_error() ? "err" : "ok");
    case Reply::Kind::array:
      lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
      for (std::size_t i = 0; i < reply.items.size(); ++i) {
        push_reply(reply.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
      }
  }
}

namespace {

// Redis casts, so that a number out of range becomes any. No function may reply one.
std::int64_t truncated(lua_Number number) {
  constexpr lua_Number kEnd = 9223372036854775808.0;
  if (number >= -kEnd && number < kEnd) return static_cast<std::int64_t>(number);
  throw std::logic_error{fmt::format("a script replied the number {}", number)};
}

}  // namespace

Reply RedisLua::to_reply(int index) const {
  lua_State* const lua = state_.get();
  switch (lua_type(lua, index)) {
    case LUA_TNUMBER: return Reply::number(truncated(lua_tonumber(lua, index)));
    case LUA_TSTRING: return Reply::bulk(text_at(lua, index));
    case LUA_TBOOLEAN: return lua_toboolean(lua, index) != 0 ? Reply::number(1) : Reply{};
    case LUA_TTABLE: break;
    default: return {};
  }
  for (const bool is_error : {true, false}) {
    lua_pushstring(lua, is_error ? "err" : "ok");
    lua_rawget(lua, index);
    const bool found = lua_type(lua, -1) == LUA_TSTRING;
    const std::string text = found ? text_at(lua, -1) : std::string{};
    lua_pop(lua, 1);
    if (found) return is_error ? Reply::error(text) : Reply::status(text);
  }
  Reply reply = Reply::array();
  reply.items.reserve(lua_objlen(lua, index));
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, index, i);
    const bool ends = lua_isnil(lua, -1);
    if (!ends) reply.items.push_back(to_reply(lua_gettop(lua)));
    lua_pop(lua, 1);
    if (ends) return reply;
  }
}

}  // namespace sluice::sim
