-- Buckets: token_bucket, leaky_bucket and gcra (`bucket`), and token_bucket that refills at the end
-- of each period (`interval`). The meter of core/meter.h.
--
-- A level rises with every admitted cost and drains with time. The state is where it will have
-- drained (the theoretical arrival time), as two words: whole steps of the clock, and ticks beyond
-- them. A bucket's step is a microsecond of 2^f ticks; an interval's step is a period and its ticks
-- are tokens. The level, the difference to the clock's step, is below 2^53 ticks: the compiler has
-- proven it for `possible`, and what lies further ahead is not multiplied out.
--
--   limit   bucket,FLAGS,f,ticks per token,burst,max_delay
--           interval,FLAGS,amount,period,burst
--   state   steps, ticks; steps and ticks refunded so far, which keep marks in order (core/meter.h)
--   mark    steps and ticks: where the charge ended, plus what was refunded up to then
--
-- The refunded steps grow by a refund or by as much as a clock is set back; clocks would have to be
-- set back by 140 years in sum before they leave the exact numbers.
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local bucket = {}

local function metered(limit)
  limit.room = limit.unit * limit.capacity
  limit.possible_steps = divide_up(limit.possible, limit.radix)
  return limit
end

function bucket.limit(limit, numbers)
  limit.radix = 2 ^ numbers[1]
  limit.unit = numbers[2]
  limit.capacity = numbers[3]
  limit.full = limit.unit * limit.capacity + numbers[4] * limit.radix
  limit.possible = limit.full + CLOCK_STEP * limit.radix
  return metered(limit)
end

local interval = {}

function interval.limit(limit, numbers)
  limit.radix = numbers[1]
  limit.unit = 1
  limit.period = numbers[2]
  limit.capacity = numbers[3]
  limit.full = limit.capacity
  limit.possible = limit.full + divide_up(CLOCK_STEP, limit.period) * limit.radix
  return metered(limit)
end

function bucket.fresh()
  return {steps = 0, ticks = 0, refunded_steps = 0, refunded_ticks = 0}
end

function bucket.read(numbers)
  return {
    steps = numbers[1], ticks = numbers[2],
    refunded_steps = numbers[3], refunded_ticks = numbers[4],
  }
end

function bucket.text(state)
  return string.format('%.0f %.0f %.0f %.0f', state.steps, state.ticks, state.refunded_steps,
                       state.refunded_ticks)
end

-- Two words in sum; the ticks of each lie between -radix and radix.
local function sum_of(radix, steps, ticks, more_steps, more_ticks)
  steps, ticks = steps + more_steps, ticks + more_ticks
  if ticks < 0 then return steps - 1, ticks + radix end
  if ticks >= radix then return steps + 1, ticks - radix end
  return steps, ticks
end

local function set_level(limit, state, seen, level)
  local steps, ticks = divide(level, limit.radix)
  state.steps, state.ticks = seen.step + steps, ticks
  seen.level, seen.steps = level, ticks > 0 and steps + 1 or steps
end

-- `steps` is the level in steps of the clock, rounded up. A state too far ahead for its ticks to be
-- counted is full, and its steps are told without them.
function bucket.look(limit, state, now, may_write)
  local step = limit.period and divide(now, limit.period) or now
  local seen = {now = now, step = step, level = 0, steps = 0, set_back = false}
  local ahead = state.steps - step
  if ahead < 0 then return seen end
  local far = ahead > limit.possible_steps
  if not far then seen.level = ahead * limit.radix + state.ticks end
  seen.set_back = may_write and (far or seen.level > limit.possible)
  if far or seen.set_back then seen.level = limit.full end
  seen.steps = state.ticks > 0 and ahead + 1 or ahead
  return seen
end

-- Where a state goes on after the clock was set back: full as of now. The whole backlog moves, and
-- the marks with it.
function bucket.settle(limit, state, seen)
  if not seen.set_back then return end
  local steps, ticks = state.steps, state.ticks
  set_level(limit, state, seen, limit.full)
  state.refunded_steps, state.refunded_ticks =
    sum_of(limit.radix, state.refunded_steps, state.refunded_ticks,
           sum_of(limit.radix, steps, ticks, -state.steps, -state.ticks))
  seen.set_back = false
