"""A Redis server for caches and topics, without retries.

The client of the `redis` package retries by itself and has one timeout for each connection. The Host retries instead,
and every attempt has its own time; so this module uses the connections of that package directly.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError, Table
from vesper.storage.per_process import PerProcess

Command: TypeAlias = tuple[str | bytes | int, ...]
_Connection: TypeAlias = Any
"""A `redis.Connection`, whose methods have no types."""
_NUMBER = re.compile(r"[0-9]{0,5}", re.ASCII)
_CERTIFICATES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_MAX_IDLE = 32
"""So many connections wait for the next command; more than that are closed after use."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Address of a server. Its text, for messages, has no password."""

    host: str
    port: int
    database: int
    is_encrypted: bool
    username: str | None
    password: str | None
    certificates: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"redis://{self.host}:{self.port}/{self.database}"

    __repr__ = __str__

    @classmethod
    def from_table(cls, table: Table, url: str) -> RedisAddress:
        """Read `redis://[user[:password]@]host[:port][/number]`, or `rediss://` for TLS. Raises `ConfigError`.

        The text of the URL is in no message: it may contain a password.
        """
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname
        except ValueError:
            parts, port, host = urlsplit(""), None, None
        number = parts.path.removeprefix("/")
        if parts.scheme not in ("redis", "rediss") or not host or not _NUMBER.fullmatch(number):
            raise table.error("url", "`memory:` or `redis://host:6379/0` (`rediss://` for TLS) is expected")
        if parts.fragment:
            raise table.error("url", "a `#` in the password is written `%23`")
        options = parse_qsl(parts.query, keep_blank_values=True)
        for name, _ in options:
            if name not in _CERTIFICATES or parts.scheme != "rediss":
                allowed = ", ".join(_CERTIFICATES)
                raise table.error("url", f"the option `{name}` cannot be used; with `rediss://` there are {allowed}")
        return cls(
            host,
            6379 if port is None else port,
            int(number or "0"),
            parts.scheme == "rediss",
            unquote(parts.username) if parts.username else None,
            unquote(parts.password) if parts.password else None,
            tuple(options),
        )


class RedisServer:
    """Sends commands. Safe in threads and after a fork."""

    def __init__(self, address: RedisAddress, timeout: float, what: str, password: Callable[[], str] | None) -> None:
        self._address = address
        self._timeout = timeout
        self._what = what
        """Who uses it, for messages: `the cache `sessions``."""
        self._password = password
        self._idle: PerProcess[deque[_Connection]] = PerProcess(deque)

    def run(self, commands: Sequence[Command], timeout: float | None) -> list[Any]:
        """Send all commands together and return their answers in order.

        The answer to a refused command is its error (a `redis.ResponseError`). Raises `EffectFailed` with `timeout` or
        `unavailable`.
        """
        import redis

        seconds = self._timeout if timeout is None else min(timeout, self._timeout)
        deadline = time.monotonic() + seconds
        is_sent = False
        connection = None
        try:
            connection = self._take_connection(seconds)
            is_sent = True
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            answers = [self._read_answer(connection, deadline) for _ in commands]
        except (redis.TimeoutError, TimeoutError):
            _close(connection)
            raise EffectFailed(
                "timeout",
                f"{self._what}: {self._address} did not answer within {seconds:g} s",
                may_have_happened=is_sent,
            ) from None
        except (redis.RedisError, OSError) as error:
            _close(connection)
            raise EffectFailed(
                "unavailable",
                f"{self._what}: {self._address} cannot be used ({type(error).__name__}: {_first_line(error)})",
                may_have_happened=is_sent,
            ) from None
        except BaseException:
            _close(connection)  # its answers have not all been read
            raise
        idle = self._idle.get()
        if len(idle) < _MAX_IDLE:
            idle.append(connection)
        else:
            _close(connection)
        return answers

    def run_one(self, command: Command, timeout: float | None) -> Any:
        """Return the answer to one command. Raises `EffectFailed` with `unavailable` for a refused one."""
        return self.check_answer(self.run([command], timeout)[0])

    def check_answer(self, answer: Any) -> Any:
        """Return an answer that is no refusal. Raises `EffectFailed` for a refusal."""
        if isinstance(answer, Exception):
            # A refused command changes nothing: scripts here write last what the others depend on.
            raise EffectFailed("unavailable", f"{self._what}: {self._address} refuses: {_first_line(answer)}")
        return answer

    def close(self) -> None:
        idle = self._idle.drop()
        while idle:
            _close(idle.pop())

    def _take_connection(self, seconds: float) -> _Connection:
        import redis

        idle = self._idle.get()
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread took it
                break
            try:
                if not connection.can_read(0):
                    return connection
            except (redis.RedisError, OSError):
                pass  # the server closed it while it was idle: nothing was sent on it, so a new one does
            _close(connection)
        return self._connect(seconds)

    def _connect(self, seconds: float) -> _Connection:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        address = self._address
        options: dict[str, Any] = {
            "host": address.host,
            "port": address.port,
            "db": address.database,
            "username": address.username,
            "password": address.password if self._password is None else self._password(),
            "socket_connect_timeout": seconds,
            "socket_timeout": self._timeout,
            "retry": Retry(NoBackoff(), 0),
            "health_check_interval": 0,
            "protocol": 2,
        }
        if address.is_encrypted:
            options |= {"ssl_check_hostname": True, **dict(address.certificates)}
        kind: Any = redis.SSLConnection if address.is_encrypted else redis.Connection
        connection: _Connection = kind(**options)
        try:
            connection.connect()
        except BaseException:
            _close(connection)
            raise
        return connection

    def _read_answer(self, connection: _Connection, deadline: float) -> Any:
        import redis

        # `can_read` waits for the first byte; what the rest takes is bounded by the time-out of the connection.
        if not connection.can_read(max(0.0, deadline - time.monotonic())):
            raise redis.TimeoutError
        try:
            return connection.read_response()
        except redis.ResponseError as refusal:
            return refusal


def require_redis(where: str) -> None:
    """Raise `ConfigError` if the package is not installed: when the settings are read, not at the first effect."""
    try:
        import redis  # noqa: F401
    except ImportError:
        raise ConfigError(where, "`redis://` needs the package redis: pip install 'vesper[redis]'") from None


def _close(connection: _Connection | None) -> None:
    if connection is not None:
        connection.disconnect()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
