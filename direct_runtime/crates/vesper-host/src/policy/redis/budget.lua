-- Each budget has two keys: a hash of its count and of the claims on it, and its claims by the end of their lease.
-- Amounts are {money, parts of money, tokens, calls, time}: a millionth of a dollar has `PARTS` parts.
local operation, asker = ARGV[1], ARGV[2]
local NAMES = {'usd', 'tokens', 'calls', 'time'}
local KINDS = {'money', 'parts', 'tokens', 'calls', 'time'}
local NONE = {0, 0, 0, 0, 0}
local HEAD, WIDTH = 9, 12

local now = tonumber(ARGV[3])
if not now then
  local clock = redis.call('TIME')
  now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
end

local function whole(value) return string.format('%.0f', value) end

local function amounts_at(first)
  local found = {}
  for i = 1, 5 do found[i] = tonumber(ARGV[first + i - 1]) end
  return found
end

local function plus(a, b)
  local sum = {}
  for i = 1, 5 do sum[i] = a[i] + b[i] end
  if sum[2] >= PARTS then sum[1], sum[2] = sum[1] + 1, sum[2] - PARTS end
  return sum
end

local function minus(a, b)
  local left = {}
  for i = 1, 5 do left[i] = a[i] - b[i] end
  if left[2] < 0 then left[1], left[2] = left[1] - 1, left[2] + PARTS end
  if left[1] < 0 then left[1], left[2] = 0, 0 end
  for i = 3, 5 do left[i] = math.max(left[i], 0) end
  return left
end

-- Whether `a` has more than `b` of the resource at this place of NAMES.
local function is_more(a, b, resource)
  if resource > 1 then return a[resource + 1] > b[resource + 1] end
  return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2])
end

local function stored(key, sort)
  local found = {}
  for i, kind in ipairs(KINDS) do found[i] = tonumber(redis.call('HGET', key, sort .. kind) or '0') end
  return found
end

local function store(key, sort, amounts)
  for i, kind in ipairs(KINDS) do redis.call('HSET', key, sort .. kind, whole(amounts[i])) end
end

-- Takes a claim off what is reserved; returns it, or nothing.
local function take(key, leases, name)
  local text = redis.call('HGET', key, 'claim:' .. name)
  if not text then return nil end
  local claim = {}
  for word in string.gmatch(text, '%S+') do claim[#claim + 1] = tonumber(word) end
  store(key, 'reserved_', minus(stored(key, 'reserved_'), claim))
  redis.call('HDEL', key, 'claim:' .. name)
  redis.call('ZREM', leases, name)
  return claim
end

local budgets = {}
for i = 1, #KEYS / 2 do
  local first = HEAD + 1 + (i - 1) * WIDTH
  local key, leases = KEYS[2 * i - 1], KEYS[2 * i]
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', whole(now))) do
    local claim = take(key, leases, name)
    if claim then store(key, 'used_', plus(stored(key, 'used_'), claim)) end
  end
  budgets[i] = {
    key = key, leases = leases, claim = take(key, leases, asker), limit = amounts_at(first),
    alert = amounts_at(first + 5), mode = ARGV[first + 10], keep = tonumber(ARGV[first + 11]),
  }
end

local notices, refusal, time = {}, nil, -1
local function notice(place, kind, resource)
  notices[#notices + 1] = (place - 1) .. ' ' .. kind .. ' ' .. NAMES[resource]
end
-- A limit of money that there is not has -1 in its first part.
local function has(amounts, resource) return amounts[resource > 1 and resource + 1 or 1] >= 0 end

local function admit(worst)
  time = worst[5]
  for place, budget in ipairs(budgets) do
    if budget.mode ~= 'allow' then
      local is_blocking = budget.mode == 'block'
      local left = minus(budget.limit, plus(stored(budget.key, 'used_'), stored(budget.key, 'reserved_')))
      for resource = 1, 4 do
        if has(budget.limit, resource) then
          local is_over
          if resource < 4 then
            is_over = is_more(worst, left, resource)
          elseif is_blocking then
            if time < 0 or left[5] < time then time = left[5] end
            is_over = left[5] < MIN_TIME
          else
            is_over = worst[5] > left[5]
          end
          if is_over and is_blocking then
            local first = resource > 1 and left[resource + 1] or left[1]
            refusal = {whole(place - 1), NAMES[resource], whole(first), whole(resource > 1 and 0 or left[2])}
            notices, time = {}, -1
            return
          end
          if is_over then
            notice(place, 'warned', resource)
            break
          end
        end
      end
    end
  end
end

local amounts = amounts_at(5)
local lease = tonumber(ARGV[4])
if operation == 'reserve' then
  admit(amounts)
  if not refusal then
    amounts[5] = math.max(time, 0)
    local claim = {}
    for i = 1, 5 do claim[i] = whole(amounts[i]) end
    claim = table.concat(claim, ' ')
    for _, budget in ipairs(budgets) do
      store(budget.key, 'reserved_', plus(stored(budget.key, 'reserved_'), amounts))
      redis.call('HSET', budget.key, 'claim:' .. asker, claim)
      redis.call('ZADD', budget.leases, whole(now + lease), asker)
    end
  end
elseif operation == 'settle' then
  for _, budget in ipairs(budgets) do
    if budget.claim then store(budget.key, 'used_', plus(stored(budget.key, 'used_'), amounts)) end
  end
end

for place, budget in ipairs(budgets) do
  local used = stored(budget.key, 'used_')
  for resource = 1, 4 do
    if has(budget.alert, resource) and not is_more(budget.alert, used, resource) then
      if redis.call('HSETNX', budget.key, 'alerted', '1') == 1 then notice(place, 'alerted', resource) end
      break
    end
  end
  if budget.keep > 0 then
    redis.call('PEXPIRE', budget.key, whole(budget.keep))
    redis.call('PEXPIRE', budget.leases, whole(budget.keep))
  end
end
return {refusal or '', whole(time), table.concat(notices, ';')}
