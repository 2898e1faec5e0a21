-- Whole numbers in doubles, exact below 2^53.
--
-- Lua 5.1 has no integers. Sums and products below 2^53 are exact, `/` and `%` are not: a quotient
-- just below a whole number may round up to it. So every division goes through fmod, which is
-- exact, and products that could be larger are never formed.

-- While a library is loaded, Redis shows it no functions but its own: math, string, pairs and the
-- like are there only when a call runs. Hence no use of them outside of functions, in any file.
local function max(a, b) return a < b and b or a end
local function min(a, b, c)
  if b < a then a = b end
  return c and c < a and c or a
end

-- A clock that goes back by more than this was set; less is a slew, or another server of the same
-- shard. Microseconds; core/step.h has the same number.
local CLOCK_STEP = 60000000

-- Quotient and remainder, rounded down; 0 <= a < 2^53, 0 < b.
local function divide(a, b)
  local rest = math.fmod(a, b)
  return (a - rest) / b, rest
end

local function divide_up(a, b)
  local quotient, rest = divide(a, b)
  return rest > 0 and quotient + 1 or quotient
end

-- Quotient and remainder of a * b / c, digit by digit where the product does not fit. None is
-- negative, 0 < c < 2^46. Exact while the quotient is below 2^53; beyond that it is some number of
-- at least 2^53, which is enough for a comparison.
local function multiply_divide(a, b, c)
  if a * b < 9007199254740992 then return divide(a * b, c) end
  local whole, part = divide(b, c)
  local scale = 1
  while scale * 64 <= a do scale = scale * 64 end
  local quotient, rest = 0, 0
  while scale >= 1 do
    local digit, step
    digit, a = divide(a, scale)
    step, rest = divide(rest * 64 + digit * part, c)
    quotient = quotient * 64 + step + digit * whole
    scale = scale / 64
  end
  return quotient, rest
end

local function multiply_divide_up(a, b, c)
  local quotient, rest = multiply_divide(a, b, c)
  return rest > 0 and quotient + 1 or quotient
end

-- A number as text: tostring() keeps 14 digits only.
local function text_of(number) return string.format('%.0f', number) end

-- All numbers of a text.
local function numbers_in(text)
  local numbers, count = {}, 0
  for word in string.gmatch(text, '%S+') do
    count = count + 1
    numbers[count] = tonumber(word)
  end
  return numbers, count
end

-- What is left of an amount. More may be in use than the amount after the limit was lowered.
local function room_left(amount, used) return amount - min(amount, used) end

-- A count under an edited limit: the same number (keep), the same share rounded up (proportional),
-- or nothing (reset).
local function converted_count(from, to, count, change)
  if change == 'keep' then return count end
  if change == 'reset' then return 0 end
  return multiply_divide_up(min(count, from), to, from)
end
