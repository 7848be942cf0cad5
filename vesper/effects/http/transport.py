"""One request and its answer, over connections that are kept for the next one.

A connection that is kept belongs to nobody; whoever takes it out of the pool has it alone, and only then looks whether
it is still alive. So no thread can close what another one reads from.
"""

from __future__ import annotations

import ssl
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import certifi
import h11

from vesper.effects.http.connection import Attempt, Connection, Connector, NotHttp, Resolve, look_up
from vesper.effects.http.request import Outgoing
from vesper.effects.http.response import Answer, BadResponse
from vesper.effects.http.settings import HttpSettings
from vesper.effects.http.url import Origin
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.storage.after_fork import Order, register

_KEEP_ALIVE = 15.0
"""Seconds for which an idle connection is kept: less than most servers do, so that they seldom close it first."""
_ERROR_BODY = 65536
"""Bytes that are read of the body of an answer which only a message will show."""
_FREE_PIECES, _LEAST_PIECE = 10_000, 64
"""Each piece of a body costs some time, however small it is: after so many, their size must be this on the average."""
_PACKINGS = ("gzip", "x-gzip", "deflate", "br", "zstd", "compress")


class Transport:
    """The connections to one provider. Any thread may use it, and a process that was forked."""

    def __init__(self, settings: HttpSettings, resolve: Resolve = look_up) -> None:
        self.settings = settings
        self._connector = Connector(settings, _tls_context(settings), resolve)
        self._pool = _Pool(settings, self._connector)
        _ALL.add(self)

    def exchange(self, outgoing: Outgoing, attempt: Attempt) -> Answer:
        """Sends the request and reads the answer. Raises `EffectFailed`, `AddressRefused`."""
        while True:
            before = attempt.sent
            with self._pool.connection(outgoing.url.origin, attempt) as connection:
                try:
                    return self._exchange(connection, outgoing, attempt)
                except NotHttp as problem:
                    name = self.settings.name
                    raise BadResponse(f"`{name}` does not speak HTTP as it should: {problem}") from None
                except EffectFailed as failed:
                    # A connection that was kept, and was closed before a byte went out, is not what was asked for: the
                    # next one is taken. Each time round one connection is gone, so that this ends.
                    is_stale = failed.code == "unavailable" and connection.is_reused and attempt.sent == before
                    if not is_stale:
                        raise

    def _exchange(self, connection: Connection, outgoing: Outgoing, attempt: Attempt) -> Answer:
        connection.send(outgoing, attempt)
        head = connection.head(attempt)
        headers = _headers(head)
        if 200 <= head.status_code <= 299:
            body = self._body(headers, connection, attempt, outgoing.method)
            return Answer(head.status_code, headers, body)
        return Answer(head.status_code, headers, _body_of_failure(headers, connection, attempt))

    def _body(self, headers: dict[str, str], connection: Connection, attempt: Attempt, method: str) -> bytes:
        who = f"the answer of `{self.settings.name}`"
        most = self.settings.max_response
        too_long = f"{who} is longer than {most:,} bytes, the limit `max_response`"
        if method != "HEAD":  # which has the headers of a body that does not come
            packed = headers.get("content-encoding", "identity").lower()
            if packed not in ("", "identity"):
                how = f" (`{packed}`)" if packed in _PACKINGS else ""
                raise BadResponse(f"{who} is compressed{how}, though it was asked for as it is")
            length = headers.get("content-length", "")
            if length.isdigit() and int(length[:19]) > most:
                raise BadResponse(too_long)
        body = bytearray()
        for count, piece in enumerate(connection.body(attempt)):
            body += piece
            if len(body) > most:
                raise BadResponse(too_long)
            if count > _FREE_PIECES + len(body) // _LEAST_PIECE:
                raise BadResponse(f"{who} comes in {count:,} pieces, of less than {_LEAST_PIECE} bytes on the average")
        return bytes(body)

    def close(self) -> None:
        pool, self._pool = self._pool, _Pool(self.settings, self._connector)
        pool.close()

    def forget(self) -> None:
        """In a forked child: another process uses these connections. Locks may be held by threads that are not here."""
        self._connector.forget()
        self._pool = _Pool(self.settings, self._connector)


class _Pool:
    """Connections that are kept, and how many more may be in use."""

    def __init__(self, settings: HttpSettings, connector: Connector) -> None:
        self._settings = settings
        self._connector = connector
        self._free = threading.Semaphore(settings.max_connections)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False

    @contextmanager
    def connection(self, origin: Origin, attempt: Attempt) -> Iterator[Connection]:
        """A connection for one exchange. It is kept where the answer was read to its end, and closed otherwise."""
        if not self._free.acquire(timeout=attempt.left("before anything was sent")):
            busy = f"all {self._settings.max_connections} connections to `{self._settings.name}` were in use"
            raise attempt.timed_out(f"because {busy} (`max_connections`)")
        try:
            connection = self._kept(origin) or self._connector.connect(origin, attempt)
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._free.release()

    def _kept(self, origin: Origin) -> Connection | None:
        """The connection that was used last: it is the least likely to have ended."""
        while True:
            with self._lock:
                found = next((each for each in reversed(self._idle) if each.origin == origin), None)
                if found is None:
                    return None
                self._idle.remove(found)
            if time.monotonic() - found.idle_since < _KEEP_ALIVE and not found.is_stale():
                found.is_reused = True
                return found
            found.close()

    def _put_back(self, connection: Connection) -> None:
        surplus = [connection]
        if connection.is_done():
            connection.idle_since = time.monotonic()
            with self._lock:
                if not self._is_closed:
                    self._idle.append(connection)
                    surplus = self._idle[: -self._settings.max_connections]
                    del self._idle[: -self._settings.max_connections]
        for each in surplus:
            each.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()


def _headers(head: h11.Response) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}


def _body_of_failure(headers: dict[str, str], connection: Connection, attempt: Attempt) -> bytes:
    """The beginning of the body; however it ends, the status is known and is what counts."""
    body = bytearray()
    try:
        for piece in connection.body(attempt):
            body += piece
            if len(body) > _ERROR_BODY:
                break
    except (EffectFailed, NotHttp):
        return bytes(body)
    return b"" if "content-encoding" in headers else bytes(body[:_ERROR_BODY])


def _tls_context(settings: HttpSettings) -> ssl.SSLContext:
    if settings.ca_file is None:
        return _public_tls_context()
    try:
        return ssl.create_default_context(cafile=str(settings.ca_file))
    except OSError as error:
        where = f"providers.{settings.name}.ca_file"
        raise ConfigError(where, f"`{settings.ca_file}` holds no certificates in PEM form: {error}") from None


@cache
def _public_tls_context() -> ssl.SSLContext:
    """One for all providers: reading the authorities of the web takes some time."""
    return ssl.create_default_context(cafile=certifi.where())


_ALL: weakref.WeakSet[Transport] = weakref.WeakSet()


def _forget_all() -> None:
    for each in list(_ALL):
        each.forget()


register(order=Order.EFFECTS, after_in_child=_forget_all)
