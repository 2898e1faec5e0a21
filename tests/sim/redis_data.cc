#include "sim/redis_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>

namespace sluice::sim {
namespace {

constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr std::string_view kNoInteger = "ERR value is not an integer or out of range";

bool same_word(std::string_view a, std::string_view b) noexcept {
  const auto upper = [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return upper(x) == upper(y); });
}

std::string lower(std::string_view text) {
  std::string result{text};
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<std::int64_t> integer_in(std::string_view text) noexcept {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

[[noreturn]] void unknown_option(std::string_view command, std::string_view option) {
  throw std::logic_error{
      fmt::format("simulated Redis: {} with the option {} is not written yet", command, option)};
}

}  // namespace

// One command as it runs.
struct RedisData::Call {
  Words words;
  const Context& context;
  bool wrong_type = false;

  [[nodiscard]] std::string_view key() const noexcept { return words[1]; }

  void propagate(Words command) const {
    if (context.effects == nullptr) return;
    context.effects->emplace_back(command.begin(), command.end());
  }
  void propagate_deletion(std::string_view key) const {
    const std::array<std::string_view, 2> command{"DEL", key};
    propagate(command);
  }
};

struct RedisData::Command {
  std::string_view name;
  int arity;  // as Redis counts it: with the name; -n is at least n
  Access access;
  bool needs_memory;
  Reply (RedisData::*run)(Call&);
};

const RedisData::Command* RedisData::find_command(std::string_view name) noexcept {
  using enum Access;
  // The shipped functions' own come first.
  static constexpr std::array kCommands{
      Command{"HMGET", -3, read, false, &RedisData::hmget},
      Command{"HGET", 3, read, false, &RedisData::hget},
      Command{"HSET", -4, write, true, &RedisData::hset},
      Command{"PEXPIRE", -3, write, false, &RedisData::pexpire},
      Command{"HDEL", -3, write, false, &RedisData::hdel},
      Command{"DEL", -2, write, false, &RedisData::del},
      Command{"PEXPIREAT", -3, write, false, &RedisData::pexpireat},
      Command{"PTTL", 2, read, false, &RedisData::pttl},
      Command{"PEXPIRETIME", 2, read, false, &RedisData::pexpiretime},
      Command{"HGETALL", 2, read, false, &RedisData::hgetall},
      Command{"HLEN", 2, read, false, &RedisData::hlen},
      Command{"HEXISTS", 3, read, false, &RedisData::hexists},
      Command{"EXISTS", -2, read, false, &RedisData::exists},
      Command{"TYPE", 2, read, false, &RedisData::type},
      Command{"GET", 2, read, false, &RedisData::get},
      Command{"SET", -3, write, true, &RedisData::set},
      Command{"DBSIZE", 1, read, false, &RedisData::dbsize},
      Command{"FLUSHALL", -1, write, false, &RedisData::flushall},
      Command{"FLUSHDB", -1, write, false, &RedisData::flushall},
  };
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  for (const Command& command : kCommands) {
    if (same_word(command.name, name)) return &command;
  }
  return nullptr;
}

RedisData::Access RedisData::access_of(std::string_view command) noexcept {
  const Command* const found = find_command(command);
  return found == nullptr ? Access::none : found->access;
}

bool RedisData::needs_memory(std::string_view command) noexcept {
  const Command* const found = find_command(command);
  return found != nullptr && found->needs_memory;
}

bool RedisData::has_arity(Words words) noexcept {
  const Command* const command = find_command(words[0]);
  const auto count = static_cast<int>(words.size());
  return command != nullptr &&
         (command->arity >= 0 ? count == command->arity : count >= -command->arity);
}

Reply RedisData::execute(Words words, const Context& context) {
  const Command* const command = find_command(words[0]);
  if (command == nullptr) {
    throw std::logic_error{
        fmt::format("simulated Redis: the command {} is not written yet", words[0])};
  }
  if (!has_arity(words)) {
    return Reply::error(
        fmt::format("ERR wrong number of arguments for '{}' command", lower(words[0])));
  }
  Call call{.words = words, .context = context};
  Reply reply = (this->*command->run)(call);
  return call.wrong_type ? Reply::error(kWrongType) : std::move(reply);
}

void RedisData::describe(const std::function<void(Words)>& tell) const {
  std::vector<std::string_view> words;
  for (const auto& [key, value] : keys_) {
    if (const auto* const hash = std::get_if<Hash>(&value.data)) {
      words.assign({"HSET", key});
      for (const auto& [field, text] : *hash) words.insert(words.end(), {field, text});
    } else {
      words.assign({"SET", key, std::get<std::string>(value.data)});
    }
    tell(words);
    if (value.ends_ms < 0) continue;
    const std::string ends = std::to_string(value.ends_ms);
    words.assign({"PEXPIREAT", key, ends});
    tell(words);
  }
}

// ---- keys -------------------------------------------------------------------------------------

RedisData::Value* RedisData::find(std::string_view key, const Context& context) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const std::int64_t ends = found->second.ends_ms;
  if (ends < 0 || context.now_ms <= ends) return &found->second;
  if (!context.is_replica) {
    Call{.words = {}, .context = context}.propagate_deletion(key);
    keys_.erase(found);
  }
  return nullptr;
}

RedisData::Hash* RedisData::find_hash(Call& call) {
  Value* const value = find(call.key(), call.context);
  if (value == nullptr) return nullptr;
  Hash* const hash = std::get_if<Hash>(&value->data);
  call.wrong_type = hash == nullptr;
  return hash;
}

Reply RedisData::get(Call& call) {
  const Value* const value = find(call.key(), call.context);
  if (value == nullptr) return {};
  const auto* const text = std::get_if<std::string>(&value->data);
  call.wrong_type = text == nullptr;
  return call.wrong_type ? Reply{} : Reply::bulk(*text);
}

Reply RedisData::set(Call& call) {
  bool if_absent = false;
  bool if_present = false;
  std::int64_t ends = -1;
  for (std::size_t i = 3; i < call.words.size(); ++i) {
    const std::string_view option = call.words[i];
    const bool relative = same_word(option, "PX");
    if (same_word(option, "NX")) {
      if_absent = true;
    } else if (same_word(option, "XX")) {
      if_present = true;
    } else if ((relative || same_word(option, "PXAT")) && i + 1 < call.words.size()) {
      const auto time = integer_in(call.words[++i]);
      if (!time) return Reply::error(kNoInteger);
      if (*time <= 0) return Reply::error("ERR invalid expire time in 'set' command");
      ends = relative ? call.context.now_ms + *time : *time;
    } else {
      unknown_option("SET", option);
    }
  }
  if (if_absent && if_present) return Reply::error("ERR syntax error");
  const bool exists = find(call.key(), call.context) != nullptr;
  if ((if_absent && exists) || (if_present && !exists)) return {};
  keys_.insert_or_assign(std::string{call.key()},
                         Value{.data = std::string{call.words[2]}, .ends_ms = ends});
  const std::string time = std::to_string(ends);
  const std::array<std::string_view, 5> effect{"SET", call.key(), call.words[2], "PXAT", time};
  call.propagate(Words{effect}.first(ends < 0 ? 3 : 5));
  return Reply::status("OK");
}

Reply RedisData::del(Call& call) {
  std::int64_t count = 0;
  for (const std::string_view key : call.words.subspan(1)) {
    if (find(key, call.context) == nullptr) continue;
    keys_.erase(keys_.find(key));
    ++count;
  }
  if (count > 0) call.propagate(call.words);
  return Reply::number(count);
}

Reply RedisData::exists(Call& call) {
  std::int64_t count = 0;
  for (const std::string_view key : call.words.subspan(1)) {
    if (find(key, call.context) != nullptr) ++count;
  }
  return Reply::number(count);
}

Reply RedisData::type(Call& call) {
  const Value* const value = find(call.key(), call.context);
  if (value == nullptr) return Reply::status("none");
  return Reply::status(std::holds_alternative<Hash>(value->data) ? "hash" : "string");
}

Reply RedisData::dbsize(Call&) { return Reply::number(static_cast<std::int64_t>(keys_.size())); }

Reply RedisData::flushall(Call& call) {
  if (call.words.size() > 1) unknown_option(call.words[0], call.words[1]);
  clear();
  call.propagate(call.words);
  return Reply::status("OK");
}

// ---- ends of life -----------------------------------------------------------------------------

Reply RedisData::pexpire(Call& call) {
  const auto time = integer_in(call.words[2]);
  if (!time) return Reply::error(kNoInteger);
  std::int64_t ends = 0;
  if (__builtin_add_overflow(*time, call.context.now_ms, &ends)) {
    return Reply::error("ERR invalid expire time in 'pexpire' command");
  }
  return expire_at(call, ends);
}

Reply RedisData::pexpireat(Call& call) {
  const auto time = integer_in(call.words[2]);
  if (!time) return Reply::error(kNoInteger);
  return expire_at(call, *time);
}

// A key without an end counts as one that ends never: GT does nothing to it.
Reply RedisData::expire_at(Call& call, std::int64_t ends_ms) {
  bool if_none = false;
  bool if_later = false;
  for (const std::string_view option : call.words.subspan(3)) {
    if (same_word(option, "NX")) {
      if_none = true;
    } else if (same_word(option, "GT")) {
      if_later = true;
    } else {
      unknown_option(call.words[0], option);
    }
  }
  if (if_none && if_later) {
    return Reply::error("ERR NX and XX, GT or LT options at the same time are not compatible");
  }
  Value* const value = find(call.key(), call.context);
  if (value == nullptr) return Reply::number(0);
  if (if_none && value->ends_ms >= 0) return Reply::number(0);
  if (if_later && (value->ends_ms < 0 || ends_ms <= value->ends_ms)) return Reply::number(0);
  if (ends_ms <= call.context.now_ms && !call.context.is_replica) {
    keys_.erase(keys_.find(call.key()));
    call.propagate_deletion(call.key());
    return Reply::number(1);
  }
  value->ends_ms = ends_ms;
  const std::string time = std::to_string(ends_ms);
  const std::array<std::string_view, 3> effect{"PEXPIREAT", call.key(), time};
  call.propagate(effect);
  return Reply::number(1);
}

Reply RedisData::pttl(Call& call) {
  const Value* const value = find(call.key(), call.context);
  if (value == nullptr) return Reply::number(-2);
  if (value->ends_ms < 0) return Reply::number(-1);
  return Reply::number(std::max<std::int64_t>(0, value->ends_ms - call.context.now_ms));
}

Reply RedisData::pexpiretime(Call& call) {
  const Value* const value = find(call.key(), call.context);
  return Reply::number(value == nullptr ? -2 : value->ends_ms);
}

// ---- hashes -----------------------------------------------------------------------------------

Reply RedisData::hget(Call& call) {
  const Hash* const hash = find_hash(call);
  if (hash == nullptr) return {};
  const auto found = hash->find(call.words[2]);
  return found == hash->end() ? Reply{} : Reply::bulk(found->second);
}

Reply RedisData::hmget(Call& call) {
  const Hash* const hash = find_hash(call);
  Reply reply = Reply::array();
  reply.items.resize(call.words.size() - 2);
  if (hash == nullptr) return reply;
  for (std::size_t i = 2; i < call.words.size(); ++i) {
    const auto found = hash->find(call.words[i]);
    if (found != hash->end()) reply.items[i - 2] = Reply::bulk(found->second);
  }
  return reply;
}

Reply RedisData::hset(Call& call) {
  if (call.words.size() % 2 != 0) {
    return Reply::error("ERR wrong number of arguments for 'hset' command");
  }
  Hash* hash = find_hash(call);
  if (call.wrong_type) return {};
  if (hash == nullptr) {
    Value& value = keys_[std::string{call.key()}];
    hash = &value.data.emplace<Hash>();
  }
  std::int64_t added = 0;
  for (std::size_t i = 2; i < call.words.size(); i += 2) {
    const auto found = hash->find(call.words[i]);
    if (found != hash->end()) {
      found->second = call.words[i + 1];
    } else {
      hash->emplace(call.words[i], call.words[i + 1]);
      ++added;
    }
  }
  call.propagate(call.words);
  return Reply::number(added);
}

Reply RedisData::hdel(Call& call) {
  Hash* const hash = find_hash(call);
  if (hash == nullptr) return Reply::number(0);
  std::int64_t count = 0;
  for (const std::string_view field : call.words.subspan(2)) {
    const auto found = hash->find(field);
    if (found == hash->end()) continue;
    hash->erase(found);
    ++count;
  }
  if (count > 0) call.propagate(call.words);
  if (hash->empty()) keys_.erase(keys_.find(call.key()));
  return Reply::number(count);
}

Reply RedisData::hlen(Call& call) {
  const Hash* const hash = find_hash(call);
  return Reply::number(hash == nullptr ? 0 : static_cast<std::int64_t>(hash->size()));
}

Reply RedisData::hexists(Call& call) {
  const Hash* const hash = find_hash(call);
  return Reply::number(hash != nullptr && hash->contains(call.words[2]) ? 1 : 0);
}

// In the order of the fields, which Redis does not promise.
Reply RedisData::hgetall(Call& call) {
  const Hash* const hash = find_hash(call);
  Reply reply = Reply::array();
  if (hash == nullptr) return reply;
  for (const auto& [field, text] : *hash) {
    reply.items.push_back(Reply::bulk(field));
    reply.items.push_back(Reply::bulk(text));
  }
  return reply;
}

}  // namespace sluice::sim
