local STATE, FAILURES, INSIDE, QUEUE, KEPT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
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
  redis.call('DEL', STATE, FAILURES, INSIDE, QUEUE, KEPT)
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

-- No key ends before it has stopped to matter; none is kept for ever.
local function keep_for(us)
  local ms = math.ceil((us + SPARE) / 1000)
  for _, key in ipairs(KEYS) do
    if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, whole(ms)) end
  end
end
