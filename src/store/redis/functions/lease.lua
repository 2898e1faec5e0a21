-- Operations on leases (grants.lua).

-- A grant ends with its window.
local function longest_use(seen, duration)
  return seen.stop and min(duration, seen.stop - seen.now) or duration
end

-- Adds a grant to the list; answers for how long it may be used.
local function grant(call, check, list, answer, edition)
  local usable = longest_use(check.seen, check.duration)
  list[#list + 1] = {
    session = call.session, sequence = call.sequence, tokens = answer.charged,
    ends = call.now + ends_after(usable), mark = answer.mark or 0, ticks = answer.ticks or 0,
    edition = edition,
  }
  call.lasts = max(call.lasts, ends_after(usable))
  answer.delay = usable
  return answer
end

-- As many tokens as there are, up to COST, and within the cap.
local function tokens_for(check, list)
  local tokens = min(check.cost, max(check.cap - grants.sum(list), 0))
  if check.mode == 'seat' then return tokens end
  return min(tokens, check.limit.kind.remaining(check.limit, check.seen))
end

local function reserved(call, i, check, list)
  local limit = check.limit
  check.field = open_for(call, i, check, true)
  check.seen = limit.kind.look(limit, check.field.state, call.now, true)
  local tokens = tokens_for(check, list)
  if tokens == 0 then
    -- As a rejection of one, unless it is the cap that has no room.
    if limit.kind.fits(limit, check.field.state, check.seen, 1) then
      return peeked(call, i, check, REJECTED)
    end
    check.cost = 1
    return rejected(call, check)
  end
  if check.mode == 'seat' then
    local answer = peeked(call, i, check)
    answer.charged = tokens
    answer.edition = 0
    return grant(call, check, list, answer, 0)
  end
  check.cost = tokens
  return grant(call, check, list, admitted(call, check), check.field.edition)
end

local function reserve(call)
  local status = STATUS_DONE
  for i, check in ipairs(call.checks) do
    local list = grants.read(call.key, check.name, call.now)
    local answer = reserved(call, i, check, list)
    if answer.verdict ~= ALLOWED then status = STATUS_REJECTED end
    call.grants[#call.grants + 1] = {list = list, name = check.name}
    reply_with(call, answer)
  end
  return status
end

-- A reservation that was sent again: the grant it got, if that has not ended.
local function reserved_before(call)
  for i, check in ipairs(call.checks) do
    local list = grants.read(call.key, check.name, call.now)
    local found = grants.find(list, call.session, call.sequence)
    if not found then return STATUS_REPEATED end
    local answer = peeked(call, i, check)
    answer.delay = usable_for(found.ends - call.now)
    answer.mark, answer.ticks, answer.charged = found.mark, found.ticks, found.tokens
    answer.edition = found.edition
    reply_with(call, answer)
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
        refund_to(call, open(call, i, check), paid, amount)
      end
      found.tokens = found.tokens - amount
      if found.tokens == 0 then table.remove(list, position) end
      call.grants[#call.grants + 1] = {list = list, name = check.name}
    end
  end
  return STATUS_DONE
end
