"""Connections: where they may go, what is said on them, and that nothing takes longer than the attempt may.

One clock runs over looking up the name, connecting, the TLS handshake, writing and every read: a server that sends one
byte now and then gains nothing by it. h11 knows the grammar of HTTP, and nothing else of this.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from ipaddress import ip_address

import h11

from vesper.effects.http.addresses import literal_address, refusal
from vesper.effects.http.request import Outgoing
from vesper.effects.http.settings import HttpSettings
from vesper.effects.http.url import Origin
from vesper.effects.performer import EffectFailed
from vesper.storage.after_fork import Order, register

_LOOK_UPS = 64
"""Looking up a name cannot be given up, only waited for no longer: this many may be under way, waited for or not."""

_MAX_HEAD = 102_400
"""Bytes of the headers of an answer, or of the size of a chunk."""
_READ = 65_536
_HAVE_BODIES = ("POST", "PUT", "PATCH")

Resolve = Callable[[str, int], "list[tuple[int, str]]"]
"""From a name and a port to families and addresses."""


class AddressRefused(Exception):
    """The name leads to an address that nothing may connect to."""


class Attempt:
    """The clock of one attempt, and how far it came."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.sent = 0
        """Bytes that were handed to a connection: from the first one on, the other side may have acted."""

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
register(order=Order.EFFECTS, after_in_child=_look_ups.renew)


