"""One request and its answer, over a pool of connections for each provider."""

from __future__ import annotations

import os
import ssl
import threading
import weakref
from functools import cache
from typing import Any

import certifi
import httpcore

from vesper.effects.http_answer import Answer, BadResponse
from vesper.effects.http_connect import Attempt, Backend, Resolve, look_up
from vesper.effects.http_request import Outgoing
from vesper.effects.http_settings import HttpSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError

_KEEP_ALIVE = 15.0
"""Seconds for which an idle connection is kept: less than most servers do, so that they seldom close it first."""
_ERROR_BODY = 65536
"""Bytes that are read of the body of an answer which only a message will show."""
_MAX_PIECES = 50_000
"""Each piece of a body costs some time, however small it is: a server that sends single bytes must not have it all."""
_HAVE_BODIES = ("POST", "PUT", "PATCH")


class Transport:
    """The connections to one provider. Any thread may use it, and a process that was forked."""

    def __init__(self, settings: HttpSettings, resolve: Resolve = look_up) -> None:
        self.settings = settings
        self._resolve = resolve
        self._lock = threading.Lock()
        self._tls = _tls_context(settings)
        self._open: tuple[httpcore.ConnectionPool, Backend] | None = None
        _ALL.add(self)

    def exchange(self, outgoing: Outgoing, attempt: Attempt) -> Answer:
        """Sends the request and reads the answer. Raises `EffectFailed`, `AddressRefused`."""
        while True:
            attempt.has_connected = attempt.ended = False
            before = attempt.sent
            try:
                return self._exchange(outgoing, attempt)
            except EffectFailed as failed:
                # A connection that was kept, and was closed before a byte went out, is not what was asked for: the
                # next one is taken. Each time round one connection is gone, so that this ends.
                is_stale = failed.code == "unavailable" and not attempt.has_connected and attempt.sent == before
                if not is_stale:
                    raise

    def _exchange(self, outgoing: Outgoing, attempt: Attempt) -> Answer:
        origin = outgoing.url.origin
        request = httpcore.Request(
            outgoing.method,
            httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=outgoing.url.target),
            headers=_wire_headers(outgoing),
            content=outgoing.body,
            extensions={
                "timeout": {
                    "pool": attempt.left("before anything was sent"),
                    "connect": attempt,
                    "read": attempt,
                    "write": attempt,
                }
            },
        )
        try:
            response = self._pool().handle_request(request)
            try:
                answer = self._read(response, attempt, has_body=outgoing.method != "HEAD")
                if not _is_at_its_end(response):
                    response.extensions["network_stream"].close()
                return answer
            finally:
                response.close()
        except httpcore.PoolTimeout:
            busy = f"all {self.settings.max_connections} connections to `{self.settings.name}` were in use"
            raise EffectFailed("timeout", f"{busy} (`max_connections`)") from None
        except httpcore.RemoteProtocolError as error:
            if attempt.ended:
                raise attempt.unavailable("the connection was closed before the answer was complete") from None
            raise BadResponse(f"`{self.settings.name}` does not speak HTTP as it should: {error}") from None

    def _read(self, response: httpcore.Response, attempt: Attempt, has_body: bool) -> Answer:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in response.headers}
        answer = Answer(response.status, headers, b"")
        if not has_body:
            for _ in response.iter_stream():  # there are none, but the connection can only be kept after the end
                raise BadResponse(f"`{self.settings.name}` sent a body in answer to a HEAD")
            return answer
        if not answer.is_good:
            return self._read_of_failure(answer, response)
        packed = headers.get("content-encoding", "identity").lower()
        who = f"the answer of `{self.settings.name}`"
        if packed not in ("", "identity"):
            raise BadResponse(f"{who} is compressed (`{packed[:32]}`), though it was asked for as it is")
        most = self.settings.max_response
        too_long = f"{who} is longer than {most:,} bytes, the limit `max_response`"
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:19]) > most:
            raise BadResponse(too_long)
        body = bytearray()
        for count, piece in enumerate(response.iter_stream()):
            attempt.left("while reading the answer")
            body += piece
            if len(body) > most:
                raise BadResponse(too_long)
            if count > _MAX_PIECES:
                raise BadResponse(f"{who} comes in more than {_MAX_PIECES:,} pieces")
        return Answer(response.status, headers, bytes(body))

    def _read_of_failure(self, answer: Answer, response: httpcore.Response) -> Answer:
        """The beginning of the body; however it ends, the status is known and is what counts."""
        body = bytearray()
        is_whole = False
        try:
            for piece in response.iter_stream():
                body += piece
                if len(body) > _ERROR_BODY:
                    break
            else:
                is_whole = True
        except (EffectFailed, httpcore.RemoteProtocolError):
            is_whole = False
        text = b"" if "content-encoding" in answer.headers else bytes(body[:_ERROR_BODY])
        return Answer(answer.status, answer.headers, text, is_whole)

    def _pool(self) -> httpcore.ConnectionPool:
        with self._lock:
            if self._open is None:
                backend = Backend(self.settings, self._resolve)
                pool = httpcore.ConnectionPool(
                    ssl_context=self._tls,
                    max_connections=self.settings.max_connections,
                    keepalive_expiry=_KEEP_ALIVE,
                    network_backend=backend,
                )
                self._open = pool, backend
            return self._open[0]

    def close(self) -> None:
        with self._lock:
            open_now, self._open = self._open, None
        if open_now is not None:
            open_now[0].close()

    def forget(self) -> None:
        """In a forked child: another process uses these connections. Locks may be held by threads that are not here."""
        open_then, self._open = self._open, None
        self._lock = threading.Lock()
        if open_then is not None:
            open_then[1].forget()


def _is_at_its_end(response: httpcore.Response) -> bool:
    """Whether nothing came behind the answer. httpcore would read it as the answer to the next request, and has no
    public word for it. Where its insides are no longer as they were, no connection is kept: slow, but never wrong."""
    state: Any = response.stream
    for name in ("_stream", "_connection", "_h11_state"):
        state = getattr(state, name, None)
    return state is not None and state.trailing_data[0] == b""


def _wire_headers(outgoing: Outgoing) -> list[tuple[bytes, bytes]]:
    headers = {"Host": outgoing.url.origin.authority, **outgoing.headers, "Accept-Encoding": "identity"}
    if outgoing.body is not None or outgoing.method in _HAVE_BODIES:
        headers["Content-Length"] = str(len(outgoing.body or b""))
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


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


os.register_at_fork(after_in_child=_forget_all)
