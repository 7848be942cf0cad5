"""The two scripts that Redis runs: `vesper.policies.gate` once more, in Lua, so that a decision is one step there.

A Lua number is a double: every number here is whole and below 2**53 (`settings.MAX_US` sees to it), hence exact. They
are written with `whole`, because Lua itself would round them to 14 digits.
"""

from __future__ import annotations

from vesper.host.policy.state import CLOCK_STEP_US
from vesper.policies import concurrency

KEYS = ("state", "failures", "inside", "queue", "kept")
"""Of one name: a hash; who failed, by when; who is inside, by the end of the lease; who waits, by the order of coming;
who waits, by the end of their patience."""
SPARE_US = 60_000_000
"""How much longer than it matters a key is kept."""

_NUMBERS = f"""
local ASK_AGAIN, LONGEST_PAUSE = {concurrency.ASK_AGAIN_US}, {concurrency.LONGEST_PAUSE_US}
local PATIENCE, MAX_WAITING = {concurrency.PATIENCE_US}, {concurrency.MAX_WAITING}
local CLOCK_STEP, SPARE = {CLOCK_STEP_US}, {SPARE_US}
"""

_COMMON = """
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
"""

_ACQUIRE = """
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
"""

_LEAVE = """
local ending, admitted = ARGV[3], arg(4)
local threshold, within, open_for = arg(5), arg(6), arg(7)
local room = arg(8)
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
if room > 0 then
  tidy()
  leave()
end
keep_for(math.max(within, open_for, PATIENCE))
return change
"""

ACQUIRE = _NUMBERS + _COMMON + _ACQUIRE
"""Asker, time (of Redis where it is empty), how long it may wait, its lease; the breaker's failures, window and time
open; places; the rate, the distance of two requests and how early one may come, each in two numbers.
Gives what was decided, by whom, how long to wait, and the time."""
LEAVE = _NUMBERS + _COMMON + _LEAVE
"""Asker, time, `failed`, `answered` or `abandoned`, when it was admitted; the breaker's numbers; places.
Gives what became of the breaker."""
