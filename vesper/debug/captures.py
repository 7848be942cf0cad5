"""Breakpoints of running services: runs never stop, a run that meets one is stored as a trace.

The breakpoints are in a file beside the configuration. A process checks the file's modification time at most once per
second, after a run has ended; without the file, a run costs one clock read. With breakpoints, a background thread
debugs each ended run from its journal, in the same session as the prompt, so that breakpoints mean the same. Runs
beyond the queue's bound are counted and skipped.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vesper.host.host import Host, Prepared
    from vesper.trace.expressions import Loader
    from vesper.trace.model import Trace

_log = logging.getLogger("vesper.debug")
POLL_SECONDS = 1.0
_MAX_WAITING_RUNS = 200
_CLOSE_TIMEOUT_SECONDS = 5.0
"""Seconds that closing a Host waits for queued runs."""
_MAX_CAPTURE_LINES = 1000
"""Maximum lines of the list of captures."""
_TYPICAL_LINE_BYTES = 400
"""Bytes of a typical line, used to estimate the length of the list."""
_FORMAT = 1


class CapturesError(ValueError):
    """The breakpoint file cannot be read; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Capture:
    trace_id: str
    node_id: str
    breakpoint: str
    at_us: int


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    """The two files beside a configuration: breakpoints and captures."""

    folder: Path

    @property
    def breakpoints_path(self) -> Path:
        return self.folder / ".vesper" / "breakpoints.json"

    @property
    def captures_path(self) -> Path:
        return self.folder / ".vesper" / "captures.jsonl"

    def breakpoints(self) -> list[str]:
        """Return the breakpoints of the file. Raises `CapturesError`."""
        try:
            document = json.loads(self.breakpoints_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as problem:
            raise CapturesError(f"{self.breakpoints_path}: {problem}; `vesper debug --clear` removes it") from None
        texts = (
            document.get("breakpoints") if isinstance(document, dict) and document.get("format") == _FORMAT else None
        )
        if not isinstance(texts, list):
            raise CapturesError(
                f"{self.breakpoints_path} has another format than this Vesper; `vesper debug --clear` removes it"
            )
        return [str(each) for each in texts]

    def add(self, texts: list[str]) -> list[str]:
        """Add breakpoints and return all of them. The file is replaced atomically."""
        known = list(dict.fromkeys([*self.breakpoints(), *texts]))
        self.breakpoints_path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.breakpoints_path.with_name(f"breakpoints.{os.getpid()}.new")
        fresh.write_text(json.dumps({"format": _FORMAT, "breakpoints": known}, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.breakpoints_path)
        return known

    def clear(self) -> None:
        """Remove all breakpoints; captures stay."""
        self.breakpoints_path.unlink(missing_ok=True)

    def captures(self) -> list[Capture]:
        """Return the captures, oldest first, without a line that is still being written."""
        try:
            lines = self.captures_path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines[-_MAX_CAPTURE_LINES:]:
            try:
                found.append(Capture(*json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    def note(self, capture: Capture) -> None:
        self.captures_path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps([capture.trace_id, capture.node_id, capture.breakpoint, capture.at_us])
        # one write, so that lines of several processes do not interleave
        with self.captures_path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            is_long = file.tell() > _MAX_CAPTURE_LINES * _TYPICAL_LINE_BYTES
        if is_long:
            self._shorten()

    def _shorten(self) -> None:
        """Truncate the list to its newest lines.

        A line that another process appends meanwhile may be lost; its trace is not.
        """
        lines = self.captures_path.read_text(encoding="utf-8").splitlines(keepends=True)
        fresh = self.captures_path.with_name(f"captures.{os.getpid()}.new")
        fresh.write_text("".join(lines[-_MAX_CAPTURE_LINES // 2 :]), encoding="utf-8")
        fresh.replace(self.captures_path)


class CaptureWatch:
    """The breakpoints of running services as one process sees them, reloaded at most once per second."""

    def __init__(self, folder: Path) -> None:
        self.armed = CaptureFiles(folder)
        self._next_look = 0.0
        self._changed_ns: int | None = None
        self._texts: list[str] = []
        self._loader: Loader | None = None

    def is_armed(self) -> bool:
        """Return whether breakpoints exist. Never raises: an error here must not fail the caller's run."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + POLL_SECONDS
            self._reload()
        return bool(self._texts)

    def _reload(self) -> None:
        try:
            changed = self.armed.breakpoints_path.stat().st_mtime_ns
        except OSError:
            self._texts, self._changed_ns = [], None
            return
        if changed != self._changed_ns:
            self._changed_ns = changed
            try:
                self._texts = self.armed.breakpoints()
            except CapturesError as problem:
                self._texts = []
                _log.warning("breakpoints of running services are ignored: %s", problem)

    def first_met_by(self, trace: Trace) -> str | None:
        """Return the first breakpoint that an execution meets, replayed from its trace, or None."""
        from vesper.debug.breakpoints import BadBreakpoint
        from vesper.debug.responses import Unanswered
        from vesper.debug.start import subject_of_trace
        from vesper.engines.registry import PAIR
        from vesper.trace.expressions import BadExpression, Loader

        self._loader = self._loader or Loader()
        engines: list[Any] = list(PAIR.values())
        for text in self._texts:
            needed = engines if text.startswith("divergence") else engines[:1]
            session = subject_of_trace(trace, needed, self._loader).session()
            try:
                session.add_breakpoint(text)
                if session.resume(from_start=True).breakpoints:
                    return text
            except (BadBreakpoint, BadExpression):
                continue  # the breakpoint names another node
            except Unanswered:
                continue  # the run was stopped at this request and met nothing before it
        return None

    def capture_if_met(self, trace: Trace) -> bool:
        """Record a capture if an execution meets a breakpoint; return whether it did."""
        text = self.first_met_by(trace) if self._texts else None
        if text is None:
            return False
        self.armed.note(Capture(trace.trace_id, trace.node_id, text, time.time_ns() // 1000))
        _log.info("%s of %s meets `%s`", trace.trace_id, trace.node_id, text)
        return True


class Captures:
    """Checks of one Host's runs against the breakpoints. Callers wait only for `after_run`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.watch = CaptureWatch(host.config.folder)
        self._waiting: deque[str] = deque()
        self._lock = threading.Lock()
        self._worker: tuple[int, threading.Thread] | None = None
        self.dropped = 0
        """Runs skipped because the queue was full."""

    def after_run(self, _: Prepared, execution: str) -> None:
        """Queue a run that has ended. Never raises: an error here must not fail the caller's run."""
        if self.watch.is_armed():
            self._enqueue(execution)

    def _enqueue(self, execution: str) -> None:
        with self._lock:
            if len(self._waiting) >= _MAX_WAITING_RUNS:
                self.dropped += 1
                if self.dropped == 1:
                    _log.warning("too many runs wait for the check against breakpoints: some are skipped")
                return
            self._waiting.append(execution)
            # A fork does not copy the thread, so each process starts its own.
            if self._worker is None or self._worker[0] != os.getpid() or not self._worker[1].is_alive():
                thread = threading.Thread(target=self._work, name="vesper-captures", daemon=True)
                self._worker = os.getpid(), thread
                thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._worker = None
                    return
                execution = self._waiting.popleft()
            try:
                self._examine(execution)
            except Exception:  # noqa: BLE001  # a debugger must not stop a service; the log has the reason
                _log.exception("%s could not be checked against the breakpoints", execution)

    def wait(self, seconds: float = 10.0) -> None:
        """Join the worker, at most `seconds`."""
        worker = self._worker
        if worker is not None and worker[0] == os.getpid():
            worker[1].join(seconds)

    def _examine(self, execution: str) -> None:
        """Debug a run from its journal and store it if it meets a breakpoint; performs nothing."""
        from vesper.trace.journalled import trace_of_execution
        from vesper.trace.store import TraceStore

        if not self._host.knows(execution):
            return  # the inputs were rejected: no entry was journalled
        trace = trace_of_execution(self._host.journal, execution)
        if self.watch.capture_if_met(trace):
            store = TraceStore(self._host.config.tracing(), self._host.key_ring())
            if trace.trace_id not in store.ids(trace.trace_id):  # a recovered run ends twice
                store.add(trace)


def attach(host: Host) -> None:
    """Attach the breakpoints of running services to a Host. A Host that only simulates is skipped."""
    from vesper.host.host import Host

    if type(host) is not Host:
        host.after_run = _ignore_run
        return
    captures = Captures(host)
    host.after_run = captures.after_run
    host.before_close = lambda: captures.wait(_CLOSE_TIMEOUT_SECONDS)


def _ignore_run(prepared: Prepared, execution: str) -> None:
    pass
