-- sliding_counter: two windows, the previous one weighted by how much of it is still in sight.
-- core/sliding_counter.h.
--
--   limit   counter,FLAGS,amount,period
--   state   number of the current window since 1970, count of the previous one, its own count
--   mark    the number of the window that counted the charge
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local counter = {}

counter.limit = window.limit

function counter.fresh() return {index = 0, previous = 0, current = 0} end
function counter.read(numbers)
  return {index = numbers[1], previous = numbers[2], current = numbers[3]}
end
function counter.text(state)
  return string.format('%.0f %.0f %.0f', state.index, state.previous, state.current)
end

-- `elapsed` since the current window began; `behind` is how far the clock is behind that, after it
-- went back.
function counter.look(limit, state, now, may_write)
  local index, elapsed = divide(now, limit.period)
  local seen = {index = index, elapsed = elapsed, behind = 0, set_back = false}
  if index == state.index then
    seen.previous, seen.current = state.previous, state.current
  elseif index > state.index then
    seen.previous, seen.current = index == state.index + 1 and state.current or 0, 0
  else
    local behind = state.index * limit.period - now
    seen.set_back = may_write and behind > max(limit.period, CLOCK_STEP)
    if seen.set_back then
      -- Neither count may weigh less than it did before the step.
      seen.previous, seen.current = 0, state.previous + state.current
    else
      seen.index, seen.elapsed, seen.behind = state.index, 0, behind
      seen.previous, seen.current = state.previous, state.current
    end
  end
  return seen
end

local function store_counter(state, seen)
  state.index, state.previous, state.current = seen.index, seen.previous, seen.current
end

function counter.settle(_, state, seen) store_counter(state, seen) end

-- What the previous window weighs is rounded up; costs are whole, so the comparison is exact.
function counter.remaining(limit, seen)
  local weight = multiply_divide_up(seen.previous, limit.period - seen.elapsed, limit.period)
  return max(limit.capacity - weight - seen.current, 0)
end

function counter.fits(limit, _, seen, cost) return cost <= counter.remaining(limit, seen) end

function counter.admit(_, state, seen, cost)
  seen.current = seen.current + cost
  store_counter(state, seen)
  return seen.index, 0
end

function counter.force(limit, state, seen, cost)
  local charged = min(cost, room_left(limit.capacity, seen.current))
  return charged, counter.admit(limit, state, seen, charged)
end

function counter.reset(limit, _, seen)
  local stop = limit.period - seen.elapsed + seen.behind
  if seen.current > 0 then return stop + limit.period end
  return seen.previous > 0 and stop or 0
end

-- The time into a window from which `previous` weighs no more than `spare`.
local function enters_at(period, previous, spare)
  if previous == 0 then return 0 end
  return max(period - multiply_divide(spare, period, previous), 0)
end

function counter.retry(limit, _, seen, cost)
  local left = limit.capacity - seen.current - cost
  if left >= 0 then
    return enters_at(limit.period, seen.previous, left) - seen.elapsed + seen.behind
  end
  -- Not in this window; in the next one today's count is the previous one.
  return limit.period - seen.elapsed + seen.behind +
           enters_at(limit.period, seen.current, limit.capacity - cost)
end

function counter.refund(_, state, _, mark, _, cost, amount)
  local wanted = min(amount, cost)
  if mark == state.index then
    state.current = state.current - min(wanted, state.current)
  elseif mark == state.index - 1 then
    state.previous = state.previous - min(wanted, state.previous)
  else
    return false
  end
  return true
end

function counter.same_grid(from, to) return from.period == to.period end
function counter.keeps_marks(_, _, change) return change == 'keep' end
function counter.convert(from, to, state, seen, change)
  seen.previous = converted_count(from.capacity, to.capacity, seen.previous, change)
  seen.current = converted_count(from.capacity, to.capacity, seen.current, change)
  store_counter(state, seen)
end
