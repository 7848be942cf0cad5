local STATE, FAILURES, INSIDE, QUEUE, KEPT, HOLDS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local asker = ARGV[1]

local function arg(index) return tonumber(ARGV[index]) end
local function whole(value) return string.format('%.0f', value) end
local function stored(field) return tonumber(redis.call('HGET', STATE, field) or '0') end
local function store(field, value) redis.call('HSET', STATE, field, whole(value)) end

-- The time, which does not go back but by a step that means another clock: then all is forgotten.
local now = tonumber(ARGV[2])
if not now then
  local clock = redis.call('TIME')
  now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
end
local last = stored('last')
if now < last - CLOCK_STEP then
  redis.call('DEL', STATE, FAILURES, INSIDE, QUEUE, KEPT, HOLDS)
elseif now < last then
  now = last
end
store('last', now)

local phase = redis.call('HGET', STATE, 'phase') or 'closed'
local probe = redis.call('HGET', STATE, 'probe') or ''

local function leave()
  redis.call('ZREM', INSIDE, asker)
  redis.call('ZREM', QUEUE, asker)
  redis.call('ZREM', KEPT, asker)
end

-- Leases that are over and waiters that did not come back; the asker itself has come back.
local function tidy()
  redis.call('ZREMRANGEBYSCORE', INSIDE, '-inf', whole(now))
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEPT, '-inf', whole(now))) do
    if gone ~= asker then
      redis.call('ZREM', QUEUE, gone)
      redis.call('ZREM', KEPT, gone)
    end
  end
end

local function charge(us, at)
  if us > 0 then store('full', math.min(math.max(stored('full'), at) + us, at + MAX_US)) end
end

-- Charges the holds whose leases have ended, each at its end.
local function charge_ended()
  local ended = redis.call('ZRANGEBYSCORE', INSIDE, '-inf', whole(now), 'WITHSCORES')
  for index = 1, #ended, 2 do
    charge(tonumber(redis.call('HGET', HOLDS, ended[index]) or '0'), tonumber(ended[index + 1]))
    redis.call('HDEL', HOLDS, ended[index])
  end
end

-- The time in which a bucket that fills in `burst` gains what an asker lacks; nil where another request must end before.
local function lack_of(amount, burst)
  local needed = math.min(amount, burst)
  for _, held in ipairs(redis.call('HVALS', HOLDS)) do needed = needed + tonumber(held) end
  if needed > burst then return nil end
  return math.max(math.max(stored('full') - now, 0) - (burst - needed), 0)
end

-- The moment that the rate gives, as a wait, and the state after it: `us` microseconds and `part` parts of one, of which
-- `rate` are one.
local function moment_of(rate, step, step_part, back, back_part)
  local us, part = stored('arrival'), stored('arrival_part')
  if stored('arrival_parts') ~= rate then
    if part > 0 then us = us + 1 end
    part = 0
  end
  local at, at_part = us - back, part - back_part
  if at_part < 0 then at, at_part = at - 1, at_part + rate end
  if at < now then at, at_part = now, 0 end
  local wait = at - now
  if at_part > 0 then wait = wait + 1 end
  if us < at then us, part = at, at_part end
  us, part = us + step, part + step_part
  if part >= rate then us, part = us + 1, part - rate end
  return wait, us, part
end

-- No key ends before it has stopped to matter; none is kept for ever.
local function keep_for(us)
  local ms = math.ceil((us + SPARE) / 1000)
  for _, key in ipairs(KEYS) do
    if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, whole(ms)) end
  end
end
