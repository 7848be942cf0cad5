-- Requests of `make bench-serve`: wrk -s load.lua URL -- FILE [MILLISECONDS]
-- FILE has a body on each line; MILLISECONDS is the mean pause of a connection before its next request.
local requests, turn = {}, 0

function init(arguments)
  for body in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, {["Content-Type"] = "application/json"}, body)
  end
  local pause = tonumber(arguments[2])
  if pause then
    function delay()
      return math.random(0, 2 * pause)
    end
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"requests": %d, "failed": %d, "seconds": %f, "p50_us": %d, "p99_us": %d}\n',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(50), latency:percentile(99)))
end