def look_up(host: str, port: int) -> list[tuple[int, str]]:
    """What the system's resolver says."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [(int(family), str(address[0])) for family, _, _, _, address in found]


class Connector:
    """Makes the connections of one provider."""

    def __init__(self, settings: HttpSettings, tls: ssl.SSLContext, resolve: Resolve = look_up) -> None:
        self._settings = settings
        self._tls = tls
        self._resolve = resolve
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def connect(self, origin: Origin, attempt: Attempt) -> Connection:
        """Raises `EffectFailed`, `AddressRefused`."""
        until = time.monotonic() + self._settings.connect_timeout
        plain = self._connected(origin, attempt, until)
        self._sockets.add(plain)
        if not origin.is_secure:
            return Connection(plain, origin)
        secured = self._secured(plain, origin.host, attempt, until)
        self._sockets.add(secured)
        return Connection(secured, origin)

    def forget(self) -> None:
        """In a forked child: closes our copies of the connections. Those of the parent stay open."""
        for each in list(self._sockets):
            each.close()
        self._sockets.clear()

    def _connected(self, origin: Origin, attempt: Attempt, until: float) -> socket.socket:
        host = origin.host
        doing = f"while connecting to {host}"
        problems: list[str] = []
        refused: list[str] = []
        addresses = self._addresses(host, origin.port, attempt, until)
        for position, (family, address) in enumerate(addresses):
            kind = refusal(ip_address(address), self._settings.allow_private_addresses)
            if kind is not None:
                refused.append(f"{address} ({kind})")
                continue
            # Each gets its share of the time: an address that swallows everything must not hide the next one.
            share = attempt.left(doing, until) / (len(addresses) - position)
            try:
                return _reached(family, (address, origin.port), share)
            except TimeoutError:
                problems.append(f"{address} did not answer")
            except OSError as error:
                problems.append(f"{address}: {error.strerror or error}")
        if refused and not problems:
            hint = ""
            if any(refusal(ip_address(address), allow_private=True) is None for _, address in addresses):
                hint = f"; `allow_private_addresses = true` under [providers.{self._settings.name}] lets them"
            raise AddressRefused(f"`{host}` is at {', '.join(refused[:3])}, where no request may go{hint}")
        attempt.left(doing, until)
        raise attempt.unavailable(f"`{host}` cannot be reached: {'; '.join(problems[:3])}")

    def _secured(self, plain: socket.socket, host: str, attempt: Attempt, until: float) -> ssl.SSLSocket:
        doing = f"during the TLS handshake with {host}"
        try:
            plain.settimeout(attempt.left(doing, until))
            # An end that nobody announced is no end: otherwise somebody in between could cut an answer short.
            return self._tls.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False)
        except TimeoutError:
            plain.close()
            raise attempt.timed_out(doing) from None
        except ssl.SSLCertVerificationError as error:
            plain.close()
            raise attempt.unavailable(f"the certificate of `{host}` is refused: {error.verify_message}") from None
        except (OSError, ValueError) as error:
            plain.close()
            raise attempt.unavailable(f"no TLS connection with `{host}`: {_reason(error)}") from None
        except EffectFailed:
            plain.close()
            raise

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


def _reached(family: int, address: tuple[str, int], seconds: float) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        connection.settimeout(seconds)
        connection.connect(address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        connection.close()
        raise
    return connection


class Connection:
    """One connection, in the hands of one attempt at a time."""

    def __init__(self, connection: socket.socket, origin: Origin) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.is_reused = False
        self._socket = connection
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        self._has_ended = False
        self._is_broken = False

    def send(self, outgoing: Outgoing, attempt: Attempt) -> None:
        """Writes the whole request. A connection that breaks meanwhile is not told yet: the server may have refused
        the request in the middle, and have said why."""
        parts = [
            self._http.send(h11.Request(method=outgoing.method, target=outgoing.url.target, headers=_wire(outgoing)))
        ]
        if outgoing.body:
            parts.append(self._http.send(h11.Data(data=outgoing.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        rest = memoryview(b"".join(part for part in parts if part))
        doing = "while sending the request"
        while rest:
            try:
                self._socket.settimeout(attempt.left(doing))
                count = self._socket.send(rest)
            except TimeoutError:
                raise attempt.timed_out(doing) from None
            except OSError:
                self._is_broken = True
                return
            attempt.sent += count
            rest = rest[count:]

    def head(self, attempt: Attempt) -> h11.Response:
        """The status and the headers of the answer; what comes before it is only for information."""
        while True:
            event = self._event(attempt)
            if isinstance(event, h11.Response):
                return event
            attempt.left("while waiting for the answer")

    def body(self, attempt: Attempt) -> Iterator[bytes]:
        """The body, piece by piece."""
        while True:
            event = self._event(attempt)
            if not isinstance(event, h11.Data):
                return
            attempt.left("while reading the answer")
            yield bytes(event.data)

    def _event(self, attempt: Attempt) -> object:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                if self._has_ended:
                    raise attempt.unavailable("the connection was closed before the answer was complete") from None
                # What comes after the colon is what the other side sent: of any length, and perhaps our own secret.
                raise NotHttp(str(error).partition(":")[0]) from None
            if event is not h11.NEED_DATA:
                return event
            received = self._received(attempt)
            if not received and self._http.their_state is h11.SEND_RESPONSE:
                raise attempt.unavailable("the connection was closed before the answer was complete")
            self._http.receive_data(received)

    def _received(self, attempt: Attempt) -> bytes:
        doing = "while waiting for the answer"
        try:
            self._socket.settimeout(attempt.left(doing))
            found = self._socket.recv(_READ)
        except TimeoutError:
            raise attempt.timed_out(doing) from None
        except OSError as error:
            raise attempt.unavailable(f"the connection broke: {_reason(error)}") from None
        self._has_ended = not found
        return found

    def is_done(self) -> bool:
        """Whether the request was sent and the answer read to their ends, so that another request may be sent. Nothing
        may have come behind the answer: that would be read as the next one."""
        is_whole = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not is_whole or self._is_broken or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        return True

    def is_stale(self) -> bool:
        """Whether an idle connection has something to say, which can only be that it ends."""
        watched = select.poll()
        watched.register(self._socket, select.POLLIN)
        return bool(watched.poll(0))

    def close(self) -> None:
        self._socket.close()


class NotHttp(Exception):
    """The other side does not speak HTTP as it should."""


def _wire(outgoing: Outgoing) -> list[tuple[str, str]]:
    headers = {"Host": outgoing.url.origin.authority, **outgoing.headers, "Accept-Encoding": "identity"}
    if outgoing.body is not None or outgoing.method in _HAVE_BODIES:
        headers["Content-Length"] = str(len(outgoing.body or b""))
    return list(headers.items())


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
