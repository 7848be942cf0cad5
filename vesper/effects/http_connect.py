"""Connections: where they may go, and that nothing on them takes longer than the attempt may.

httpcore speaks HTTP and keeps connections; each read and write of it comes through here with the `Attempt` in the place
of a time-out. So one clock runs over looking up the name, connecting, the TLS handshake, writing and every read: a
server that sends one byte now and then gains nothing by it.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any, Self

import httpcore

from vesper.effects.addresses import literal_address, refusal
from vesper.effects.http_settings import HttpSettings
from vesper.effects.performer import EffectFailed

_LOOK_UPS = 64
"""Looking up a name cannot be given up, only waited for no longer: this many may be under way, waited for or not."""

Resolve = Callable[[str, int], "list[tuple[int, str]]"]
"""From a name and a port to families and addresses."""


class AddressRefused(Exception):
    """The name leads to an address that nothing may connect to."""


class Attempt(float):
    """The clock of one attempt, and how far it came. To httpcore it is a number of seconds, and is only passed on."""

    __slots__ = ("ended", "has_connected", "sent", "until")

    def __new__(cls, seconds: float) -> Self:
        made = super().__new__(cls, seconds)
        made.until = time.monotonic() + seconds
        made.sent = 0
        made.has_connected = False
        made.ended = False
        return made

    until: float
    sent: int
    """Bytes that were handed to a connection: from the first one on, the other side may have acted."""
    has_connected: bool
    """True where a new connection was tried for it: otherwise it had one that was open."""
    ended: bool
    """True where the other side has closed the connection."""

    def left(self, doing: str, until: float | None = None) -> float:
        """Seconds that are left, more than none; otherwise it has failed."""
        left = (self.until if until is None else min(until, self.until)) - time.monotonic()
        if left <= 0:
            raise self.timed_out(doing)
        return left

    def timed_out(self, doing: str) -> EffectFailed:
        return EffectFailed("timeout", f"no time was left {doing}", may_have_happened=self.sent > 0)

    def unavailable(self, problem: str) -> EffectFailed:
        return EffectFailed("unavailable", problem, may_have_happened=self.sent > 0)


class _LookUps:
    """How many more look-ups may begin."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """In a forked child, which has none of the threads that hold some."""
        self.free = threading.BoundedSemaphore(_LOOK_UPS)


_look_ups = _LookUps()
os.register_at_fork(after_in_child=_look_ups.renew)


def look_up(host: str, port: int) -> list[tuple[int, str]]:
    """What the system's resolver says."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [(int(family), str(address[0])) for family, _, _, _, address in found]


class Backend(httpcore.NetworkBackend):
    """Makes the connections of one provider."""

    def __init__(self, settings: HttpSettings, resolve: Resolve = look_up) -> None:
        self._settings = settings
        self._resolve = resolve
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        assert isinstance(timeout, Attempt)
        assert local_address is None
        assert socket_options is None
        attempt = timeout
        attempt.has_connected = True
        until = time.monotonic() + self._settings.connect_timeout
        problems: list[str] = []
        refused: list[str] = []
        addresses = self._addresses(host, port, attempt, until)
        for position, (family, address) in enumerate(addresses):
            kind = refusal(ip_address(address), self._settings.allow_private_addresses)
            if kind is not None:
                refused.append(f"{address} ({kind})")
                continue
            connection = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            try:
                # Each gets its share of the time: an address that swallows everything must not hide the next one.
                share = attempt.left(f"while connecting to {host}", until) / (len(addresses) - position)
                connection.settimeout(share)
                connection.connect((address, port))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except TimeoutError:
                connection.close()
                problems.append(f"{address} did not answer")
            except OSError as error:
                connection.close()
                problems.append(f"{address}: {error.strerror or error}")
            except EffectFailed:
                connection.close()
                raise
            else:
                self._sockets.add(connection)
                return Stream(connection, self._sockets, until)
        if refused and not problems:
            raise AddressRefused(f"`{host}` is at {', '.join(refused[:3])}, where no request may go")
        attempt.left(f"while connecting to {host}", until)
        raise attempt.unavailable(f"`{host}` cannot be reached: {'; '.join(problems[:3])}")

    def _addresses(self, host: str, port: int, attempt: Attempt, until: float) -> list[tuple[int, str]]:
        address = literal_address(host)
        if address is not None:
            return [(socket.AF_INET if address.version == 4 else socket.AF_INET6, str(address))]
        found: list[tuple[int, str]] | OSError | UnicodeError | None = None
        is_done, free = threading.Event(), _look_ups.free

        def find() -> None:
            nonlocal found
            try:
                found = self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                found = error
            finally:
                free.release()
                is_done.set()

        doing = f"while looking up {host}"
        if not free.acquire(timeout=attempt.left(doing, until)):
            raise attempt.timed_out(doing)
        try:
            threading.Thread(target=find, name=f"vesper-look-up-{host[:32]}", daemon=True).start()
        except RuntimeError:  # the machine has no thread left
            free.release()
            raise attempt.unavailable(f"`{host}` cannot be looked up: no thread can be started") from None
        if not is_done.wait(attempt.left(doing, until)):
            raise attempt.timed_out(doing)
        if isinstance(found, OSError | UnicodeError) or not found:
            why = (found.strerror if isinstance(found, OSError) else None) or "it has no address"
            raise attempt.unavailable(f"`{host}` cannot be found: {why}")
        return found

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise AssertionError("no provider is a Unix socket")

    def sleep(self, seconds: float) -> None:
        raise AssertionError("httpcore repeats nothing: the Host does")

    def forget(self) -> None:
        """In a forked child: closes our copies of the connections. Those of the parent stay open."""
        for each in list(self._sockets):
            each.close()
        self._sockets.clear()


