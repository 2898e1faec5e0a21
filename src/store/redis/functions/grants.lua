-- Leases: tokens that a node takes ahead and spends by itself. This file keeps the list of them.
--
-- A lease is debited when it is granted; what its holder gives back before it ends is refunded, the
-- rest stays spent. A seat debits nothing: it is the right to have so many tokens spent and not yet
-- settled. The leases and seats of one limit, all holders together, never exceed `cap`.
--
--   FIELD~   for each grant: session, number, tokens left, end, mark (two words), edition; a seat
--            has edition 0
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

-- Holders count from before they sent the call; here a grant ends a hundredth later.
local function ends_after(duration) return divide_up(duration * 101, 100) end
local function usable_for(left) return (divide(max(left, 0) * 100, 101)) end

-- No grant lasts longer than this (the caller's promise): one that ends later was written before
-- the clock was set back.
local LONGEST = 60000000

local grants = {}

local function grants_field(name) return name .. '~' end

-- Those that have not ended.
function grants.read(key, name, now)
  local list = {}
  local words = {}
  for word in string.gmatch(redis.call('HGET', key, grants_field(name)) or '', '%S+') do
    words[#words + 1] = word
    if #words == 7 then
      local grant = {
        session = words[1], sequence = tonumber(words[2]), tokens = tonumber(words[3]),
        ends = tonumber(words[4]), mark = tonumber(words[5]), ticks = tonumber(words[6]),
        edition = tonumber(words[7]),
      }
      local alive = grant.ends > now and grant.ends - now <= LONGEST + CLOCK_STEP
      if alive then list[#list + 1] = grant end
      words = {}
    end
  end
  return list
end

function grants.put(list, name, values, gone)
  if #list == 0 then
    gone[#gone + 1] = grants_field(name)
    return
  end
  local words = {}
  for _, grant in ipairs(list) do
    words[#words + 1] = string.format('%s %.0f %.0f %.0f %.0f %.0f %.0f', grant.session,
                                      grant.sequence, grant.tokens, grant.ends, grant.mark,
                                      grant.ticks, grant.edition)
  end
  values[#values + 1] = grants_field(name)
  values[#values + 1] = table.concat(words, ' ')
end

function grants.sum(list)
  local tokens = 0
  for _, grant in ipairs(list) do tokens = tokens + grant.tokens end
  return tokens
end

function grants.find(list, session, sequence)
  for i, grant in ipairs(list) do
    if grant.session == session and grant.sequence == sequence then return grant, i end
  end
end
