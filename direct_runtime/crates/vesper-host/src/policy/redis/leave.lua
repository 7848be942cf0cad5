local ending, admitted = ARGV[3], arg(4)
local threshold, within, open_for = arg(5), arg(6), arg(7)
local room = arg(8)
local burst, used = arg(9), arg(10)
local change = 'none'

local function open()
  redis.call('HSET', STATE, 'phase', 'open')
  store('until', now + open_for)
  redis.call('DEL', FAILURES)
  change = 'opened'
end

if threshold > 0 then
  if phase == 'closed' and ending == 'failed' and admitted >= stored('since') then
    redis.call('ZREMRANGEBYSCORE', FAILURES, '-inf', whole(now - within))
    redis.call('ZADD', FAILURES, 'NX', whole(now), asker)
    if redis.call('ZCARD', FAILURES) >= threshold then open() end
  elseif phase == 'half_open' and probe == asker then
    if ending == 'failed' then
      open()
    elseif ending == 'abandoned' then
      redis.call('HSET', STATE, 'probe', '')
    else
      redis.call('HSET', STATE, 'phase', 'closed')
      store('since', now)
      redis.call('DEL', FAILURES)
      change = 'closed'
    end
  end
end
if burst > 0 then
  charge_ended()
  local held = redis.call('HGET', HOLDS, asker)
  if held then
    redis.call('HDEL', HOLDS, asker)
    charge(used < 0 and tonumber(held) or used, now)
  end
end
if room > 0 or burst > 0 then
  tidy()
  leave()
end
keep_for(math.max(within, open_for, PATIENCE, stored('full') - now))
return change
