"""Sessions of browsers in the memory of the process, their tokens against forged requests, and failed logins."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

MAX_SESSIONS: Final = 1_000
IDLE_SECONDS: Final = 3_600.0
ABSOLUTE_SECONDS: Final = 12 * 3_600.0
MAX_FAILURES: Final = 10
"""Failed logins of one address in `FAILURE_SECONDS`; ten times as many of all addresses."""
FAILURE_SECONDS: Final = 60.0
_TOKEN_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    """One login. Its credential is verified for every request, and must still be one of `Credentials`."""

    credential: str = field(repr=False)
    created: float
    used: float
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_TOKEN_BYTES), repr=False)

    def token(self) -> str:
        """Return the token of forms, masked anew each time: compressed pages must not reveal it."""
        pad = secrets.token_bytes(_TOKEN_BYTES)
        return (pad + _xor(pad, self.secret)).hex()

    def has_token(self, text: str) -> bool:
        """Return whether a text is a token of this session."""
        try:
            data = bytes.fromhex(text)
        except ValueError:
            return False
        pad, masked = data[:_TOKEN_BYTES], data[_TOKEN_BYTES:]
        return len(data) == 2 * _TOKEN_BYTES and hmac.compare_digest(_xor(pad, masked), self.secret)


def login_of(token: str) -> str:
    """Return a name of the login that a token belongs to, equal for all of its tokens."""
    data = bytes.fromhex(token)
    return hashlib.sha256(_xor(data[:_TOKEN_BYTES], data[_TOKEN_BYTES:])).hexdigest()


class Sessions:
    """All sessions, by the hash of their id."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def create(self, credential: str) -> str:
        """Create a session, and return its id. Beyond the maximum the least recently used one is dropped."""
        now = self._clock()
        if len(self._sessions) >= MAX_SESSIONS:
            self._sessions = {name: each for name, each in self._sessions.items() if not _is_over(each, now)}
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions, key=lambda name: self._sessions[name].used)]
        found = secrets.token_urlsafe(_TOKEN_BYTES)
        self._sessions[_digest(found)] = Session(credential, now, now)
        return found

    def find(self, session_id: str, is_used: bool = True) -> Session | None:
        """Return a session that is not over; `is_used` prolongs it."""
        found = self._sessions.get(_digest(session_id))
        now = self._clock()
        if found is None or _is_over(found, now):
            self.drop(session_id)
            return None
        if is_used:
            found.used = now
        return found

    def drop(self, session_id: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(session_id), None)


class Attempts:
    """Failed logins by address, limited within a period of time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: list[tuple[float, str]] = []

    def is_blocked(self, address: str) -> bool:
        """Return whether this address, or all addresses together, failed too often."""
        since = self._clock() - FAILURE_SECONDS
        self._failures = [each for each in self._failures if each[0] > since]
        own = sum(1 for _, each in self._failures if each == address)
        return own >= MAX_FAILURES or len(self._failures) >= 10 * MAX_FAILURES

    def add(self, address: str) -> None:
        """Count a failure."""
        self._failures.append((self._clock(), address))


def _is_over(session: Session, now: float) -> bool:
    return now - session.used > IDLE_SECONDS or now - session.created > ABSOLUTE_SECONDS


def _digest(session_id: str) -> str:
    return hashlib.sha256(session_id.encode("utf-8", "surrogateescape")).hexdigest()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=False))
