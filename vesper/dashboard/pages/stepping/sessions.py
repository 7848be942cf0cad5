"""The stepping sessions of a dashboard: few, short, and each of one login."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from vesper.dashboard.access.sessions import login_of
from vesper.dashboard.page import Context, NotFound
from vesper.dashboard.pages.stepping.session import SteppingSession
from vesper.dashboard.problem import TooMany
from vesper.dashboard.stores import Stores
from vesper.trace.model import Trace
from vesper.values.vesper_error import VesperError

MAX_SESSIONS: Final = 20
IDLE_SECONDS: Final = 15 * 60
WAIT_SECONDS: Final = 2.0
"""Time that a request waits for another one of its session."""


class Sessions:
    """Sessions by key. An idle one ends; beyond the maximum the caller's oldest is dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, SteppingSession] = {}

    def begin(self, context: Context, trace: Trace) -> SteppingSession:
        """Open a session of the caller. Raises `TooMany`."""
        try:
            file = context.stores.nodes.path(trace.node_id)
        except VesperError:
            file = None  # a node of another project
        found = SteppingSession(secrets.token_urlsafe(16), _owner(context), trace, context.stores.traces, file)
        found.used_at = time.monotonic()
        with self._lock:
            self._end_idle()
            own = [each for each in self._sessions.values() if each.owner == found.owner]
            if len(self._sessions) >= MAX_SESSIONS and own:
                del self._sessions[min(own, key=lambda each: each.used_at).key]
            if len(self._sessions) >= MAX_SESSIONS:
                raise TooMany(
                    f"{MAX_SESSIONS} stepping sessions are open, as many as this dashboard keeps",
                    f"One ends after {IDLE_SECONDS // 60} minutes without use: try again then, or step in a terminal "
                    f"with `vesper debug --trace {trace.trace_id} --comparative`.",
                )
            self._sessions[found.key] = found
        return found

    @contextmanager
    def use(self, context: Context, key: str) -> Iterator[SteppingSession]:
        """Yield the caller's session of this key, for one request at a time. Raises `NotFound` and `TooMany`."""
        with self._lock:
            self._end_idle()
            found = self._sessions.get(key)
            if found is None or found.owner != _owner(context):
                raise NotFound(
                    "there is no such stepping session of yours",
                    f"It ended after {IDLE_SECONDS // 60} minutes without use, or with the dashboard. Start again.",
                )
            found.used_at = time.monotonic()
        if not found.lock.acquire(timeout=WAIT_SECONDS):
            raise TooMany("this stepping session is at work on another command", "Load the page again when it is done.")
        try:
            yield found
        finally:
            found.lock.release()

    def latest(self, context: Context, execution: str) -> str | None:
        """Return the key of the caller's newest session of a run."""
        with self._lock:
            self._end_idle()
            own = [
                each
                for each in self._sessions.values()
                if each.owner == _owner(context) and each.trace.trace_id == execution
            ]
        return max(own, key=lambda each: each.used_at).key if own else None

    def end(self, context: Context, key: str) -> None:
        """End the caller's session. Raises `NotFound`."""
        with self.use(context, key), self._lock:
            self._sessions.pop(key, None)

    def _end_idle(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        self._sessions = {key: each for key, each in self._sessions.items() if each.used_at >= oldest}


def _owner(context: Context) -> tuple[str, str]:
    """Return the caller and its login, which programs with a key do not have."""
    return context.caller.name, login_of(context.csrf)


_known: WeakKeyDictionary[Stores, Sessions] = WeakKeyDictionary()
_lock = threading.Lock()


def sessions_of(stores: Stores) -> Sessions:
    """Return the sessions of one application; they end with its stores."""
    with _lock:
        return _known.setdefault(stores, Sessions())
