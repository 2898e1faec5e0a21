-- The server's clock and the life of a key.
--
-- The only file that reads a clock. Tests put another one in its place, which takes `now` from the
-- last argument and keeps a key's end of life in the key itself; nothing else differs.

-- Microseconds since 1970, read once per call. The arguments are left as they are.
local function server_time(_)
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Before the key is read. Redis removes a key whose end has passed by itself; the clock of tests
-- does it here.
local function begin_call(_, _) end

-- The key stays for at least this long. An end of life moves away only: another limit of the same
-- key may need it for longer. `GT` does nothing to a key without an end, hence `NX` for a key that
-- may be new.
local function keep_for(key, micros, may_be_new)
  local millis = string.format('%.0f', math.ceil(micros / 1000))
  if may_be_new and redis.call('PEXPIRE', key, millis, 'NX') == 1 then return end
  redis.call('PEXPIRE', key, millis, 'GT')
end
