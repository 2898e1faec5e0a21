// A clock for the functions that tests set: the time is a call's last argument, and the field `!`
// holds the key's end of life, so that keys expire in the same time. Takes the place of
// functions/clock.lua when the text is loaded.
#pragma once

#include <string_view>

namespace sluice::store {

inline constexpr std::string_view kClockOfArguments = R"(
local time_now
local function server_time(args)
  time_now = tonumber(table.remove(args))
  return time_now
end
local function begin_call(key, call)
  local ends = redis.call('HGET', key, '!')
  if ends and call.now >= tonumber(ends) then redis.call('DEL', key) end
end
local function keep_for(key, micros, may_be_new)
  local ends = redis.call('HGET', key, '!')
  if not ends and not may_be_new then error('a key without an end of life') end
  local later = time_now + math.ceil(micros / 1000) * 1000
  if not ends or later > tonumber(ends) then
    redis.call('HSET', key, '!', string.format('%.0f', later))
  end
end
)";

}  // namespace sluice::store
