-- Calls that may be sent twice.
--
-- A node numbers what it sends for a key: charges, refunds, leases. The key remembers the highest
-- number of each session (one process from start to end), so that a call that is sent again,
-- because its reply was lost, is applied once. Decisions are never sent again.
--
--   @SESSION   the highest number applied, and when
--   @          the sessions in order of appearance; a new one removes those silent for an hour
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local SESSION_KEPT = 3600000000
local RESENT_WITHIN = 60000000

local function session_field(session) return '@' .. session end

-- The others that are still heard of, and this one.
local function sessions_with(call, gone)
  local sessions = {}
  for session in string.gmatch(redis.call('HGET', call.key, '@') or '', '%S+') do
    local value = redis.call('HGET', call.key, session_field(session))
    local heard = value and numbers_in(value)[2]
    if heard and call.now - heard <= SESSION_KEPT then
      sessions[#sessions + 1] = session
    else
      gone[#gone + 1] = session_field(session)
    end
  end
  sessions[#sessions + 1] = call.session
  return table.concat(sessions, ' ')
end

-- Reads the session's number along with the fields. True: this call was applied before.
local function is_repeated(call, value)
  if call.session == '-' then return false end
  call.new_session = not value
  return value and numbers_in(value)[1] >= call.sequence
end

local function put_session(call, values, gone)
  if call.session == '-' then return end
  if call.new_session then
    values[#values + 1] = '@'
    values[#values + 1] = sessions_with(call, gone)
  end
  values[#values + 1] = session_field(call.session)
  values[#values + 1] = text_of(call.sequence) .. ' ' .. text_of(call.now)
  call.lasts = max(call.lasts, RESENT_WITHIN)
end
