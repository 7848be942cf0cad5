"""A stream of Redis with a consumer group.

Beside the stream stands a sorted set of all delivered and unfinished entries by key (`STREAM:GROUP:keys`); scripts
change both together. An entry is handed out only as the first of its key, whichever consumer it was delivered to, and
the process that finishes it claims the next one. So the order of a key does not depend on leases.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from typing import Any, Final

from vesper.effects.events.settings import EventSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.redis_server import RedisServer
from vesper.topics.message import Message, TopicUnavailable, checked_id

_MAX_WAITING: Final = 10_000
"""Delivered entries behind an earlier one of their key; more are not read from the stream."""
_IDLE_CONSUMER_MS: Final = 3_600_000
_COMMON: Final = """\
local stream, keys, group, me, topic = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local function member(key, id)
  local ms, number = id:match('(%d+)-(%d+)')
  local text = string.rep('0', 20 - #ms) .. ms .. '-' .. string.rep('0', 20 - #number) .. number
  return redis.sha1hex(key) .. ':' .. text .. '|' .. id
end
local function first(key)
  local prefix = redis.sha1hex(key) .. ':'
  while true do
    local found = redis.call('ZRANGEBYLEX', keys, '[' .. prefix, '(' .. prefix .. '~', 'LIMIT', 0, 1)[1]
    if not found then return nil end
    local id = found:match('|(.+)$')
    if #redis.call('XPENDING', stream, group, id, id, 1) > 0 then
      if #redis.call('XRANGE', stream, id, id) > 0 then return id end
      redis.call('XACK', stream, group, id)
    end
    redis.call('ZREM', keys, found)
  end
end
"""
_TAKE: Final = (
    _COMMON
    + """\
local limit, found = tonumber(ARGV[4]), {}
local function add(entries)
  for _, entry in ipairs(entries) do
    local id, key, of = entry[1], nil, nil
    for i = 1, #(entry[2] or {}), 2 do
      if entry[2][i] == 'event_key' then key = entry[2][i + 1] end
      if entry[2][i] == 'topic' then of = entry[2][i + 1] end
    end
    if not entry[2] or (of and of ~= topic) then
      redis.call('XACK', stream, group, id)
    elseif not key or ARGV[7] == '0' then
      table.insert(found, entry)
    else
      redis.call('ZADD', keys, 0, member(key, id))
      if first(key) == id then table.insert(found, entry) end
    end
  end
end
local claimed = redis.call('XAUTOCLAIM', stream, group, me, ARGV[5], ARGV[6], 'COUNT', limit)
add(claimed[2])
if #found < limit and redis.call('ZCARD', keys) < tonumber(ARGV[8]) then
  local read = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', limit - #found, 'STREAMS', stream, '>')
  if read then add(read[1][2]) end
end
return {claimed[1], found}
"""
)
_FINISH: Final = (
    _COMMON
    + """\
local found = {}
for i = 4, #ARGV, 2 do
  local id, key = ARGV[i], ARGV[i + 1]
  redis.call('XACK', stream, group, id)
  if key:sub(1, 1) == '=' and redis.call('ZREM', keys, member(key:sub(2), id)) == 1 then
    local following = first(key:sub(2))
    if following then
      for _, entry in ipairs(redis.call('XCLAIM', stream, group, me, 0, following)) do table.insert(found, entry) end
    end
  end
end
return found
"""
)


class RedisSource:
    """The entries of one topic; those of other topics in the same stream are skipped."""

    def __init__(
        self, settings: EventSettings, group: str, is_ordered: bool, password: Callable[[], str] | None
    ) -> None:
        assert settings.address is not None
        self._server = RedisServer(settings.address, settings.timeout, f"the topic `{settings.name}`", password)
        self._topic = settings.name
        self._stream = settings.redis_stream
        self._keys = f"{self._stream}:{group}:keys"
        self._group = group
        self._lease_ms = round(settings.lease * 1000)
        self._is_ordered = is_ordered
        self._name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._cursor = "0-0"
        self._is_ready = False
        self.keep_seconds = settings.lease / 3

    def take(self, limit: int) -> list[Message]:
        self._make_ready()
        arguments = (limit, self._lease_ms, self._cursor, int(self._is_ordered), _MAX_WAITING)
        cursor, entries = self._script(_TAKE, *arguments)
        self._cursor = cursor.decode()
        return [self._message(*each) for each in entries]

    def finish(self, messages: list[Message]) -> list[Message]:
        pairs = [
            part
            for each in messages
            for part in (each.position, "" if each.event_key is None or not self._is_ordered else f"={each.event_key}")
        ]
        return [self._message(*each) for each in self._script(_FINISH, *pairs)]

    def keep(self, messages: list[Message]) -> None:
        self._claim(messages, 0)

    def release(self, messages: list[Message]) -> None:
        self._claim(messages, self._lease_ms)

    def lag(self) -> int:
        length, groups = (
            self._server_run(each) for each in (("XLEN", self._stream), ("XINFO", "GROUPS", self._stream))
        )
        for facts in map(_facts, [] if isinstance(groups, Exception) else groups):  # without a stream there are none
            if facts["name"] == self._group.encode():
                unread = facts.get("lag")  # None where Redis lost count, because entries were deleted
                return int(length if unread is None else unread) + int(facts["pending"])
        return int(length)

    def close(self) -> None:
        self._server.close()

    def _make_ready(self) -> None:
        """Make the group, which starts with the oldest entry; remove consumers that ended long ago."""
        if self._is_ready:
            return
        made = self._server_run(("XGROUP", "CREATE", self._stream, self._group, "0", "MKSTREAM"))
        if isinstance(made, Exception) and not str(made).startswith("BUSYGROUP"):
            raise TopicUnavailable(f"the topic `{self._topic}`: Redis refuses: {made}")
        for each in map(_facts, self._run("XINFO", "CONSUMERS", self._stream, self._group)):
            if each["pending"] == 0 and each["idle"] > _IDLE_CONSUMER_MS:
                self._run("XGROUP", "DELCONSUMER", self._stream, self._group, each["name"])
        self._is_ready = True

    def _claim(self, messages: list[Message], idle_ms: int) -> None:
        if messages:
            ids = [each.position for each in messages]
            self._run("XCLAIM", self._stream, self._group, self._name, 0, *ids, "IDLE", idle_ms, "JUSTID")

    def _message(self, position: bytes, fields: list[bytes]) -> Message:
        facts = dict(zip(fields[::2], fields[1::2], strict=True))
        place = position.decode()
        given, key = facts.get(b"id"), facts.get(b"event_key")
        return Message(
            checked_id(None if given is None else given.decode(errors="replace"), place),
            facts.get(b"payload", b"").decode(errors="surrogateescape"),
            None if key is None else key.decode(errors="surrogateescape"),
            place,
        )

    def _script(self, script: str, *arguments: str | int) -> Any:
        fixed = (self._stream, self._keys, self._group, self._name, self._topic)
        texts = [each.encode(errors="surrogateescape") if isinstance(each, str) else each for each in arguments]
        return self._run("EVAL", script, 2, *fixed, *texts)

    def _run(self, *command: str | bytes | int) -> Any:
        answer = self._server_run(command)
        if isinstance(answer, Exception):
            self._is_ready = False  # the stream or its group may be gone
            raise TopicUnavailable(f"the topic `{self._topic}`: Redis refuses: {str(answer)[:200]}")
        return answer

    def _server_run(self, command: tuple[str | bytes | int, ...]) -> Any:
        try:
            return self._server.run([command], None)[0]
        except EffectFailed as failure:
            raise TopicUnavailable(failure.message) from None


def _facts(answer: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(answer[::2], answer[1::2], strict=True)}
