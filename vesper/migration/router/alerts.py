"""Alerts about demotions, latches, divergences, the store and the Host, in the log and by a webhook.

No request waits for them. `decided` writes the log and queues the post; a thread posts it, and retries where the
webhook does not respond. If the bounded queue is full, alerts are dropped and counted. An alert contains names, modes,
hashes and texts of people. It never contains texts of an engine, which may hold input values.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vesper.effects.settings import ConfigError
from vesper.host.run_metrics import HostAlert
from vesper.migration.control.modes import LATCHING, Mode, Reason
from vesper.migration.control.state import (
    Changed,
    Closed,
    Decision,
    Forgotten,
    Latched,
    NoiseFound,
    PathDemoted,
    PathProven,
    PinEnded,
    PinSet,
    Refused,
    Released,
)
from vesper.migration.stores.store import WHOLE, NodeKey
from vesper.storage.per_process import PerProcess
from vesper.values.model import printable

if TYPE_CHECKING:
    import http.client

MAX_WAITING = 256
"""Maximum number of queued alerts. During a long outage of the webhook some are lost; log and history have all."""
TIMEOUT_SECONDS = 5.0
RETRY_DELAYS_SECONDS = (0.5, 2.0, 8.0)
"""Seconds before each of the three retries."""
_HEADERS = {"Content-Type": "application/json", "User-Agent": "vesper", "Connection": "close"}
_LAST_WAIT_SECONDS = 0.5
_MAX_KNOWN = 4096
_FORMAT = 1
_LOG = logging.getLogger("vesper.migration")
_PEOPLE = frozenset({Reason.PERSON, Reason.PIN, Reason.UNPINNED, Reason.KILL, Reason.RESUME})
"""Reasons with a person as author, whose text may be posted."""
_REASONS = {
    Reason.DIVERGENCE: "the engines disagreed, and the evidence does not carry the mode any more",
    Reason.EFFECT_MISMATCH: "the engines asked for different effects",
    Reason.ENGINE_FAULT: "the direct engine broke",
    Reason.LOST_RUNS: "runs began under the direct engine and never ended",
    Reason.TOO_MANY_DIVERGENCES: "too many different divergences are open",
    Reason.RATE: "divergences come too often for the mode",
    Reason.LATENCY: "the direct engine is slower than Python",
}


class BadWebhook(ConfigError):
    """A URL cannot receive posts. The message leaves out its path, which may be a secret."""

    def __init__(self, message: str) -> None:
        super().__init__("migration.alerts.webhook", message)


@dataclass(frozen=True, slots=True)
class Alert:
    level: int
    text: str
    fields: dict[str, Any]


class Alerts:
    """The sender of alerts. Threads may share it; no method blocks or raises."""

    def __init__(self, webhook: str | None) -> None:
        address = None if webhook is None else _address(webhook)
        # The child of a fork has neither the thread nor the queue of its parent, which posts what is queued.
        self._poster = None if address is None else PerProcess(lambda: _Poster(address))
        self._seen = PerProcess[OrderedDict[tuple[NodeKey, str], None]](OrderedDict)

    def decided(self, key: NodeKey, decisions: Iterable[Decision]) -> None:
        """Log and post the decisions about a node."""
        for alert in self._alerts(key, tuple(decisions)):
            _LOG.log(alert.level, "%s: %s", printable(key.node), printable(alert.text))
            self._post(key, alert)

    def ordered(self, key: NodeKey, decisions: Iterable[Decision]) -> None:
        """Post the decisions on a person's order.

        The command itself has informed that person, and there is no log here.
        """
        for alert in self._alerts(key, tuple(each for each in decisions if not isinstance(each, Refused))):
            self._post(key, alert)

    def stopped_all(self, who: str, why: str) -> None:
        """Post that a person stopped all nodes."""
        text = f"every node runs on Python alone until a person resumes all: stopped by {who}: {why}"
        self._post(WHOLE, Alert(logging.WARNING, text, {"kind": "stopped", "who": who}))

    def store_replaced(self) -> None:
        """Post that the store was replaced. The detecting process has logged the details."""
        text = "the store of migration state was replaced: evidence begins anew; what was stopped stays so"
        self._post(WHOLE, Alert(logging.WARNING, text, {"kind": "store_replaced"}))

    def store_away(self, seconds: float) -> None:
        text = (
            f"the store of migration state has been away for more than {seconds:g} s: every node of this process runs "
            "on Python alone until it is back"
        )
        self._post(WHOLE, Alert(logging.WARNING, text, {"kind": "store_away"}))

    def store_damaged(self, key: NodeKey = WHOLE) -> None:
        """Post that the whole store, or its state of one node, is damaged."""
        what = "the store of migration state" if key == WHOLE else "what the store of migration state has of it"
        text = f"{what} cannot be used, and that does not pass by itself: the log of this process says why"
        self._post(key, Alert(logging.ERROR, text, {"kind": "store_damaged"}))

    def following_stopped(self, abandoned: int) -> None:
        """Log and post that this process follows nothing any more."""
        text = (
            f"the direct engine hung {abandoned} times in this process: every node of it runs on Python alone until it "
            "is restarted"
        )
        _LOG.error("%s", text)
        self._post(WHOLE, Alert(logging.ERROR, text, {"kind": "following_stopped"}))

    def candidate(self, key: NodeKey, kind: str, text: str, level: int) -> None:
        """Post a decision or a problem of a candidate, which the caller has logged."""
        self._post(key, Alert(level, text, {"kind": kind}))

    def host(self, alert: HostAlert) -> None:
        """Post a problem that a Host has logged. Examples are runs in doubt, and an outbox that is not emptied."""
        self._post(WHOLE, Alert(logging.ERROR, alert.text, {"kind": alert.kind}))

    def _post(self, key: NodeKey, alert: Alert) -> None:
        if self._poster is not None and alert.level >= logging.WARNING:
            self._poster.get().put(_body(key, alert))

    def close(self, timeout: float = 5.0) -> None:
        """Post the queued alerts for at most `timeout` seconds, and end the thread."""
        poster = None if self._poster is None else self._poster.drop()
        if poster is not None:
            poster.close(timeout)

    def _alerts(self, key: NodeKey, decisions: tuple[Decision, ...]) -> Iterable[Alert]:
        is_latched = any(isinstance(each, Latched) for each in decisions)
        for each in decisions:
            match each:
                case Changed() if is_latched and each.reason in LATCHING:
                    pass  # covered by the alert of the latch
                case PathDemoted(path, fingerprint) if not self._is_new(key, fingerprint):
                    _LOG.debug("%s: divergence %s again, on path %s", key.node, fingerprint, path)
                case Closed(fingerprint):
                    self._seen.get().pop((key, fingerprint), None)
                    yield _alert(each, decisions)
                case _:
                    yield _alert(each, decisions)

    def _is_new(self, key: NodeKey, fingerprint: str) -> bool:
        """Return True for the first occurrence in this process since the divergence was closed.

        A bounded number of divergences is remembered.
        """
        seen = self._seen.get()
        if (key, fingerprint) in seen:
            return False
        seen[key, fingerprint] = None
        while len(seen) > _MAX_KNOWN:
            try:
                seen.popitem(last=False)
            except KeyError:  # another thread was faster
                break
        return True


def _alert(decision: Decision, decisions: tuple[Decision, ...]) -> Alert:
    match decision:
        case Changed(before, after, reason, who, why):
            is_down = after.level < before.level
            level = logging.WARNING if is_down else logging.INFO
            text = f"{before.value} → {after.value}: {_describe_reason(reason, who, why)}"
            return Alert(level, text, _change_fields("fell" if is_down else "rose", before, after, reason, who))
        case Latched(latch):
            change = next((each for each in decisions if isinstance(each, Changed)), None)
            before = Mode.PYTHON_ONLY if change is None else change.before
            cause = _describe_reason(latch.reason, latch.who, latch.why)
            text = f"latched in python_only until a person resumes it: {cause}"
            level = logging.WARNING if latch.reason is Reason.KILL else logging.ERROR
            return Alert(level, text, _change_fields("latched", before, Mode.PYTHON_ONLY, latch.reason, latch.who))
        case PathDemoted(path, fingerprint):
            what = f"path {path}" if path else "whatever goes that way"
            text = f"the engines disagree (divergence {fingerprint}); {what} is compared from now on"
            return Alert(logging.WARNING, text, {"kind": "diverged", "fingerprint": fingerprint, "path": path})
        case NoiseFound(fingerprint, where):
            text = f"an engine differs from itself at {where} (noise {fingerprint}); until it is closed nothing rises"
            return Alert(logging.WARNING, text, {"kind": "noisy", "fingerprint": fingerprint, "where": where})
        case Refused(event, why):
            asked = type(event).__name__.lower()
            return Alert(logging.WARNING, f"{asked} was refused: {why}", {"kind": "refused", "event": asked})
        case Released(latches, who, why):
            listed = ", ".join(each.reason.value for each in latches)
            return Alert(logging.INFO, f"released ({listed}) by {who}: {why}", {"kind": "released"})
        case PinSet(pin):
            return Alert(logging.INFO, f"pinned to {pin.mode.value} by {pin.who}: {pin.why}", {"kind": "pinned"})
        case PinEnded(pin, who, why):
            return Alert(logging.INFO, f"the pin to {pin.mode.value} is off, by {who}: {why}", {"kind": "unpinned"})
        case Closed(fingerprint, _, who, why):
            return Alert(logging.INFO, f"divergence {fingerprint} closed by {who}: {why}", {"kind": "closed"})
        case Forgotten(who, why):
            return Alert(logging.INFO, f"the evidence is gone, by {who}: {why}", {"kind": "forgotten"})
        case PathProven(path, clean, generated):
            text = f"path {path} has its evidence: {clean:,} of traffic, {generated:,} generated"
            return Alert(logging.DEBUG, text, {"kind": "path_proven"})


def _describe_reason(reason: Reason, who: str, why: str) -> str:
    """Return a fixed sentence or a person's text, never one of an engine."""
    if reason in _PEOPLE:
        return f"{reason.value} by {who}: {why}"
    return _REASONS.get(reason, reason.value)