class Stream(httpcore.NetworkStream):
    """One connection. Only the thread of the attempt that has it reads and writes."""

    def __init__(
        self, connection: socket.socket, among: weakref.WeakSet[socket.socket], until: float | None = None
    ) -> None:
        self._socket = connection
        self._among = among
        self._until = until
        """When the handshake must be over."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        assert isinstance(timeout, Attempt)
        attempt = timeout
        try:
            self._socket.settimeout(attempt.left("while waiting for the answer"))
            found = self._socket.recv(max_bytes)
        except TimeoutError:
            raise attempt.timed_out("while waiting for the answer") from None
        except OSError as error:
            attempt.ended = True
            raise attempt.unavailable(f"the connection broke: {error.strerror or error}") from None
        attempt.ended = attempt.ended or not found
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        assert isinstance(timeout, Attempt)
        attempt = timeout
        rest = memoryview(buffer)
        while rest:
            try:
                self._socket.settimeout(attempt.left("while sending the request"))
                count = self._socket.send(rest)
            except TimeoutError:
                raise attempt.timed_out("while sending the request") from None
            except OSError as error:
                # httpcore goes on to read: a server may refuse a request in the middle, and say why.
                raise httpcore.WriteError(str(error)) from None
            attempt.sent += count
            rest = rest[count:]

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Stream:
        assert isinstance(timeout, Attempt)
        attempt = timeout
        doing = f"during the TLS handshake with {server_hostname}"
        try:
            self._socket.settimeout(attempt.left(doing, self._until))
            # An end that nobody announced is no end: otherwise somebody in between could cut an answer short.
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname, suppress_ragged_eofs=False)
        except TimeoutError:
            self._socket.close()
            raise attempt.timed_out(doing) from None
        except ssl.SSLCertVerificationError as error:
            self._socket.close()
            problem = f"the certificate of `{server_hostname}` is refused: {error.verify_message}"
            raise attempt.unavailable(problem) from None
        except (OSError, ValueError) as error:
            self._socket.close()
            raise attempt.unavailable(f"no TLS connection with `{server_hostname}`: {_reason(error)}") from None
        except EffectFailed:
            self._socket.close()
            raise
        self._among.add(secured)
        return Stream(secured, self._among)

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> object:
        match info:
            case "ssl_object":
                return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
            case "is_readable":
                return _is_readable(self._socket)
            case _:
                return None


def _is_readable(connection: socket.socket) -> bool:
    """Whether an idle connection has something to say, which can only be that it ends."""
    if connection.fileno() < 0:
        return True
    watched = select.poll()
    watched.register(connection, select.POLLIN)
    return bool(watched.poll(0))


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
