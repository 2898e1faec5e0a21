-- What a call reads, writes and replies; its arguments and its reply are told in main.lua.

local ALLOWED, REJECTED, NEVER = 0, 1, 2
local STATUS_REJECTED, STATUS_DONE, STATUS_REPEATED, STATUS_CLOCKS_DIFFER = 0, 1, 2, 3

-- A key outlives what it counts by as much as the clocks of a primary and its replica may differ.
local KEPT_LONGER = 5000000

-- ---- arguments --------------------------------------------------------------------------------

-- Records of arguments, each with where the next one begins.
local records = {}

function records.check(args, i)
  local limit = limit_of(args[i + 1])
  if args[i + 5] ~= '-' then limit.edges = numbers_in(args[i + 5]) end
  local check = {
    name = args[i], limit = limit, change = args[i + 2], cost = tonumber(args[i + 3]),
    mode = args[i + 4],
  }
  return check, i + 6
end

local function charge_in(args, i)
  return {
    mark = tonumber(args[i]), ticks = tonumber(args[i + 1]), cost = tonumber(args[i + 2]),
    edition = tonumber(args[i + 3]),
  }
end

function records.correction(args, i)
  local check = records.check(args, i)
  check.charge = charge_in(args, i + 6)
  return check, i + 10
end

function records.reservation(args, i)
  local check = records.check(args, i)
  check.cap, check.duration = tonumber(args[i + 6]), tonumber(args[i + 7])
  return check, i + 8
end

function records.refund(args, i)
  return {name = args[i], amount = tonumber(args[i + 1]), charge = charge_in(args, i + 2)}, i + 6
end

function records.give_back(args, i)
  return {name = args[i], sequence = tonumber(args[i + 1]), amount = tonumber(args[i + 2])}, i + 3
end

-- ---- the key ----------------------------------------------------------------------------------

-- Reads all fields of the call at once.
local function read_values(call)
  local names = {}
  for i, check in ipairs(call.checks) do names[i] = check.name end
  if call.session ~= '-' then names[#names + 1] = session_field(call.session) end
  call.values = redis.call('HMGET', call.key, unpack(names))
  call.may_be_new = true
  for i = 1, #names do
    if call.values[i] then call.may_be_new = false end
  end
end

local function open(call, i, check) return opened(call.key, check.name, call.values[i]) end

-- The field under the check's limit.
local function open_for(call, i, check, may_write)
  local field = open(call, i, check)
  bring_to(field, check.limit, check.change, call.now, may_write)
  return field
end

-- The field is written when the call ends; the key stays until it has nothing to say.
local function write_later(call, field, lasts)
  call.written[#call.written + 1] = field
  call.lasts = max(call.lasts, lasts)
end

-- Also in the middle of a call, where what follows reads it back.
local function write_fields(call, put_more)
  local values, gone = {}, {}
  for _, field in ipairs(call.written) do put(field, values, gone) end
  call.written = {}
  if put_more then put_more(values, gone) end
  -- Chunks of a state that was dropped may have the names of those that take their place.
  if #gone > 0 then redis.call('HDEL', call.key, unpack(gone)) end
  if #values > 0 then
    redis.call('HSET', call.key, unpack(values))
    keep_for(call.key, call.lasts + KEPT_LONGER, call.may_be_new)
  end
end

local function write_all(call)
  write_fields(call, function(values, gone)
    for _, change in ipairs(call.grants) do grants.put(change.list, change.name, values, gone) end
    put_session(call, values, gone)
  end)
end

-- ---- answers ----------------------------------------------------------------------------------

-- The nine numbers of a limit.
local function reply_with(call, answer)
  local reply = call.reply
  local n = #reply
  local charged = answer.charged or 0
  reply[n + 1], reply[n + 2], reply[n + 3] = answer.verdict, answer.remaining, answer.reset
  reply[n + 4], reply[n + 5] = answer.retry or -1, answer.delay or 0
  reply[n + 6] = charged > 0 and answer.mark or 0
  reply[n + 7] = charged > 0 and answer.ticks or 0
  reply[n + 8] = charged
  reply[n + 9] = charged > 0 and answer.edition or 0
end

-- What a limit says of its state.
local function answer_of(limit, field, seen, verdict)
  return {
    verdict = verdict, remaining = limit.kind.remaining(limit, seen),
    reset = limit.kind.reset(limit, field.state, seen), edition = field.edition,
  }
end

-- What is left, without a charge.
local function peeked(call, i, check, verdict)
  local field = open_for(call, i, check, false)
  local seen = check.limit.kind.look(check.limit, field.state, call.now, false)
  return answer_of(check.limit, field, seen, verdict or ALLOWED)
end

local function admitted(call, check)
  local limit, field, seen = check.limit, check.field, check.seen
  local mark, ticks = limit.kind.admit(limit, field.state, seen, check.cost)
  local answer = answer_of(limit, field, seen, ALLOWED)
  answer.delay = limit.kind.delay and limit.kind.delay(limit, seen)
  if check.mode ~= 'probe' then
    answer.mark, answer.ticks, answer.charged = mark, ticks, check.cost
    write_later(call, field, answer.reset)
  end
  return answer
end

-- A rejection writes where rejected requests count, and where the clock was set back.
local function rejected(call, check)
  local limit, field, seen = check.limit, check.field, check.seen
  local kind = limit.kind
  local writes = field.moved or seen.set_back or limit.count_rejected
  if seen.set_back then kind.settle(limit, field.state, seen) end
  if limit.count_rejected then kind.force(limit, field.state, seen, check.cost) end
  local answer = answer_of(limit, field, seen, REJECTED)
  answer.retry = kind.retry(limit, field.state, seen, check.cost)
  if writes then write_later(call, field, answer.reset) end
  return answer
end

-- A cost that cannot be rejected any more.
local function forced(call, i, check, cost)
  local limit, kind = check.limit, check.limit.kind
  local field = open_for(call, i, check, true)
  local seen = kind.look(limit, field.state, call.now, true)
  if seen.set_back then kind.settle(limit, field.state, seen) end
  local charged, mark, ticks = kind.force(limit, field.state, seen, cost)
  local answer = answer_of(limit, field, seen, ALLOWED)
  answer.mark, answer.ticks, answer.charged = mark, ticks, charged
  write_later(call, field, answer.reset)
  return answer
end