def _change_fields(kind: str, before: Mode, after: Mode, reason: Reason, who: str) -> dict[str, Any]:
    return {"kind": kind, "before": before.value, "after": after.value, "reason": reason.value, "who": who}


def _body(key: NodeKey, alert: Alert) -> bytes:
    """Return the JSON body. Chat services show `text`; programs read the rest."""
    import uuid

    body = {
        "format": _FORMAT,
        "id": str(uuid.uuid4()),
        "text": f"Vesper: {'all nodes' if key == WHOLE else key.node}: {alert.text}",
        "level": logging.getLevelName(alert.level).lower(),
        "node": key.node or None,
        "epoch": key.epoch or None,
        "at_us": time.time_ns() // 1000,
        "host": socket.gethostname(),
        "process": os.getpid(),
        **alert.fields,
    }
    return json.dumps(body).encode()


# -- posting --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Address:
    is_tls: bool
    host: str
    port: int | None
    target: str

    def __str__(self) -> str:
        """Return the URL without its path, which may be a secret."""
        port = "" if self.port is None else f":{self.port}"
        return f"{'https' if self.is_tls else 'http'}://{self.host}{port}"


def _address(url: str) -> _Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadWebhook("the webhook is no URL: write `https://HOST/PATH`") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadWebhook("the webhook is no `http://` or `https://` URL with a host")
    if parts.username is not None or parts.password is not None:
        raise BadWebhook("the webhook has a user or a password before its host: a token belongs into its path or query")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadWebhook("the webhook holds signs that a URL cannot hold: escape them as %XX")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Address(parts.scheme == "https", parts.hostname, port, target)


