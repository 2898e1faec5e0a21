-- concurrency: how many requests are in flight. core/concurrency.h.
--
-- Time is cut into generations of one slot_ttl; the state counts the slots that were taken or
-- renewed in this generation and in the one before. An edit of slot_ttl moves all slots into the
-- current generation of the new one; the last four edits are remembered, so that slots taken before
-- them can be renewed and released.
--
--   limit   slots,FLAGS,max_concurrent,slot_ttl
--   state   generation, slots of the one before, its own slots; then four numbers for each edit:
--           the edition that it ended, the oldest generation alive then, where those went, the
--           edition that it began
--   mark    the generation in which the slots were taken or renewed
--
-- Keys, arguments and reply, and why a call is atomic: main.lua.

local slots = {}

local EDITS = 4

function slots.limit(limit, numbers)
  limit.capacity = numbers[1]
  limit.ttl = numbers[2]
  return limit
end

function slots.fresh() return {generation = 0, previous = 0, current = 0, edits = {}} end
function slots.read(numbers, _, _, _, count)
  local state = {generation = numbers[1], previous = numbers[2], current = numbers[3], edits = {}}
  for i = 4, count, 4 do
    state.edits[#state.edits + 1] = {
      ended = numbers[i], alive = numbers[i + 1], generation = numbers[i + 2],
      began = numbers[i + 3],
    }
  end
  return state
end
function slots.text(state)
  local words = {text_of(state.generation), text_of(state.previous), text_of(state.current)}
  for _, edit in ipairs(state.edits) do
    words[#words + 1] = text_of(edit.ended)
    words[#words + 1] = text_of(edit.alive)
    words[#words + 1] = text_of(edit.generation)
    words[#words + 1] = text_of(edit.began)
  end
  return table.concat(words, ' ')
end

function slots.look(limit, state, now, may_write)
  local generation = divide(now, limit.ttl)
  local seen = {now = now, generation = state.generation, previous = state.previous,
                current = state.current, set_back = false}
  if generation == state.generation + 1 then
    seen.generation, seen.previous, seen.current = generation, state.current, 0
  elseif generation > state.generation then
    seen.generation, seen.previous, seen.current = generation, 0, 0
  elseif generation < state.generation then
    local ahead = limit.ttl * state.generation - now
    seen.set_back = may_write and ahead > max(limit.ttl, CLOCK_STEP)
    if seen.set_back then
      seen.generation, seen.previous = generation, 0
      seen.current = state.previous + state.current
    end
  end
  return seen
end

function slots.settle(_, state, seen)
  state.generation, state.previous, state.current = seen.generation, seen.previous, seen.current
end

function slots.remaining(limit, seen)
  return room_left(limit.capacity, seen.previous + seen.current)
end
function slots.fits(limit, _, seen, cost) return cost <= slots.remaining(limit, seen) end

function slots.admit(limit, state, seen, cost)
  seen.current = seen.current + cost
  slots.settle(limit, state, seen)
  return seen.generation, 0
end

function slots.force(limit, state, seen, cost)
  local taken = min(cost, slots.remaining(limit, seen))
  return taken, slots.admit(limit, state, seen, taken)
end

-- When the slots lapse if none is renewed.
function slots.reset(limit, _, seen)
  local ends = limit.ttl * (seen.generation + 1) - seen.now
  if seen.current > 0 then return ends + limit.ttl end
  return seen.previous > 0 and ends or 0
end

-- The store cannot know when a holder will finish.
function slots.retry() return -1 end

-- Takes up to `wanted` slots of a generation out of the counters and says how many there were.
local function take_out(seen, mark, wanted)
  if mark == seen.generation then
    local taken = min(wanted, seen.current)
    seen.current = seen.current - taken
    return taken
  elseif mark == seen.generation - 1 then
    local taken = min(wanted, seen.previous)
    seen.previous = seen.previous - taken
    return taken
  end
  return 0
end

function slots.refund(limit, state, seen, mark, _, cost, amount)
  if take_out(seen, mark, min(amount, cost)) == 0 then return false end
  slots.settle(limit, state, seen)
  return true
end

-- Moves slots into the current generation; 0 where they had lapsed.
function slots.renew(limit, state, seen, mark, cost)
  local renewed = take_out(seen, mark, cost)
  if renewed == 0 then return 0, 0 end
  return renewed, slots.admit(limit, state, seen, renewed)
end

-- A mark of an earlier edition, as one of the field's own, or nothing if it is void.
function slots.mark_today(state, mark, edition)
  for _, edit in ipairs(state.edits) do
    if edit.ended == edition then
      if mark < edit.alive then return nil end
      mark, edition = edit.generation, edit.began
    end
  end
  return mark, edition
end

function slots.same_grid() return true end
function slots.keeps_marks(from, to) return from.ttl == to.ttl end

-- Requests in flight stay in flight, whatever on_change says.
function slots.convert(from, to, state, seen, _, editions)
  if from.ttl == to.ttl then return end
  local edits = state.edits
  local generation = max(state.generation, (divide(seen.now, from.ttl)))
  state.generation, state.previous = divide(seen.now, to.ttl), 0
  state.current = seen.previous + seen.current
  edits[#edits + 1] = {
    ended = editions.ended, alive = generation - 1, generation = state.generation,
    began = editions.began,
  }
  if #edits > EDITS then table.remove(edits, 1) end
end
