-- One limit of a key: a field of its hash.
--
-- The value is the limit that wrote it, its edition, its state:
--
--     bucket,-,0,100000,10,0 1767225600000000 1767225600300000 0 0 0
--
-- The edition is the instant at which the field was made, or made anew by an edit that marks do not
-- survive: a charge names its edition, and a field that was recreated never honours a mark from
-- before. FLAGS are `r` (rejected requests count), `s` (stands in for another limit: its state is
-- kept, whatever on_change says), or `-`.
--
-- A kind of limit has these methods. `state` belongs to the call and may be changed; unless it is
-- put into the key, the change is forgotten.
--
--   limit(limit, numbers, words)       what its text says
--   fresh(key, field, limit)           the state of an idle key
--   read(numbers, key, field, limit, count), text(state)
--   look(limit, state, now, may_write) the state at an instant; changes nothing
--   settle(limit, state, seen)         moves a state to a clock that was set back
--   fits(limit, state, seen, cost)
--   admit(limit, state, seen, cost)    answers the mark, in two words
--   force(limit, state, seen, cost)    saturates; answers what was charged, and the mark
--   refund(limit, state, seen, mark, ticks, cost, amount)   answers whether the state changed
--   remaining(limit, seen), reset(limit, state, seen), retry(limit, state, seen, cost)
--   same_grid(from, to), keeps_marks(from, to, change), convert(from, to, state, seen, change, ...)

local kinds = {
  bucket = bucket, interval = interval, window = window, calendar = calendar, first = first,
  counter = counter, log = log, slices = slices, slots = slots,
}

-- Limits that were parsed before, by their texts: half the time of a call goes into that. A library
-- keeps them between calls, at most a thousand. They never change, except for a calendar's, which
-- carry the edges of a call and are not kept.
local known_limits, known_count = {}, 0

local function parsed_limit(text)
  local words, numbers = {}, {}
  for word in string.gmatch(text, '[^,]+') do
    words[#words + 1] = word
    numbers[#words - 2] = tonumber(word)
  end
  local kind = kinds[words[1]]
  local limit = {
    kind = kind, text = text, count_rejected = string.find(words[2], 'r', 1, true),
    stands_in = string.find(words[2], 's', 1, true),
  }
  return kind.limit(limit, numbers, words)
end

local function limit_of(text)
  local limit = known_limits[text]
  if limit then return limit end
  limit = parsed_limit(text)
  if limit.grid then return limit end
  if known_count == 1000 then known_limits, known_count = {}, 0 end
  known_limits[text], known_count = limit, known_count + 1
  return limit
end

-- The field as it was written, or an empty one.
local function opened(key, name, value)
  local field = {key = key, name = name}
  if not value then return field end
  local text, edition, rest = string.match(value, '^(%S+) (%d+) (.*)$')
  local numbers, count = numbers_in(rest)
  field.limit = limit_of(text)
  field.edition = tonumber(edition)
  field.state = field.limit.kind.read(numbers, key, name, field.limit, count)
  return field
end

-- The list that a chunked state keeps.
local function chunks_of(field)
  if not field.limit.kind.chunked then return nil end
  return field.state.entries or field.state.counters
end

-- What was used is charged anew, at this instant.
local function start_over(field, to, now, change)
  local from = field.limit
  local seen = from.kind.look(from, field.state, now, false)
  local used = from.capacity - from.kind.remaining(from, seen)
  if from.kind.chunked then
    from.kind.clear(field.state)
    field.dropped = chunks_of(field)
  end
  field.limit, field.state = to, to.kind.fresh(field.key, field.name, to)
  local kept = converted_count(from.capacity, to.capacity, used, change)
  to.kind.force(to, field.state, to.kind.look(to, field.state, now, true), kept)
end

-- Makes the state one of this limit. All of it happens in memory: the caller puts the field into
-- the key only where its step writes, or where a clock that was set back was found (`moved`), so
-- that a client that is always rejected is not locked out for the size of the jump.
local function bring_to(field, to, change, now, may_write)
  local from = field.limit
  if not from then
    field.limit, field.state = to, to.kind.fresh(field.key, field.name, to)
    field.edition, field.is_new = now, true
    return
  end
  field.limit = to
  if from.text == to.text then return end
  field.limit = from
  if from.grid and from.grid == to.grid then from.edges = to.edges end
  if from.stands_in or to.stands_in then change = 'keep' end

  local kind = from.kind
  local seen = kind.look(from, field.state, now, true)
  if seen.set_back and may_write then
    kind.settle(from, field.state, seen)
    field.moved = true
    seen = kind.look(from, field.state, now, true)
  end
  local same_grid = kind == to.kind and kind.same_grid(from, to)
  local editions = {ended = field.edition, began = max(now, field.edition + 1)}
  if same_grid then
    kind.convert(from, to, field.state, seen, change, editions)
    field.limit = to
  else
    start_over(field, to, now, change)
  end
  if not (same_grid and kind.keeps_marks(from, to, change)) then field.edition = editions.began end
end

-- The mark of a charge that this field still knows, or nothing.
local function known_mark(field, mark, edition)
  if field.edition and field.limit.kind == slots then
    mark, edition = slots.mark_today(field.state, mark, edition)
  end
  return edition == field.edition and mark or nil
end

local function put(field, values, gone)
  if field.dropped then chunks.put(field.dropped, values, gone) end
  local list = chunks_of(field)
  if list then chunks.put(list, values, gone) end
  values[#values + 1] = field.name
  values[#values + 1] =
    field.limit.text .. ' ' .. text_of(field.edition) .. ' ' .. field.limit.kind.text(field.state)
end
