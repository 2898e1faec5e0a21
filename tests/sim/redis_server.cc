#include "sim/redis_server.h"

#include <sluice/int128.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <stdexcept>

namespace sluice::sim {
namespace {

constexpr std::string_view kReadOnlyReplica =
    "READONLY You can't write against a read only replica.";
constexpr std::string_view kWritesInReadOnly =
    "ERR Can not execute a script with write flag using *_ro command.";
constexpr std::string_view kNoReplicas = "NOREPLICAS Not enough good replicas to write.";
constexpr std::string_view kNoMemory = "OOM command not allowed when used memory > 'maxmemory'.";

std::string upper(std::string_view text) {
  std::string result{text};
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

// A mistake of the test: what the simulation cannot do, it does not pretend to.
[[noreturn]] void not_written(Words words) {
  std::string text = "simulated Redis: not written yet:";
  for (const std::string_view word : words.first(std::min<std::size_t>(words.size(), 4))) {
    text += fmt::format(" {}", word.substr(0, 40));
  }
  throw std::logic_error{text};
}

// The number of keys in a call of a script; the keys follow it.
std::optional<std::size_t> key_count(Words words) {
  std::size_t count = 0;
  const std::string_view text = words[2];
  const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return count;
}

}  // namespace

Reply RedisServer::handle(Words command, WallTime wall) {
  if (command.empty()) throw std::logic_error{"simulated Redis: an empty command"};
  now_us_ = floor_div(wall.time_since_epoch().count(), std::int64_t{1'000});
  ++calls_;
  effects_.clear();
  Reply reply =
      loading_ ? Reply::error("LOADING Redis is loading the dataset in memory") : dispatch(command);
  if (effects_.empty()) return reply;
  offset_ += effects_.size();
  if (tell_) tell_(effects_);
  return reply;
}

RedisData::Context RedisServer::context() {
  return {.now_ms = floor_div(now_us_, std::int64_t{1'000}),
          .is_replica = role_ == Role::replica,
          .effects = &effects_};
}

Reply RedisServer::dispatch(Words words) {
  // The commands of nodes come first.
  if (words[0] == "FCALL") return fcall(words, false);
  if (RedisData::access_of(words[0]) != RedisData::Access::none) return on_data(words);
  const std::string name = upper(words[0]);
  if (name == "FCALL") return fcall(words, false);
  if (name == "FCALL_RO") return fcall(words, true);
  if (name == "EVALSHA") return eval(words, true);
  if (name == "EVAL") return eval(words, false);
  if (name == "PING") return words.size() > 1 ? Reply::bulk(words[1]) : Reply::status("PONG");
  if (name == "ECHO" && words.size() == 2) return Reply::bulk(words[1]);
  if (name == "TIME") return time();
  if (name == "ROLE") return role_reply();
  if (name == "HELLO") return hello(words);
  if (name == "FUNCTION") return function_command(words);
  if (name == "SCRIPT") return script_command(words);
  not_written(words);
}

// The error that a write gets whatever it writes; empty if none.
std::string_view RedisServer::write_rejection(bool needs_memory) const noexcept {
  if (memory_full_ && needs_memory) return kNoMemory;
  if (replicas_missing_ && role_ == Role::primary) return kNoReplicas;
  return role_ == Role::replica ? kReadOnlyReplica : std::string_view{};
}

Reply RedisServer::on_data(Words words) {
  if (RedisData::access_of(words[0]) == RedisData::Access::write) {
    const std::string_view rejection = write_rejection(RedisData::needs_memory(words[0]));
    if (!rejection.empty()) return Reply::error(rejection);
  }
  return data_.execute(words, context());
}

Reply RedisServer::call(Words words) {
  if (words[0] == "TIME" && words.size() == 1) return time();
  const RedisData::Access access = RedisData::access_of(words[0]);
  if (access == RedisData::Access::none) not_written(words);
  if (!RedisData::has_arity(words)) {
    return Reply::error("ERR Wrong number of args calling Redis command from script");
  }
  if (access == RedisData::Access::write) {
    if (!script_may_write_) {
      return Reply::error("ERR Write commands are not allowed from read-only scripts.");
    }
    // Of a function that was decided before it began.
    const std::string_view rejection =
        write_rejection(in_eval_ && RedisData::needs_memory(words[0]));
    if (!rejection.empty()) return Reply::error(rejection);
  }
  return data_.execute(words, context());
}

// ---- what servers tell of themselves ----------------------------------------------------------

Reply RedisServer::time() const {
  return Reply::array({Reply::bulk(std::to_string(now_us_ / 1'000'000)),
                       Reply::bulk(std::to_string(now_us_ % 1'000'000))});
}

// Replicas are not listed: a primary of this simulation does not know them.
Reply RedisServer::role_reply() const {
  const auto offset = static_cast<std::int64_t>(offset_);
  if (role_ == Role::primary) {
    return Reply::array({Reply::bulk("master"), Reply::number(offset), Reply::array()});
  }
  return Reply::array({Reply::bulk("slave"), Reply::bulk("primary"), Reply::number(6379),
                       Reply::bulk("connected"), Reply::number(offset)});
}

Reply RedisServer::hello(Words words) const {
  if (words.size() > 2) not_written(words);
  // The protocol that this simulation speaks. Clients have to go on with it.
  if (words.size() == 2 && words[1] != "2") {
    return Reply::error("NOPROTO unsupported protocol version");
  }
  return Reply::array({Reply::bulk("server"), Reply::bulk("redis"), Reply::bulk("version"),
                       Reply::bulk("7.0.15"), Reply::bulk("proto"), Reply::number(2),
                       Reply::bulk("id"), Reply::number(static_cast<std::int64_t>(id_)),
                       Reply::bulk("mode"), Reply::bulk("standalone"), Reply::bulk("role"),
                       Reply::bulk(role_ == Role::primary ? "master" : "replica"),
                       Reply::bulk("modules"), Reply::array()});
}

// ---- functions and scripts --------------------------------------------------------------------

Reply RedisServer::function_command(Words words) {
  if (words.size() != 3 || upper(words[1]) != "LOAD") not_written(words);
  const std::string_view rejection = write_rejection(true);
  if (!rejection.empty()) return Reply::error(rejection);
  Reply reply = lua_.load_library(words[2]);
  if (!reply.is_error()) effects_.emplace_back(words.begin(), words.end());
  return reply;
}

// Scripts are of one server: neither replicated nor kept.
Reply RedisServer::script_command(Words words) {
  if (words.size() != 3 || upper(words[1]) != "LOAD") not_written(words);
  Reply error;
  const RedisLua::Function* const script = lua_.load_script(words[2], error);
  return script == nullptr ? error : Reply::bulk(script->name);
}

Reply RedisServer::fcall(Words words, bool read_only) {
  if (words.size() < 3) not_written(words);
  const RedisLua::Function* const function = lua_.find_function(words[1]);
  if (function == nullptr) return Reply::error("ERR Function not found");
  script_may_write_ = !function->no_writes;
  in_eval_ = false;
  if (script_may_write_) {
    const std::string_view rejection = write_rejection(true);
    if (!rejection.empty()) return Reply::error(rejection);
    if (read_only) return Reply::error(kWritesInReadOnly);
  }
  return run(*function, words);
}

// Scripts have no flags: whether they may write is decided at each write.
Reply RedisServer::eval(Words words, bool by_sha) {
  if (words.size() < 3) not_written(words);
  script_may_write_ = in_eval_ = true;
  Reply error;
  const RedisLua::Function* const script =
      by_sha ? lua_.find_script(words[1]) : lua_.load_script(words[1], error);
  if (script != nullptr) return run(*script, words);
  return by_sha ? Reply::error("NOSCRIPT No matching script. Please use EVAL.") : error;
}

Reply RedisServer::run(const RedisLua::Function& function, Words words) {
  const std::optional<std::size_t> keys = key_count(words);
  if (!keys) return Reply::error("ERR Bad number of keys provided");
  if (*keys > words.size() - 3) {
    return Reply::error("ERR Number of keys can't be greater than number of args");
  }
  return lua_.run(function, words.subspan(3, *keys), words.subspan(3 + *keys));
}

// ---- replication ------------------------------------------------------------------------------

Effects RedisServer::snapshot() const {
  Effects all;
  lua_.describe(
      [&](std::string_view library) { all.push_back({"FUNCTION", "LOAD", std::string{library}}); });
  data_.describe([&](Words words) { all.emplace_back(words.begin(), words.end()); });
  return all;
}

void RedisServer::apply(const Effects& effects) {
  // Whatever the time here: a key ends when the primary says so.
  const RedisData::Context context{.now_ms = std::numeric_limits<std::int64_t>::min(),
                                   .is_replica = true};
  std::vector<std::string_view> words;
  for (const std::vector<std::string>& effect : effects) {
    words.assign(effect.begin(), effect.end());
    const Reply reply =
        words[0] == "FUNCTION" ? lua_.load_library(words[2]) : data_.execute(words, context);
    if (reply.is_error()) throw std::logic_error{"a replica cannot apply: " + reply.text};
  }
  offset_ += effects.size();
}

void RedisServer::clear() {
  data_.clear();
  lua_.clear();
  offset_ = 0;
}

}  // namespace sluice::sim
