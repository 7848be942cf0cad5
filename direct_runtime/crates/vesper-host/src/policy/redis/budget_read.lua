-- Returns of each budget what is used and what is reserved; claims whose lease is over count as used.
local now = tonumber(ARGV[1])
if not now then
  local clock = redis.call('TIME')
  now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
end
local KINDS = {'money', 'parts', 'tokens', 'calls', 'time'}
local answer = {}
for i = 1, #KEYS / 2 do
  local key, leases = KEYS[2 * i - 1], KEYS[2 * i]
  for _, sort in ipairs({'used_', 'reserved_'}) do
    for _, kind in ipairs(KINDS) do answer[#answer + 1] = redis.call('HGET', key, sort .. kind) or '0' end
  end
  local over = redis.call('ZRANGEBYSCORE', leases, '-inf', string.format('%.0f', now))
  answer[#answer + 1] = tostring(#over)
  for _, name in ipairs(over) do answer[#answer + 1] = redis.call('HGET', key, 'claim:' .. name) or '0 0 0 0 0' end
end
return answer
