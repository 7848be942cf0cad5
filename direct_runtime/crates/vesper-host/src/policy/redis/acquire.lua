local left, lease = arg(3), arg(4)
local has_breaker, within, open_for = arg(5) > 0, arg(6), arg(7)
local room = arg(8)
local burst, hold = arg(9), arg(10)
local rate = arg(11)
local has_queue = room > 0 or burst > 0
local longest = math.max(within, open_for, lease, PATIENCE)
-- Holds whose leases end are charged at the next request.
if burst > 0 then longest = math.max(longest, lease + math.max(hold, burst) + math.max(stored('full') - now, 0)) end

local function rejected(by, wait)
  if has_queue then leave() end
  if burst > 0 then redis.call('HDEL', HOLDS, asker) end
  keep_for(longest)
  return {'rejected', by, whole(wait), whole(now)}
end

if burst > 0 then charge_ended() end
if has_queue then tidy() end

local wait, us, part = 0, 0, 0
if rate > 0 then
  wait, us, part = moment_of(rate, arg(12), arg(13), arg(14), arg(15))
end
local is_in_time = rate == 0 or wait < left
if is_in_time then lease = lease + wait end

local becomes_probe = false
if has_breaker and phase ~= 'closed' then
  local shut_for = stored('until') - now
  if phase == 'open' and shut_for > 0 then return rejected('circuit_breaker', shut_for) end
  local is_probed = phase == 'half_open' and probe ~= '' and probe ~= asker
  if is_probed and shut_for > 0 then return rejected('circuit_breaker', 0) end
  becomes_probe = true
end

if has_queue then
  local ahead = redis.call('ZRANK', QUEUE, asker)
  local is_new = not ahead
  if is_new then ahead = redis.call('ZCARD', QUEUE) end
  local may_enter, by, lack = redis.call('ZSCORE', INSIDE, asker), 'concurrency', nil
  if burst > 0 then
    redis.call('HDEL', HOLDS, asker)
    by, lack = 'token_limit', lack_of(hold, burst)
    may_enter = may_enter or (ahead == 0 and lack == 0)
  else
    may_enter = may_enter or ahead < room - redis.call('ZCARD', INSIDE)
  end
  if not may_enter then
    if lack then lack = math.max(lack, 1) end
    local pause = ASK_AGAIN * (1 + ahead)
    if lack then pause = ahead == 0 and lack or math.max(pause, lack) end
    pause = math.min(pause, LONGEST_PAUSE, math.max(ASK_AGAIN, math.floor(left / 2)))
    if pause >= left or ahead >= MAX_WAITING then
      return rejected(by, burst > 0 and (lack or hold) or 0)
    end
    if is_new then redis.call('ZADD', QUEUE, redis.call('HINCRBY', STATE, 'arrivals', 1), asker) end
    redis.call('ZADD', KEPT, whole(now + pause + PATIENCE), asker)
    keep_for(longest)
    return {'waiting', by, whole(pause), whole(now)}
  end
end

if not is_in_time then return rejected('rate_limit', wait) end

if becomes_probe then
  redis.call('HSET', STATE, 'phase', 'half_open', 'probe', asker)
  store('until', now + lease)
end
if has_queue then
  leave()
  redis.call('ZADD', INSIDE, whole(now + lease), asker)
end
if burst > 0 then redis.call('HSET', HOLDS, asker, whole(hold)) end
if rate > 0 then
  store('arrival', us)
  store('arrival_part', part)
  store('arrival_parts', rate)
end
keep_for(math.max(longest, lease, us - now))
return {'admitted', '', whole(wait), whole(now)}
