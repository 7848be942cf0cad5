local burst, gained = arg(9), arg(10)
local wait = 0
if arg(11) > 0 then wait = moment_of(arg(11), arg(12), arg(13), arg(14), arg(15)) end
if burst > 0 then
  charge_ended()
  tidy()
  local lack = lack_of(gained, burst)
  if lack ~= 0 or redis.call('ZCARD', QUEUE) > 0 then wait = math.max(wait, lack or 1, 1) end
end
return whole(wait)
