"""Breakpoints of running services: no run stops, one that meets a breakpoint is kept as a trace.

The breakpoints stand in a file beside the configuration. A process looks at the file's time at most once a second,
when a run has ended; while there is no such file a run pays for that look at a clock and nothing else. With
breakpoints, each run that has ended is debugged once more from its journal, in a thread of its own: by the same session
that people use, so a breakpoint means the same. What the thread does not keep up with is counted, and not looked at.
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
LOOK_EVERY = 1.0
_MOST_WAITING = 200
_LONGEST_WAIT = 5.0
"""Seconds that a Host is closed later for, where runs still wait to be looked at."""
_MOST_CAPTURES = 1000
"""Lines that the list of captures keeps."""
_LONGEST_LINE = 400
"""Bytes that a line of that list usually stays below."""
_FORMAT = 1


class CapturesError(ValueError):
    """The file of breakpoints cannot be read; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Capture:
    trace_id: str
    node_id: str
    breakpoint: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Armed:
    """The two files beside a configuration: what is looked for, and what was found."""

    folder: Path

    @property
    def breakpoints_path(self) -> Path:
        return self.folder / ".vesper" / "breakpoints.json"

    @property
    def captures_path(self) -> Path:
        return self.folder / ".vesper" / "captures.jsonl"

    def breakpoints(self) -> list[str]:
        """Raises `CapturesError`."""
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
            raise CapturesError(f"{self.breakpoints_path} is none of this Vesper's; `vesper debug --clear` removes it")
        return [str(each) for each in texts]

    def add(self, texts: list[str]) -> list[str]:
        """The breakpoints there are now. The file is replaced at once: no reader sees half of it."""
        known = list(dict.fromkeys([*self.breakpoints(), *texts]))
        self.breakpoints_path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.breakpoints_path.with_name(f"breakpoints.{os.getpid()}.new")
        fresh.write_text(json.dumps({"format": _FORMAT, "breakpoints": known}, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.breakpoints_path)
        return known

    def clear(self) -> None:
        """Takes the breakpoints away; what was captured stays."""
        self.breakpoints_path.unlink(missing_ok=True)

    def captured(self) -> list[Capture]:
        """Oldest first; a line that another process is still writing is left out."""
        try:
            lines = self.captures_path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines[-_MOST_CAPTURES:]:
            try:
                found.append(Capture(*json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    def note(self, capture: Capture) -> None:
        self.captures_path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps([capture.trace_id, capture.node_id, capture.breakpoint, capture.at_us])
        with self.captures_path.open("a", encoding="utf-8") as file:  # one write: lines of processes do not mix
            file.write(f"{line}\n")
            is_long = file.tell() > _MOST_CAPTURES * _LONGEST_LINE
        if is_long:
            self._shorten()

    def _shorten(self) -> None:
        """Leaves the newest lines. One that another process adds at this moment may be lost; its trace is not."""
        lines = self.captures_path.read_text(encoding="utf-8").splitlines(keepends=True)
        fresh = self.captures_path.with_name(f"captures.{os.getpid()}.new")
        fresh.write_text("".join(lines[-_MOST_CAPTURES // 2 :]), encoding="utf-8")
        fresh.replace(self.captures_path)


class Watch:
    """The breakpoints of running services as one process sees them: read anew at most once a second."""

    def __init__(self, folder: Path) -> None:
        self.armed = Armed(folder)
        self._next_look = 0.0
        self._changed_ns: int | None = None
        self._texts: list[str] = []
        self._loader: Loader | None = None

    def is_armed(self) -> bool:
        """Raises nothing: whatever is wrong here is not the caller's."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY
            self._look()
        return bool(self._texts)

    def _look(self) -> None:
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
                _log.warning("breakpoints of running services are not looked at: %s", problem)

    def met_by(self, trace: Trace) -> str | None:
        """The first breakpoint that an execution meets, debugged once more from its trace; nothing is performed."""
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
                continue  # it is about other nodes
            except Unanswered:
                continue  # the run was stopped at this request, and met nothing before it
        return None

    def caught(self, trace: Trace) -> bool:
        """Whether an execution meets a breakpoint; one that does is noted."""
        text = self.met_by(trace) if self._texts else None
        if text is None:
            return False
        self.armed.note(Capture(trace.trace_id, trace.node_id, text, time.time_ns() // 1000))
        _log.info("%s of %s meets `%s`", trace.trace_id, trace.node_id, text)
        return True


class Captures:
    """Looks at the runs of one Host. `after_run` is the only thing that a caller waits for."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.watch = Watch(host.config.folder)
        self._waiting: deque[str] = deque()
        self._lock = threading.Lock()
        self._worker: tuple[int, threading.Thread] | None = None
        self.dropped = 0
        """Runs that were not looked at, because too many waited."""

    def after_run(self, _: Prepared, execution: str) -> None:
        """Told of each run that has ended. Raises nothing: whatever is wrong here is not the caller's."""
        if self.watch.is_armed():
            self._take(execution)

    def _take(self, execution: str) -> None:
        with self._lock:
            if len(self._waiting) >= _MOST_WAITING:
                self.dropped += 1
                if self.dropped == 1:
                    _log.warning("too many runs wait to be held to breakpoints: some are not looked at")
                return
            self._waiting.append(execution)
            # A fork leaves the thread behind: who has none of its own process begins one.
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
            except Exception:  # noqa: BLE001  # a debugger takes no service down; the log has the reason
                _log.exception("%s could not be held to the breakpoints", execution)

    def wait(self, seconds: float = 10.0) -> None:
        """Until all that waits was looked at, or so long."""
        worker = self._worker
        if worker is not None and worker[0] == os.getpid():
            worker[1].join(seconds)

    def _examine(self, execution: str) -> None:
        """Debugs the run once more from the journal; nothing is performed."""
        from vesper.trace.journalled import trace_of_execution
        from vesper.trace.store import TraceStore

        if not self._host.knows(execution):
            return  # its inputs did not fit: nothing of it was journalled
        trace = trace_of_execution(self._host.journal, execution)
        if self.watch.caught(trace):
            store = TraceStore(self._host.config.tracing(), self._host.key_ring())
            if trace.trace_id not in store.ids(trace.trace_id):  # a run that was recovered has ended twice
                store.add(trace)


def attach(host: Host) -> None:
    """Lets breakpoints of running services see what this Host runs; one that only plays (in tests) is no service."""
    from vesper.host.host import Host

    if type(host) is not Host:
        host.after_run = _look_away
        return
    captures = Captures(host)
    host.after_run = captures.after_run
    host.before_close = lambda: captures.wait(_LONGEST_WAIT)


def _look_away(prepared: Prepared, execution: str) -> None:
    pass
