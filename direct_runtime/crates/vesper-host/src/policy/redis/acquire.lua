local left, lease = arg(3), arg(4)
local has_breaker, within, open_for = arg(5) > 0, arg(6), arg(7)
local room = arg(8)
local rate, step, step_part, back, back_part = arg(9), arg(10), arg(11), arg(12), arg(13)
local longest = math.max(within, open_for, lease, PATIENCE)

local function rejected(by, wait)
  if room > 0 then leave() end
  keep_for(longest)
  return {'rejected', by, whole(wait), whole(now)}
end

if room > 0 then tidy() end

-- The moment that the rate gives: `us` microseconds and `part` parts of one, of which `rate` are one.
local wait, us, part = 0, 0, 0
if rate > 0 then
  us, part = stored('arrival'), stored('arrival_part')
  if stored('arrival_parts') ~= rate then
    if part > 0 then us = us + 1 end
    part = 0
  end
  local at, at_part = us - back, part - back_part
  if at_part < 0 then at, at_part = at - 1, at_part + rate end
  if at < now then at, at_part = now, 0 end
  wait = at - now
  if at_part > 0 then wait = wait + 1 end
  if us < at then us, part = at, at_part end
  us, part = us + step, part + step_part
  if part >= rate then us, part = us + 1, part - rate end
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

if room > 0 then
  local ahead = redis.call('ZRANK', QUEUE, asker)
  local is_new = not ahead
  if is_new then ahead = redis.call('ZCARD', QUEUE) end
  local is_inside = redis.call('ZSCORE', INSIDE, asker)
  if not is_inside and ahead >= room - redis.call('ZCARD', INSIDE) then
    local pause = math.min(ASK_AGAIN * (1 + ahead), LONGEST_PAUSE)
    pause = math.min(pause, math.max(ASK_AGAIN, math.floor(left / 2)))
    if pause >= left or ahead >= MAX_WAITING then return rejected('concurrency', 0) end
    if is_new then redis.call('ZADD', QUEUE, redis.call('HINCRBY', STATE, 'arrivals', 1), asker) end
    redis.call('ZADD', KEPT, whole(now + pause + PATIENCE), asker)
    keep_for(longest)
    return {'waiting', 'concurrency', whole(pause), whole(now)}
  end
end

if not is_in_time then return rejected('rate_limit', wait) end

if becomes_probe then
  redis.call('HSET', STATE, 'phase', 'half_open', 'probe', asker)
  store('until', now + lease)
end
if room > 0 then
  leave()
  redis.call('ZADD', INSIDE, whole(now + lease), asker)
end
if rate > 0 then
  store('arrival', us)
  store('arrival_part', part)
  store('arrival_parts', rate)
end
keep_for(math.max(longest, lease, us - now))
return {'admitted', '', whole(wait), whole(now)}