end

function bucket.fits(limit, _, seen, cost) return seen.level + cost * limit.unit <= limit.full end

local function mark_of(limit, state)
  return sum_of(limit.radix, state.steps, state.ticks, state.refunded_steps, state.refunded_ticks)
end

function bucket.admit(limit, state, seen, cost)
  set_level(limit, state, seen, seen.level + cost * limit.unit)
  return mark_of(limit, state)
end

-- The level after a forced charge: up to the capacity, and never down.
local function saturated(limit, level, cost)
  local risen = level + min(cost, limit.capacity) * limit.unit
  return max(level, min(risen, limit.room))
end

function bucket.force(limit, state, seen, cost)
  local before = seen.level
  set_level(limit, state, seen, saturated(limit, before, cost))
  local charged = divide(seen.level - before, limit.unit)
  return charged, mark_of(limit, state)
end

function bucket.remaining(limit, seen)
  return (divide(max(limit.room - seen.level, 0), limit.unit))
end

function bucket.reset(_, _, seen) return seen.steps end
function bucket.retry(limit, _, seen, cost)
  return divide_up(seen.level + cost * limit.unit - limit.full, limit.radix)
end
function bucket.delay(limit, seen)
  return divide_up(max(seen.level - limit.room, 0), limit.radix)
end

-- Of a charge, what has not drained. Releases that were promised stay as they are: with a queue,
-- charges count as drained up to the last of them.
function bucket.refund(limit, state, seen, mark, ticks, cost, amount)
  local moved = seen.set_back
  bucket.settle(limit, state, seen)
  local steps
  steps, ticks = sum_of(limit.radix, mark, ticks, -state.refunded_steps, -state.refunded_ticks)
  steps = steps - seen.step
  local whole = min(cost, limit.capacity) * limit.unit
  local left = 0
  if steps > limit.possible_steps then
    left = whole
  elseif steps >= 0 then
    left = steps * limit.radix + ticks - max(seen.level - limit.room, 0)
  end
  local held = max(0, min(left, whole))
  local given = min(min(amount, cost) * limit.unit, held, seen.level)
  if given == 0 then return moved end
  set_level(limit, state, seen, seen.level - given)
  local given_steps, given_ticks = divide(given, limit.radix)
  state.refunded_steps, state.refunded_ticks =
    sum_of(limit.radix, state.refunded_steps, state.refunded_ticks, given_steps, given_ticks)
  return true
end

function bucket.same_grid() return true end
function interval.same_grid(from, to) return from.period == to.period end

-- Marks are ticks of another size from here on.
function bucket.keeps_marks() return false end

-- The same cost used, or the same share of the capacity, rounded up and cut off at what the new
-- limit can hold.
function bucket.convert(from, to, state, seen, change)
  local level = 0
  if change == 'keep' then
    level = multiply_divide_up(seen.level, to.unit, from.unit)
  elseif change == 'proportional' then
    level = multiply_divide_up(seen.level, to.room, from.room)
  end
  set_level(to, state, seen, min(level, to.full))
  state.refunded_steps, state.refunded_ticks = 0, 0
end

interval.fresh, interval.read, interval.text = bucket.fresh, bucket.read, bucket.text
interval.look, interval.settle, interval.fits = bucket.look, bucket.settle, bucket.fits
interval.admit, interval.force, interval.refund = bucket.admit, bucket.force, bucket.refund
interval.remaining, interval.delay = bucket.remaining, bucket.delay
interval.keeps_marks, interval.convert = bucket.keeps_marks, bucket.convert

-- Until so many steps have ended.
local function period_ends(limit, seen, steps)
  if steps == 0 then return 0 end
  return limit.period * (seen.step + steps) - seen.now
end

function interval.reset(limit, _, seen) return period_ends(limit, seen, seen.steps) end
function interval.retry(limit, state, seen, cost)
  return period_ends(limit, seen, bucket.retry(limit, state, seen, cost))
end
