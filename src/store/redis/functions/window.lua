-- Fixed windows: aligned to the epoch (`window`), to a calendar (`calendar`), or opened by a key's
-- first request (`first`). core/fixed_window.h.
--
--   limit   window,FLAGS,amount,period
--           calendar,FLAGS,amount,GRID     the edges of three windows come with each call
--           first,FLAGS,amount,period
--   state   start, end and count of the window that was counted last
--   mark    the start of the window that counted the charge
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local window = {}

function window.limit(limit, numbers)
  limit.capacity = numbers[1]
  limit.period = numbers[2]
  return limit
end

function window.fresh() return {start = 0, stop = 0, count = 0} end
function window.read(numbers)
  return {start = numbers[1], stop = numbers[2], count = numbers[3]}
end
function window.text(state)
  return string.format('%.0f %.0f %.0f', state.start, state.stop, state.count)
end

local function shown_at(limit, _, now)
  local start = divide(now, limit.period) * limit.period
  return start, start + limit.period
end

-- The window that counts now. After a small step back that is the one that was current.
local function look_at(start, stop, state, now, may_write)
  local seen = {now = now, start = start, stop = stop, count = state.count, set_back = false}
  if state.start < start then
    seen.count = 0
  elseif state.start > start then
    local set_back = state.start - now > max(stop - start, CLOCK_STEP)
    seen.set_back = may_write and set_back
    if not seen.set_back then seen.start, seen.stop = state.start, state.stop end
  end
  return seen
end

function window.look(limit, state, now, may_write)
  local start, stop = shown_at(limit, state, now)
  return look_at(start, stop, state, now, may_write)
end

local function store_window(state, seen)
  state.start, state.stop, state.count = seen.start, seen.stop, seen.count
end

function window.settle(_, state, seen) store_window(state, seen) end
function window.fits(limit, _, seen, cost) return cost <= room_left(limit.capacity, seen.count) end

function window.admit(_, state, seen, cost)
  seen.count = seen.count + cost
  store_window(state, seen)
  return seen.start, 0
end

function window.force(limit, state, seen, cost)
  local charged = min(cost, room_left(limit.capacity, seen.count))
  return charged, window.admit(limit, state, seen, charged)
end

function window.remaining(limit, seen) return room_left(limit.capacity, seen.count) end
function window.reset(_, _, seen) return seen.count > 0 and seen.stop - seen.now or 0 end
function window.retry(_, _, seen) return seen.stop - seen.now end

function window.refund(_, state, _, mark, _, cost, amount)
  if mark ~= state.start then return false end
  state.count = state.count - min(amount, cost, state.count)
  return true
end

function window.same_grid(from, to) return from.period == to.period end
function window.keeps_marks(_, _, change) return change == 'keep' end
function window.convert(from, to, state, _, change)
  state.count = converted_count(from.capacity, to.capacity, state.count, change)
end

local calendar = {}
calendar.fresh, calendar.read, calendar.text = window.fresh, window.read, window.text
calendar.settle, calendar.fits, calendar.admit = window.settle, window.fits, window.admit
calendar.force, calendar.refund = window.force, window.refund
calendar.remaining, calendar.reset, calendar.retry = window.remaining, window.reset, window.retry
calendar.keeps_marks, calendar.convert = window.keeps_marks, window.convert

function calendar.limit(limit, numbers, words)
  limit.capacity = numbers[1]
  limit.grid = words[4]
  return limit
end

-- Of another calendar's state the edges are not known; its own window tells whether it has passed.
function calendar.look(limit, state, now, may_write)
  local edges = limit.edges
  if not edges then
    local seen = look_at(state.start, state.stop, state, now, false)
    if now >= state.stop then seen.count = 0 end
    seen.set_back = may_write and state.start - now > max(state.stop - state.start, CLOCK_STEP)
    return seen
  end
  local i = now < edges[2] and 1 or now < edges[3] and 2 or 3
  return look_at(edges[i], edges[i + 1], state, now, may_write)
end

function calendar.same_grid(from, to) return from.grid == to.grid end

local first = {}
first.fresh, first.read, first.text = window.fresh, window.read, window.text
first.settle, first.fits, first.admit = window.settle, window.fits, window.admit
first.force, first.refund = window.force, window.refund
first.remaining, first.reset, first.retry = window.remaining, window.reset, window.retry
first.keeps_marks, first.convert = window.keeps_marks, window.convert
first.limit, first.same_grid = window.limit, window.same_grid

function first.look(limit, state, now, may_write)
  local seen = {now = now, start = state.start, count = state.count, set_back = false}
  if may_write and state.start - now > CLOCK_STEP then
    seen.start, seen.set_back = now, true
  end
  if seen.count == 0 or now - seen.start >= limit.period then seen.start, seen.count = now, 0 end
  seen.stop = seen.start + limit.period
  return seen
end
