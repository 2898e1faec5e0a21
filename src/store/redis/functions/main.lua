-- All limits of one rule and one subject, decided in one step.
--
-- Keys       KEYS[1], the only one: a hash with one field per limit (field.lua), the chunks of large
--            states (chunks.lua), sessions (session.lua) and leases (lease.lua).
-- Arguments  operation, session, sequence (`-` and 0 where the call is not numbered), then a record
--            for each limit:
--
--            decide, peek, charge, settle   FIELD LIMIT CHANGE COST MODE EDGES
--            correct                        the same, then MARK TICKS CHARGED EDITION
--            reserve                        the same as decide, then CAP DURATION
--            refund, release, renew         FIELD AMOUNT MARK TICKS CHARGED EDITION
--            give_back                      FIELD SEQUENCE AMOUNT
--
--            LIMIT is the limit as text, CHANGE is keep, proportional or reset, MODE is charge or
--            probe (decide), lease or seat (reserve), EDGES are the four edges of the previous,
--            current and next window (calendar) or `-`. Times are microseconds.
-- Reply      status, server time; then, where the status is 0 or 1, nine numbers for each limit:
--            verdict (0 allowed, 1 rejected, 2 never), remaining, reset_after, retry_after (-1 none),
--            delay (reserve: for how long the grant may be used), and the charge: mark, ticks,
--            charged, edition.
--            Status 0 rejected, 1 done, 2 applied before, 3 the clocks differ (a calendar's windows
--            do not contain the server's time).
-- Atomic     Redis runs a call as a whole, nothing happens in between, and its effects reach replicas
--            as one transaction. All limits are looked at before the first one is written.

local ALLOWED, REJECTED, NEVER = 0, 1, 2
local STATUS_REJECTED, STATUS_DONE, STATUS_REPEATED, STATUS_CLOCKS_DIFFER = 0, 1, 2, 3

-- A key outlives what it counts by as much as the clocks of a primary and its replica may differ.
local KEPT_LONGER = 5000000

-- ---- arguments --------------------------------------------------------------------------------

local function edges_in(text) return text ~= '-' and numbers_in(text) or nil end

local function check_in(args, i)
  local limit = limit_of(args[i + 1])
  limit.edges = edges_in(args[i + 5])
  return {
    name = args[i], limit = limit, change = args[i + 2], cost = tonumber(args[i + 3]),
    mode = args[i + 4],
  }
end

local function charge_in(args, i)
  return {
    mark = tonumber(args[i]), ticks = tonumber(args[i + 1]), cost = tonumber(args[i + 2]),
    edition = tonumber(args[i + 3]),
  }
end

local records = {}

function records.check(args, i) return check_in(args, i), i + 6 end

function records.correction(args, i)
  local check = check_in(args, i)
  check.charge = charge_in(args, i + 6)
  return check, i + 10
end

function records.reservation(args, i)
  local check = check_in(args, i)
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

local function open(call, i, check)
  return opened(call.key, check.name, call.values[i])
end

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
  if put_more then put_more(values, gone) end
  call.written = {}
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

local function answer(call, verdict, remaining, reset, retry, delay, mark, ticks, charged, edition)
  local reply = call.reply
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = verdict, remaining, reset
  reply[n + 4], reply[n + 5] = retry, delay
  reply[n + 6], reply[n + 7], reply[n + 8] = mark or 0, ticks or 0, charged or 0
  reply[n + 9] = charged and charged > 0 and edition or 0
end

-- What is left, without a charge.
local function answer_peek(call, i, check, verdict)
  local limit = check.limit
  local field = open_for(call, i, check, false)
  local seen = limit.kind.look(limit, field.state, call.now, false)
  answer(call, verdict or ALLOWED, limit.kind.remaining(limit, seen),
         limit.kind.reset(limit, field.state, seen), -1, 0)
end

local function answer_admitted(call, check)
  local limit, field, seen = check.limit, check.field, check.seen
  local kind = limit.kind
  local mark, ticks = kind.admit(limit, field.state, seen, check.cost)
  local delay = kind.delay and kind.delay(limit, seen) or 0
  local reset = kind.reset(limit, field.state, seen)
  local charged = check.mode ~= 'probe' and check.cost or 0
  if charged > 0 then write_later(call, field, reset) else mark, ticks = 0, 0 end
  answer(call, ALLOWED, kind.remaining(limit, seen), reset, -1, delay, mark, ticks, charged,
         field.edition)
end

-- A rejection writes where rejected requests count, and where the clock was set back.
local function answer_rejected(call, check)
  local limit, field, seen = check.limit, check.field, check.seen
  local kind = limit.kind
  local writes = field.moved or seen.set_back or limit.count_rejected
  if seen.set_back then kind.settle(limit, field.state, seen) end
  if limit.count_rejected then kind.force(limit, field.state, seen, check.cost) end
  local reset = kind.reset(limit, field.state, seen)
  if writes then write_later(call, field, reset) end
  answer(call, REJECTED, kind.remaining(limit, seen), reset,
         kind.retry(limit, field.state, seen, check.cost), 0)
end

-- A cost that cannot be rejected any more.
local function answer_forced(call, i, check, cost)
  local limit, kind = check.limit, check.limit.kind
  local field = open_for(call, i, check, true)
  local seen = kind.look(limit, field.state, call.now, true)
  if seen.set_back then kind.settle(limit, field.state, seen) end
  local charged, mark, ticks = kind.force(limit, field.state, seen, cost)
  local reset = kind.reset(limit, field.state, seen)
  write_later(call, field, reset)
  answer(call, ALLOWED, kind.remaining(limit, seen), reset, -1, 0, charged > 0 and mark or 0,
         charged > 0 and ticks or 0, charged, field.edition)
end

-- ---- operations -------------------------------------------------------------------------------

local function verdict_of(check, now, field)
  local limit, cost = check.limit, check.cost
  check.field = field
  check.seen = limit.kind.look(limit, field.state, now, cost > 0 and cost <= limit.capacity)
  if cost == 0 then return ALLOWED end
  if cost > limit.capacity then return NEVER end
  return limit.kind.fits(limit, field.state, check.seen, cost) and ALLOWED or REJECTED
end

-- All or nothing: every limit is looked at, then all are charged or none.
local function decide(call)
  local status = STATUS_DONE
  for i, check in ipairs(call.checks) do
    local may_write = check.cost > 0 and check.cost <= check.limit.capacity
    check.verdict = verdict_of(check, call.now, open_for(call, i, check, may_write))
    if check.verdict ~= ALLOWED then status = STATUS_REJECTED end
  end
  for i, check in ipairs(call.checks) do
    if check.verdict == REJECTED then
      answer_rejected(call, check)
    elseif check.verdict == ALLOWED and status == STATUS_DONE and check.cost > 0 then
      answer_admitted(call, check)
    else
      answer_peek(call, i, check, check.verdict)
    end
  end
  return status
end

local function peek(call)
  for i, check in ipairs(call.checks) do answer_peek(call, i, check) end
  return STATUS_DONE
end

local function charge(call)
  for i, check in ipairs(call.checks) do answer_forced(call, i, check, check.cost) end
  return STATUS_DONE
end

-- Refunds go to the limit that wrote the field, whatever the limit is today.
local function refunded(call, field, paid, amount)
  local mark = field.limit and known_mark(field, paid.mark, paid.edition)
  if not mark or paid.cost == 0 then return end
  local limit, kind = field.limit, field.limit.kind
  local seen = kind.look(limit, field.state, call.now, true)
  if kind.refund(limit, field.state, seen, mark, paid.ticks, paid.cost, amount) then
    write_later(call, field, 0)
  end
end

local function refund(call)
  for i, check in ipairs(call.checks) do
    refunded(call, open(call, i, check), check.charge, check.amount)
  end
  return STATUS_DONE
end

-- The cost turned out to be another one. Less: the difference is refunded, and the charge names what
-- is left. More: the difference is charged, as much of it as fits, and the charge names that part;
-- the first charge stays what it was.
local function correct(call)
  for i, check in ipairs(call.checks) do
    local paid = check.charge
    if check.cost > paid.cost then
      answer_forced(call, i, check, check.cost - paid.cost)
    else
      refunded(call, open(call, i, check), paid, paid.cost - check.cost)
      write_fields(call)
      call.values[i] = redis.call('HGET', call.key, check.name)
      local n = #call.reply
      answer_peek(call, i, check)
      call.reply[n + 6], call.reply[n + 7], call.reply[n + 8] = paid.mark, paid.ticks, check.cost
      call.reply[n + 9] = paid.edition
    end
  end
  return STATUS_DONE
end

-- Slots live on; what has lapsed comes back as nothing. Other charges need no renewal and come back
-- as they were.
local function renew(call)
  for i, check in ipairs(call.checks) do
    local paid, field = check.charge, open(call, i, check)
    local limit = field.limit
    if limit and limit.kind ~= slots then
      answer(call, ALLOWED, 0, 0, -1, 0, paid.mark, paid.ticks, paid.cost, paid.edition)
    else
      local mark = limit and known_mark(field, paid.mark, paid.edition)
      local renewed, now_mark = 0, 0
      local lasts = 0
      if mark then
        local seen = slots.look(limit, field.state, call.now, true)
        renewed, now_mark = slots.renew(limit, field.state, seen, mark, paid.cost)
        lasts = slots.reset(limit, field.state, seen)
        if renewed > 0 then write_later(call, field, lasts) end
      end
      answer(call, ALLOWED, 0, lasts, -1, 0, now_mark, 0, renewed, field.edition)
    end
  end
  return STATUS_DONE
end

-- ---- leases -----------------------------------------------------------------------------------

-- A grant ends with its window.
local function longest_use(seen, duration)
  return seen.stop and min(duration, seen.stop - seen.now) or duration
end

local function grant(call, check, list, tokens, mark, ticks, edition)
  local usable = longest_use(check.seen, check.duration)
  list[#list + 1] = {
    session = call.session, sequence = call.sequence, tokens = tokens,
    ends = call.now + ends_after(usable), mark = mark, ticks = ticks, edition = edition,
  }
  call.lasts = max(call.lasts, ends_after(usable))
  return usable
end

-- As many tokens as there are, up to COST. None: as a rejection of one.
local function reserve(call)
  local status = STATUS_DONE
  for i, check in ipairs(call.checks) do
    local limit, kind = check.limit, check.limit.kind
    local list = grants.read(call.key, check.name, call.now)
    local field = open_for(call, i, check, true)
    check.field, check.seen = field, kind.look(limit, field.state, call.now, true)
    local tokens = min(check.cost, max(check.cap - grants.sum(list), 0))
    local is_seat = check.mode == 'seat'
    if not is_seat then tokens = min(tokens, kind.remaining(limit, check.seen)) end
    check.cost = max(tokens, 1)
    if tokens == 0 and not kind.fits(limit, field.state, check.seen, 1) then
      answer_rejected(call, check)
      status = STATUS_REJECTED
    elseif tokens == 0 then
      answer_peek(call, i, check, REJECTED)
      status = STATUS_REJECTED
    elseif is_seat then
      answer_peek(call, i, check)
      local n = #call.reply
      call.reply[n - 4] = grant(call, check, list, tokens, 0, 0, 0)
      call.reply[n - 1] = tokens
    else
      answer_admitted(call, check)
      local n = #call.reply
      call.reply[n - 4] =
        grant(call, check, list, tokens, call.reply[n - 3], call.reply[n - 2], field.edition)
    end
    call.grants[#call.grants + 1] = {list = list, name = check.name}
  end
  return status
end

-- A reservation that was sent again: the grant it got, if that has not ended.
local function reserved_before(call)
  for i, check in ipairs(call.checks) do
    local list = grants.read(call.key, check.name, call.now)
    local found = grants.find(list, call.session, call.sequence)
    if not found then return STATUS_REPEATED end
    answer_peek(call, i, check)
    local n = #call.reply
    call.reply[n - 4] = usable_for(found.ends - call.now)
    call.reply[n - 3], call.reply[n - 2], call.reply[n - 1] = found.mark, found.ticks, found.tokens
    call.reply[n] = found.edition
  end
  return STATUS_DONE
end

local function give_back(call)
  for i, check in ipairs(call.checks) do
    local list = grants.read(call.key, check.name, call.now)
    local found, position = grants.find(list, call.session, check.sequence)
    if found then
      local amount = min(check.amount, found.tokens)
      if found.edition > 0 then
        local paid = {
          mark = found.mark, ticks = found.ticks, cost = found.tokens, edition = found.edition,
        }
        refunded(call, open(call, i, check), paid, amount)
      end
      found.tokens = found.tokens - amount
      if found.tokens == 0 then table.remove(list, position) end
      call.grants[#call.grants + 1] = {list = list, name = check.name}
    end
  end
  return STATUS_DONE
end

-- ---- the call ---------------------------------------------------------------------------------

local operations = {
  decide = {run = decide, record = records.check},
  peek = {run = peek, record = records.check},
  charge = {run = charge, record = records.check},
  settle = {run = charge, record = records.check},  -- what was spent on a seat, or in an outage
  correct = {run = correct, record = records.correction},
  refund = {run = refund, record = records.refund},
  release = {run = refund, record = records.refund},
  renew = {run = renew, record = records.refund},
  reserve = {run = reserve, record = records.reservation, again = reserved_before},
  give_back = {run = give_back, record = records.give_back},
}

local function clocks_differ(call)
  for _, check in ipairs(call.checks) do
    local edges = check.limit and check.limit.edges
    if edges and (call.now < edges[1] or call.now >= edges[4]) then return true end
  end
  return false
end

local function run(keys, args)
  local call = {
    key = keys[1], now = server_time(args), session = args[2], sequence = tonumber(args[3]),
    checks = {}, written = {}, grants = {}, lasts = 0,
  }
  local operation = operations[args[1]]
  if not operation then return redis.error_reply('SLUICE unknown operation ' .. tostring(args[1])) end
  local i = 4
  while i <= #args do call.checks[#call.checks + 1], i = operation.record(args, i) end
  call.reply = {STATUS_DONE, call.now}
  if clocks_differ(call) then return {STATUS_CLOCKS_DIFFER, call.now} end

  begin_call(call.key, call)
  read_values(call)
  if is_repeated(call, call.values[#call.checks + 1]) then
    call.reply[1] = operation.again and operation.again(call) or STATUS_REPEATED
    return call.reply[1] == STATUS_REPEATED and {STATUS_REPEATED, call.now} or call.reply
  end
  call.reply[1] = operation.run(call)
  write_all(call)
  return call.reply
end

-- Loaded as a library, or run as a script where functions are not allowed. The name carries a hash
-- of this text: another release has another name, and both run side by side.
if redis.register_function then
  redis.register_function('@NAME@', run)
  redis.register_function({
    function_name = '@NAME@_ro', callback = run, flags = {'no-writes'},
  })
else
  return run(KEYS, ARGV)
end