class _Poster:
    """The queue and the thread of one process."""

    def __init__(self, address: _Address) -> None:
        self._address = address
        self._waiting: queue.Queue[bytes] = queue.Queue(MAX_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closing = threading.Event()
        self._must_end = threading.Event()
        self._dropped = 0

    def put(self, body: bytes) -> None:
        try:
            self._waiting.put_nowait(body)
        except queue.Full:
            self._drop(1, "more wait than are kept")
            return
        self._start()

    def close(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        self._is_closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(max(0.0, until - time.monotonic()))
        self._must_end.set()
        if thread is not None:
            thread.join(_LAST_WAIT_SECONDS)  # lets a thread that waits for a retry log the dropped alert
        left = self._waiting.qsize() + (thread is not None and thread.is_alive())
        if left:
            self._drop(left, "it has not answered yet, and the process ends")

    def _drop(self, count: int, why: str) -> None:
        """Count dropped alerts, and log the first, the tenth, the hundredth…."""
        with self._lock:
            before = self._dropped
            self._dropped += count
            after = self._dropped
        if len(str(after)) > len(str(before)) or before == 0:
            _LOG.error("alerts that were not posted to %s so far: %s (%s)", self._address, f"{after:,}", why)

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            thread = threading.Thread(target=self._run, name="vesper-alerts", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads, or the interpreter is shutting down
                _LOG.error("alerts cannot be posted now: %s", error)
                return
            self._thread = thread

    def _run(self) -> None:
        while not self._must_end.is_set():
            try:
                body = self._waiting.get(timeout=0.2)
            except queue.Empty:
                if self._is_closing.is_set():
                    return
                continue
            self._deliver(body)

    def _deliver(self, body: bytes) -> None:
        problem, may_repeat = self._post(body)
        for delay in RETRY_DELAYS_SECONDS:
            if problem is None or not may_repeat or self._must_end.wait(delay):
                break
            problem, may_repeat = self._post(body)
        if problem is not None:
            self._drop(1, problem)

    def _post(self, body: bytes) -> tuple[str | None, bool]:
        """Return the problem, if any, and whether a retry may help."""
        import http.client  # imported late: they take as long to load as a warm start
        import ssl

        at = self._address
        kind = http.client.HTTPSConnection if at.is_tls else http.client.HTTPConnection
        connection = kind(at.host, at.port, timeout=TIMEOUT_SECONDS)
        # The timeout applies per byte; a slow server could hold the thread for days.
        patience = threading.Timer(2 * TIMEOUT_SECONDS, _shut_down, (connection,))
        patience.daemon = True
        try:
            patience.start()
            connection.request("POST", at.target, body, _HEADERS)
            status = connection.getresponse().status
        except ssl.SSLCertVerificationError as error:
            return f"its certificate is not accepted: {error.verify_message}", False
        except (OSError, http.client.HTTPException, RuntimeError) as error:
            return f"it does not answer: {type(error).__name__}", True
        finally:
            patience.cancel()
            connection.close()
        if 200 <= status < 300:
            return None, False
        if 300 <= status < 400:
            return f"it answered {status}, and redirects are not followed", False
        return f"it answered {status}", status >= 500 or status in (408, 429)


def _shut_down(connection: http.client.HTTPConnection) -> None:
    """Shut down a connection that another thread waits for."""
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
