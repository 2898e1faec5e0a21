-- What can be asked of a key; main.lua tells which arguments each operation has. An operation
-- answers the call's status and puts into the reply what it says of each limit.

local function verdict_of(check, now, field)
  local limit, cost = check.limit, check.cost
  check.field = field
  check.seen = limit.kind.look(limit, field.state, now, cost > 0 and cost <= limit.capacity)
  if cost == 0 then return ALLOWED end
  if cost > limit.capacity then return NEVER end
  return limit.kind.fits(limit, field.state, check.seen, cost) and ALLOWED or REJECTED
end

-- All or nothing: every limit is looked at, then all are charged or none. Of a request that another
-- limit rejects, a limit says what is left without it.
local function decide(call)
  local status = STATUS_DONE
  for i, check in ipairs(call.checks) do
    local may_write = check.cost > 0 and check.cost <= check.limit.capacity
    check.verdict = verdict_of(check, call.now, open_for(call, i, check, may_write))
    if check.verdict ~= ALLOWED then status = STATUS_REJECTED end
  end
  for i, check in ipairs(call.checks) do
    if check.verdict == REJECTED then
      reply_with(call, rejected(call, check))
    elseif status == STATUS_DONE and check.cost > 0 then
      reply_with(call, admitted(call, check))
    else
      reply_with(call, peeked(call, i, check, check.verdict))
    end
  end
  return status
end

local function peek(call)
  for i, check in ipairs(call.checks) do reply_with(call, peeked(call, i, check)) end
  return STATUS_DONE
end

local function charge(call)
  for i, check in ipairs(call.checks) do reply_with(call, forced(call, i, check, check.cost)) end
  return STATUS_DONE
end

-- Refunds go to the limit that wrote the field, whatever the limit is today.
local function refund_to(call, field, paid, amount)
  local mark = field.limit and known_mark(field, paid.mark, paid.edition)
  if not mark or paid.cost == 0 then return end
  local limit, kind = field.limit, field.limit.kind
  local seen = kind.look(limit, field.state, call.now, true)
  if kind.refund(limit, field.state, seen, mark, paid.ticks, paid.cost, amount) then
    write_later(call, field, 0)
  end
end

-- A field may be named several times: each refund finds what the one before has left.
local function opener(call)
  local fields = {}
  return function(i, check)
    fields[check.name] = fields[check.name] or open(call, i, check)
    return fields[check.name]
  end
end

local function refund(call)
  local open_once = opener(call)
  for i, check in ipairs(call.checks) do
    refund_to(call, open_once(i, check), check.charge, check.amount)
  end
  return STATUS_DONE
end

-- The cost turned out to be another one. Less: the difference is refunded, and the charge names
-- what is left. More: the difference is charged, as much of it as fits, and the charge names that
-- part; the first charge stays what it was.
local function correct(call)
  for i, check in ipairs(call.checks) do
    local paid = check.charge
    if check.cost > paid.cost then
      reply_with(call, forced(call, i, check, check.cost - paid.cost))
    else
      refund_to(call, open(call, i, check), paid, paid.cost - check.cost)
      write_fields(call)
      call.values[i] = redis.call('HGET', call.key, check.name)
      local answer = peeked(call, i, check)
      answer.mark, answer.ticks, answer.charged = paid.mark, paid.ticks, check.cost
      answer.edition = paid.edition
      reply_with(call, answer)
    end
  end
  return STATUS_DONE
end

-- Slots live on; what has lapsed comes back as nothing. Other charges need no renewal and come
-- back as they were.
local function renewed(call, field, paid)
  local answer = {verdict = ALLOWED, remaining = 0, reset = 0, edition = field.edition}
  local limit = field.limit
  if not limit then return answer end
  if limit.kind ~= slots then
    answer.mark, answer.ticks, answer.charged = paid.mark, paid.ticks, paid.cost
    answer.edition = paid.edition
    return answer
  end
  local mark = known_mark(field, paid.mark, paid.edition)
  if not mark then return answer end
  local seen = slots.look(limit, field.state, call.now, true)
  answer.charged, answer.mark = slots.renew(limit, field.state, seen, mark, paid.cost)
  answer.reset = slots.reset(limit, field.state, seen)
  if answer.charged > 0 then write_later(call, field, answer.reset) end
  return answer
end

local function renew(call)
  local open_once = opener(call)
  for i, check in ipairs(call.checks) do
    reply_with(call, renewed(call, open_once(i, check), check.charge))
  end
  return STATUS_DONE
end
