-- sliding_log: every admission of the last window, exactly. core/sliding_log.h.
--
-- Entries are (instant, cost), ascending; requests of one microsecond share one. They lie in chunks
-- `first` to `last`, each with 1 to 64 entries (a refund may leave less, or none). The header knows
-- the oldest and the newest instant, so that a decision reads old chunks only when some of their
-- entries have expired.
--
--   limit   log,FLAGS,amount,period
--   state   first and last chunk (none if first > last), sum of costs, oldest and newest instant
--   chunk   instant and cost of each entry
--   mark    the entry's instant
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local log = {}

log.limit = window.limit
log.chunked = true

function log.fresh(key, field)
  return {
    first = 0, last = -1, sum = 0, oldest = 0, newest = 0,
    entries = chunks.of(key, field, true),
  }
end
function log.read(numbers, key, field)
  return {
    first = numbers[1], last = numbers[2], sum = numbers[3], oldest = numbers[4],
    newest = numbers[5], entries = chunks.of(key, field),
  }
end
function log.text(state)
  return string.format('%.0f %.0f %.0f %.0f %.0f', state.first, state.last, state.sum, state.oldest,
                       state.newest)
end

local function is_empty(state) return state.first > state.last end

-- The first and the last chunk have entries, or there is none; oldest and newest are theirs.
local function trim(state)
  while not is_empty(state) and #chunks.get(state.entries, state.first) == 0 do
    state.first = state.first + 1
  end
  while not is_empty(state) and #chunks.get(state.entries, state.last) == 0 do
    state.last = state.last - 1
  end
  if is_empty(state) then
    state.first, state.last, state.oldest, state.newest = 0, -1, 0, 0
    return
  end
  local chunk = chunks.get(state.entries, state.last)
  state.oldest = chunks.get(state.entries, state.first)[1]
  state.newest = chunk[#chunk - 1]
end

-- `visit(at, cost)` from the oldest entry on, until it answers true.
local function each_entry(state, visit)
  for number = state.first, state.last do
    local chunk = chunks.get(state.entries, number)
    for i = 1, #chunk, 2 do
      if visit(chunk[i], chunk[i + 1]) then return end
    end
  end
end

-- `now` is the clock, or the newest entry where the clock is behind that by `behind`; `shift` is
-- how far the log has to move because the clock was set back.
function log.look(limit, state, now, may_write)
  local seen = {now = now, behind = 0, shift = 0, sum = state.sum, set_back = false}
  local ahead = state.newest - now
  if ahead > 0 then
    seen.now = state.newest
    seen.set_back = may_write and ahead > CLOCK_STEP
    if seen.set_back then seen.shift = ahead else seen.behind = ahead end
  end
  seen.horizon = seen.now - limit.period
  if is_empty(state) then return seen end
  if state.newest <= seen.horizon then
    seen.sum = 0
  elseif state.oldest <= seen.horizon then
    each_entry(state, function(at, cost)
      if at > seen.horizon then return true end
      seen.sum = seen.sum - cost
    end)
  end
  return seen
end

local function drop_front(state, cost)
  state.sum = state.sum - cost
  while cost > 0 do
    local chunk = chunks.change(state.entries, state.first)
    if chunk[2] and chunk[2] > cost then
      chunk[2] = chunk[2] - cost
      cost = 0
    elseif chunk[2] then
      cost = cost - chunk[2]
      table.remove(chunk, 1)
      table.remove(chunk, 1)
    else
      state.first = state.first + 1
    end
  end
  trim(state)
end

-- Writes down what `look` saw: expired entries go, a log from the future moves to now.
function log.settle(limit, state, seen)
  if is_empty(state) then return end
  if seen.sum == 0 then
    chunks.clear(state.entries, state.first, state.last)
    state.sum = 0
    trim(state)
  elseif seen.sum < state.sum then
    drop_front(state, state.sum - seen.sum)
  end
  if seen.set_back then
    for number = state.first, state.last do
      local chunk = chunks.change(state.entries, number)
      for i = 1, #chunk, 2 do chunk[i] = chunk[i] - seen.shift end
    end
    trim(state)
    seen.now, seen.shift, seen.set_back = seen.now - seen.shift, 0, false
  end
  seen.horizon = seen.now - limit.period
end

local function append(state, seen, cost)
  if not is_empty(state) and state.newest == seen.now then
    local chunk = chunks.change(state.entries, state.last)
    chunk[#chunk] = chunk[#chunk] + cost
  else
    if is_empty(state) then state.oldest = seen.now end
    if is_empty(state) or #chunks.get(state.entries, state.last) >= 2 * CHUNK then
      state.last = state.last + 1
      -- A chunk of this number was dropped before, or there never was one.
      state.entries.loaded[state.last] = {}
    end
    local chunk = chunks.change(state.entries, state.last)
    chunk[#chunk + 1] = seen.now
    chunk[#chunk + 1] = cost
    state.newest = seen.now
  end
  state.sum = state.sum + cost
  seen.sum = seen.sum + cost
end

function log.fits(limit, _, seen, cost) return cost <= limit.capacity - seen.sum end

function log.admit(limit, state, seen, cost)
  log.settle(limit, state, seen)
  append(state, seen, cost)
  return seen.now, 0
end

-- As much of the cost as fits after pushing out the oldest entries. Charged is how much more the
-- log holds than before: a refund must not take out what was pushed out.
function log.force(limit, state, seen, cost)
  log.settle(limit, state, seen)
  local charged = min(cost, limit.capacity)
  local room = limit.capacity - seen.sum
  if charged > room then
    drop_front(state, charged - room)
    seen.sum = seen.sum - (charged - room)
  end
  if charged > 0 then append(state, seen, charged) end
  return min(charged, room), seen.now, 0
end

local function leaves_after(limit, seen, at) return at - seen.now + seen.behind + limit.period end

function log.remaining(limit, seen) return limit.capacity - seen.sum end
function log.reset(limit, state, seen)
  if is_empty(state) or state.newest <= seen.horizon then return 0 end
  return leaves_after(limit, seen, state.newest)
end

function log.retry(limit, state, seen, cost)
  local must_go = seen.sum + cost - limit.capacity
  local gone, when = 0, state.newest
  each_entry(state, function(at, held)
    if at <= seen.horizon then return false end
    gone, when = gone + held, at
    return gone >= must_go
  end)
  return leaves_after(limit, seen, when)
end

function log.refund(_, state, _, mark, _, cost, amount)
  for number = state.last, state.first, -1 do
    local chunk = chunks.get(state.entries, number)
    for i = 1, #chunk, 2 do
      if chunk[i] == mark then
        local given = min(amount, cost, chunk[i + 1])
        state.entries.changed[number] = true
        state.sum = state.sum - given
        chunk[i + 1] = chunk[i + 1] - given
        if chunk[i + 1] == 0 then
          table.remove(chunk, i)
          table.remove(chunk, i)
          trim(state)
        end
        return true
      end
    end
  end
  return false
end

function log.same_grid(from, to) return from.period == to.period end
function log.keeps_marks(from, to, change)
  return change == 'keep' and from.capacity <= to.capacity
end

-- Keeps the newest entries that fit the new amount; a share that grows is added to the newest one.
function log.convert(from, to, state, seen, change)
  log.settle(from, state, seen)
  local kept = min(converted_count(from.capacity, to.capacity, seen.sum, change), to.capacity)
  if kept < seen.sum then
    drop_front(state, seen.sum - kept)
  elseif kept > seen.sum then
    local chunk = chunks.change(state.entries, state.last)
    chunk[#chunk] = chunk[#chunk] + kept - seen.sum
    state.sum = kept
  end
end

function log.clear(state) chunks.clear(state.entries, state.first, state.last) end
