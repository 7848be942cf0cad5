"""The state of policies in Redis: limits that hold over all processes that share it.

An `acquire` and a `release` are one script each, so that nobody comes in between, and the clock is that of Redis, so
that all processes agree on it. The scripts do what `vesper.policies.gate` does, step by step; a test compares the two.
A name has five keys under one hash tag, and each is gone some time after it has stopped to matter.

When Redis cannot be asked, `on_store_failure` decides: `local` lets the limits hold in each process alone (so that four
processes may do four times as much), `refuse` lets the effect fail. Either is said in a warning, once an outage.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, Literal

from vesper.effects.settings import ConfigError, Table
from vesper.host.policy.redis_scripts import ACQUIRE, KEYS, LEAVE
from vesper.host.policy.state import Admission, MemoryPolicyState, Question, Token, open_to_all
from vesper.policies import gate
from vesper.policies.codes import is_trouble
from vesper.policies.settings import Policy

if TYPE_CHECKING:
    from redis.commands.core import Script

DEFAULT_PREFIX = "vesper:policy:"
DEFAULT_TIMEOUT = 0.5
PAUSE_SECONDS = 1.0
"""After a failure of Redis nobody asks it for so long: a store that does not answer would cost every attempt its
time-out."""
_LOG = logging.getLogger("vesper.policies")


class RedisPolicyState:
    """State that processes share. Times in decisions are the caller's: only differences come from the clock of
    Redis."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = DEFAULT_PREFIX,
        on_store_failure: Literal["local", "refuse"] = "local",
        timeout: float = DEFAULT_TIMEOUT,
        where: str = "policies",
    ) -> None:
        try:
            from redis import Redis, RedisError
            from redis.backoff import NoBackoff
            from redis.exceptions import ConnectionError as NoConnection
            from redis.retry import Retry
        except ImportError as missing:
            raise ConfigError(
                where, "policies in Redis need a package that is missing: pip install 'vesper[redis]'"
            ) from missing
        # A connection that broke while nobody used it is made anew. That may ask twice under one name, which takes
        # another moment of the rate and nothing else.
        retry = Retry(NoBackoff(), 1, supported_errors=(NoConnection,))
        try:
            self._client = Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry)
            pool = self._client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # finds options of the address that there are not
        except (TypeError, ValueError):  # without its message: that may repeat the address, and so a password
            expected = "`redis://HOST:PORT/NUMBER`, `rediss://…` or `unix://…`, with options that there are,"
            raise ConfigError(f"{where}.url", f"this is no address of Redis: {expected} is expected") from None
        self._prefix = prefix
        self._failures: type[Exception] = RedisError
        self._acquire: Script = self._client.register_script(ACQUIRE)
        self._leave: Script = self._client.register_script(LEAVE)
        self._is_local = on_store_failure == "local"
        self._local = MemoryPolicyState()
        self._is_down = False
        self._to_say = ["the first outage"]
        self._ask_again_at = 0.0

    @staticmethod
    def from_settings(table: Table) -> RedisPolicyState:
        """Of a table with `url`, and perhaps `prefix`, `timeout` and `on_store_failure`."""
        prefix, choices = table.text("prefix", DEFAULT_PREFIX), ("local", "refuse")
        is_local = table.choice("on_store_failure", choices, "local") == "local"
        url, timeout = table.text("url"), table.seconds("timeout", DEFAULT_TIMEOUT)
        table.done()
        return RedisPolicyState(
            url,
            prefix=prefix,
            on_store_failure="local" if is_local else "refuse",
            timeout=timeout,
            where=table.where,
        )

    def acquire(
        self, name: str, policy: Policy, now_us: int, deadline_us: int | None = None, waiting: Token | None = None
    ) -> Admission:
        rule = gate.Rule.of(policy)
        if rule.is_open_to_all:
            return open_to_all(now_us)
        question = Question.of(rule, now_us, deadline_us, waiting)
        answer = self._ask(
            self._acquire,
            name,
            [
                question.asker,
                self._clock(),
                question.left_us,
                question.lease_us,
                *_shared_arguments(rule),
                *_pace(rule),
            ],
        )
        if answer is None:
            if self._is_local:
                return self._local.acquire(name, policy, now_us, deadline_us, waiting)
            pause_us = int(PAUSE_SECONDS * 1_000_000)
            return Admission(gate.Rejected("store", now_us + pause_us, pause_us), None)
        kind, by, wait, store_us = map(_text, answer)
        wait_us = int(wait)
        if kind == "rejected":
            return Admission(gate.Rejected(by, now_us + wait_us, wait_us), None)
        token = Token(name, question.asker, rule, int(store_us), "redis", question.asked_us)
        if kind == "waiting":
            return Admission(gate.Waiting(by, now_us + wait_us, wait_us), token)
        return Admission(gate.Admitted(now_us + wait_us, wait_us), token)

    def release(self, token: Token, failure_code: str | None, now_us: int) -> gate.Released:
        if token.store != "redis":
            return self._local.release(token, failure_code, now_us)
        is_failure = failure_code is not None and is_trouble(failure_code)
        return self._left(token, "failed" if is_failure else "answered")

    def abandon(self, token: Token, now_us: int) -> None:
        if token.store != "redis":
            self._local.abandon(token, now_us)
        else:
            self._left(token, "abandoned")

    def close(self) -> None:
        self._client.close()

    def _left(self, token: Token, ending: str) -> gate.Released:
        """Where Redis cannot be told, the leases of the attempt end by themselves, and its failure is not counted."""
        shared = _shared_arguments(token.rule)
        change = self._ask(self._leave, token.name, [token.asker, self._clock(), ending, token.admitted_us, *shared])
        return gate.Released("none" if change is None else _text(change))

    def _clock(self) -> int | str:
        """The time for a script; nothing: Redis has its own. Tests have another."""
        return ""

    def _ask(self, script: Script, name: str, arguments: list[int | str]) -> Any:
        """What the script gives; nothing where Redis cannot be asked."""
        if self._is_down and time.monotonic() < self._ask_again_at:
            return None
        keys = [f"{self._prefix}{{{name}}}:{key}" for key in KEYS]
        try:
            answer = script(keys, arguments)
        except self._failures as error:
            self._ask_again_at = time.monotonic() + PAUSE_SECONDS
            self._is_down = True
            self._say_once(error)
            return None
        if self._is_down:
            self._is_down, self._to_say = False, ["the next outage"]
            _LOG.info("the policies' Redis answers again")
        return answer

    def _say_once(self, error: Exception) -> None:
        """Of all threads that find Redis away, the one that takes the item says so. (A lock would have to be made anew
        after a fork.) The text of the failure is left out: it may hold an address with a password."""
        if not self._to_say:
            return
        with contextlib.suppress(IndexError):
            self._to_say.pop()
            follows = "limits hold in each process alone until it answers" if self._is_local else "effects are refused"
            _LOG.warning("the policies' Redis cannot be asked (%s): %s", type(error).__name__, follows)


def _shared_arguments(rule: gate.Rule) -> tuple[int, int, int, int]:
    shut, room = rule.breaker, rule.concurrency
    breaker_part = (0, 0, 0) if shut is None else (shut.failures, shut.within_us, shut.open_us)
    return (*breaker_part, 0 if room is None else room.limit)


def _pace(rule: gate.Rule) -> tuple[int, int, int, int, int]:
    """The rate, the distance of two requests, and how much earlier than its time a request of a burst may come: the
    two as whole microseconds and parts of one, because their product with the rate may not fit a double."""
    pace = rule.rate
    if pace is None:
        return (0, 0, 0, 0, 0)
    early = (pace.burst - 1) * pace.per_us
    return (pace.limit, *divmod(pace.per_us, pace.limit), *divmod(early, pace.limit))


def _text(part: bytes | str) -> str:
    """An address may ask the client to decode answers itself."""
    return part if isinstance(part, str) else part.decode()
