-- sliding_buckets: the window in slices, each slice a counter, the partly expired one counted in
-- full. core/sliding_buckets.h.
--
-- slices + 1 counters; slice n since 1970 counts in place (n + offset) mod (slices + 1), which lies
-- in chunk place / 64. An absent chunk is all zeros.
--
--   limit   slices,FLAGS,amount,period,width,slices
--   state   number of the newest slice, sum of all counters, offset
--   chunk   64 counters
--   mark    the number of the slice that counted the charge
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local slices = {}

slices.chunked = true

function slices.limit(limit, numbers)
  limit.capacity = numbers[1]
  limit.period = numbers[2]
  limit.width = numbers[3]
  limit.slices = numbers[4]
  limit.size = numbers[4] + 1
  return limit
end

function slices.fresh(key, field, limit)
  return {newest = 0, sum = 0, offset = 0, size = limit.size,
          counters = chunks.of(key, field, true)}
end
function slices.read(numbers, key, field, limit)
  return {
    newest = numbers[1], sum = numbers[2], offset = numbers[3], size = limit.size,
    counters = chunks.of(key, field),
  }
end
function slices.text(state)
  return string.format('%.0f %.0f %.0f', state.newest, state.sum, state.offset)
end

-- Chunk and position of a slice's counter.
local function place_of(state, slice)
  local place = math.fmod(slice + state.offset, state.size)
  if place < 0 then place = place + state.size end
  local number, position = divide(place, CHUNK)
  return number, position + 1
end

local function count_of(state, slice)
  local number, position = place_of(state, slice)
  return chunks.get(state.counters, number)[position] or 0
end

local function set_count(state, slice, count)
  local number, position = place_of(state, slice)
  local chunk = chunks.get(state.counters, number)
  if (chunk[position] or 0) == count then return end
  for i = #chunk + 1, position - 1 do chunk[i] = 0 end
  chunk[position] = count
  state.counters.changed[number] = true
end

local function oldest_of(state, newest) return newest - state.size + 1 end

-- `slice` is where a request counts; `shift` is how many slices the state has to move because the
-- clock was set back.
function slices.look(limit, state, now, may_write)
  local seen = {now = now, slice = divide(now, limit.width), shift = 0, sum = state.sum,
                set_back = false}
  if seen.slice < state.newest then
    local ahead = limit.width * state.newest - now
    seen.set_back = may_write and ahead > max(limit.period, CLOCK_STEP)
    if seen.set_back then seen.shift = state.newest - seen.slice end
    seen.slice = state.newest
  end
  if oldest_of(state, seen.slice) > state.newest then
    seen.sum = 0
  elseif seen.sum > 0 then
    for slice = oldest_of(state, state.newest), oldest_of(state, seen.slice) - 1 do
      seen.sum = seen.sum - count_of(state, slice)
    end
  end
  return seen
end

function slices.clear(state) chunks.clear(state.counters, 0, (divide(state.size - 1, CHUNK))) end

-- Writes down what `look` saw: counters out of sight go, slices from the future move to now.
function slices.settle(_, state, seen)
  if seen.set_back then
    state.offset = math.fmod(state.offset + seen.shift, state.size)
    seen.slice, seen.shift, seen.set_back = seen.slice - seen.shift, 0, false
  elseif oldest_of(state, seen.slice) > state.newest then
    if state.sum > 0 then slices.clear(state) end
  else
    for slice = state.newest + 1, seen.slice do set_count(state, slice, 0) end
  end
  state.newest, state.sum = seen.slice, seen.sum
end

local function add_to_slice(state, seen, cost)
  set_count(state, seen.slice, count_of(state, seen.slice) + cost)
  state.sum = state.sum + cost
  seen.sum = seen.sum + cost
end

local function drop_oldest(state, cost)
  state.sum = state.sum - cost
  local slice = oldest_of(state, state.newest)
  while cost > 0 do
    local count = count_of(state, slice)
    local taken = min(cost, count)
    if taken > 0 then set_count(state, slice, count - taken) end
    cost = cost - taken
    slice = slice + 1
  end
end

function slices.fits(limit, _, seen, cost) return cost <= room_left(limit.capacity, seen.sum) end

function slices.admit(limit, state, seen, cost)
  slices.settle(limit, state, seen)
  add_to_slice(state, seen, cost)
  return seen.slice, 0
end

-- As much of the cost as fits after pushing out the oldest counts; charged is how much more is
-- counted than before.
function slices.force(limit, state, seen, cost)
  slices.settle(limit, state, seen)
  local charged = min(cost, limit.capacity)
  local room = room_left(limit.capacity, seen.sum)
  if charged > room then
    drop_oldest(state, charged - room)
    seen.sum = seen.sum - (charged - room)
  end
  add_to_slice(state, seen, charged)
  return min(charged, room), seen.slice, 0
end

-- Until a slice is out of sight.
local function out_of_sight_after(limit, seen, slice)
  return limit.width * (slice - seen.shift + limit.slices + 1) - seen.now
end

-- Requires that something is counted.
local function newest_counted(state)
  local slice = state.newest
  while count_of(state, slice) == 0 do slice = slice - 1 end
  return slice
end

function slices.remaining(limit, seen) return room_left(limit.capacity, seen.sum) end
function slices.reset(limit, state, seen)
  return seen.sum == 0 and 0 or out_of_sight_after(limit, seen, newest_counted(state))
end

function slices.retry(limit, state, seen, cost)
  local must_go = seen.sum + cost - limit.capacity
  local gone, slice = 0, oldest_of(state, seen.slice)
  while slice < state.newest do
    gone = gone + count_of(state, slice)
    if gone >= must_go then break end
    slice = slice + 1
  end
  return out_of_sight_after(limit, seen, slice)
end

function slices.refund(_, state, _, mark, _, cost, amount)
  if mark < oldest_of(state, state.newest) or mark > state.newest then return false end
  local count = count_of(state, mark)
  local given = min(amount, cost, count)
  set_count(state, mark, count - given)
  state.sum = state.sum - given
  return true
end

function slices.same_grid(from, to) return from.width == to.width and from.slices == to.slices end
function slices.keeps_marks(_, _, change) return change == 'keep' end

-- A share that grows is added to the newest count, one that shrinks is taken from the oldest.
function slices.convert(from, to, state, seen, change)
  slices.settle(from, state, seen)
  local kept = converted_count(from.capacity, to.capacity, seen.sum, change)
  if kept < seen.sum then
    drop_oldest(state, seen.sum - kept)
  elseif kept > seen.sum then
    local slice = newest_counted(state)
    set_count(state, slice, count_of(state, slice) + kept - seen.sum)
    state.sum = kept
  end
end
