"""The breakpoints of running services, as files beside the configuration.

`vesper debug --break-on` writes them; services read them. This module only reads and writes the files: a service
imports the debugger (`vesper/debug/captures.py`) when there is a breakpoint to evaluate.
"""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from vesper.storage.file_access import make_private_folder

_log = logging.getLogger("vesper.debug")
POLL_SECONDS = 1.0
"""Interval at which a process reads the time of the file."""
_MAX_CAPTURES = 1000
"""Lines that the list of captures keeps."""
_USUAL_LINE_BYTES = 400
"""Size below which a line of that list usually stays."""
_FORMAT = 1


class CapturesError(ValueError):
    """The file of breakpoints cannot be read; the message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A run that met a breakpoint."""

    trace_id: str
    node_id: str
    breakpoint: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Armed:
    """The two files beside a configuration: the breakpoints, and the captures."""

    folder: Path

    @property
    def breakpoints_path(self) -> Path:
        return self.folder / ".vesper" / "breakpoints.json"

    @property
    def captures_path(self) -> Path:
        return self.folder / ".vesper" / "captures.jsonl"

    def breakpoints(self) -> list[str]:
        """Return the texts of the breakpoints. Raises `CapturesError`."""
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
        """Add breakpoints and return all. The file is replaced atomically."""
        known = list(dict.fromkeys([*self.breakpoints(), *texts]))
        make_private_folder(self.breakpoints_path.parent)
        fresh = self.breakpoints_path.with_name(f"breakpoints.{os.getpid()}.new")
        fresh.write_text(json.dumps({"format": _FORMAT, "breakpoints": known}, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.breakpoints_path)
        return known

    def clear(self) -> None:
        """Delete the breakpoints, and keep the captures."""
        self.breakpoints_path.unlink(missing_ok=True)

    def captured(self) -> list[Capture]:
        """Return the captures, oldest first, without a line that is still being written."""
        try:
            lines = self.captures_path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines[-_MAX_CAPTURES:]:
            try:
                found.append(Capture(*json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    def note(self, capture: Capture) -> None:
        """Append a capture to the list."""
        make_private_folder(self.captures_path.parent)
        line = json.dumps([capture.trace_id, capture.node_id, capture.breakpoint, capture.at_us])
        with self.captures_path.open("a", encoding="utf-8") as file:  # one write: lines of processes do not mix
            file.write(f"{line}\n")
            is_long = file.tell() > _MAX_CAPTURES * _USUAL_LINE_BYTES
        if is_long:
            self._shorten()

    def _shorten(self) -> None:
        """Keep the newest lines. A line added meanwhile by another process may be lost; its trace is kept."""
        lines = self.captures_path.read_text(encoding="utf-8").splitlines(keepends=True)
        fresh = self.captures_path.with_name(f"captures.{os.getpid()}.new")
        fresh.write_text("".join(lines[-_MAX_CAPTURES // 2 :]), encoding="utf-8")
        fresh.replace(self.captures_path)


class ArmedWatch:
    """The breakpoints as one process knows them: read again at most once a second."""

    def __init__(self, folder: Path) -> None:
        self.armed = Armed(folder)
        self.texts: list[str] = []
        self._next_poll = 0.0
        self._changed_ns: int | None = None

    def is_armed(self) -> bool:
        """Return whether there is any breakpoint. Raises nothing: a run must not fail for a breakpoint."""
        now = time.monotonic()
        if now >= self._next_poll:
            self._next_poll = now + POLL_SECONDS
            self._poll()
        return bool(self.texts)

    def _poll(self) -> None:
        try:
            changed = self.armed.breakpoints_path.stat().st_mtime_ns
        except OSError:
            self.texts, self._changed_ns = [], None
            return
        if changed != self._changed_ns:
            self._changed_ns = changed
            try:
                self.texts = self.armed.breakpoints()
            except CapturesError as problem:
                self.texts = []
                _log.warning("breakpoints of running services are ignored: %s", problem)
