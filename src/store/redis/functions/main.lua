-- All limits of one rule and one subject, decided in one step. Begin to read here.
--
-- The files are one text: clock, numbers; bucket, window, counter, chunks, log, slices, slots (one
-- for each kind of limit); field, session, grants (what a key holds); call, operations, lease (what
-- can be asked); and this one.
--
-- Keys       KEYS[1], the only one: a hash with one field per limit (field.lua), the chunks of
--            large states (chunks.lua), sessions (session.lua) and leases (grants.lua).
-- Arguments  operation, session, sequence (`-` and 0 where the call is not numbered), then a record
--            for each limit:
--
--            decide, peek, charge, settle   FIELD LIMIT CHANGE COST MODE EDGES
--            correct                        the same, then MARK TICKS CHARGED EDITION
--            reserve                        the same as decide, then CAP DURATION
--            refund, release, renew         FIELD AMOUNT MARK TICKS CHARGED EDITION
--            give_back                      FIELD SEQUENCE AMOUNT
--
--            Refunds, releases and renewals may name a field several times.
--
--            LIMIT is the limit as text, CHANGE is keep, proportional or reset, MODE is charge or
--            probe (decide), lease or seat (reserve), EDGES are the four edges of the previous,
--            current and next window (calendar) or `-`. Times are microseconds.
-- Reply      status, server time; then, where the status is 0 or 1, nine numbers for each limit:
--            verdict (0 allowed, 1 rejected, 2 never), remaining, reset_after, retry_after (-1
--            none), delay (reserve: for how long the grant may be used), and the charge: mark,
--            ticks, charged, edition. Refund, release and give_back have nothing to say.
--            Status 0 rejected, 1 done, 2 applied before, 3 the clocks differ (a calendar's windows
--            do not contain the server's time).
-- Atomic     Redis runs a call as a whole, nothing happens in between, and its effects reach
--            replicas as one transaction. All limits are looked at before the first one is written.

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
  if not operation then
    return redis.error_reply('SLUICE unknown operation ' .. tostring(args[1]))
  end
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
