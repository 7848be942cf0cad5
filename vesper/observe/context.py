"""The run of the current thread or task, and the W3C trace context as text."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass

TRACEPARENT = "traceparent"
"""Name of the trace context in headers and metadata."""
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """The facts of a run that its log lines have."""

    node_id: str
    execution: str
    traceparent: str | None = None


CURRENT_RUN: ContextVar[CurrentRun | None] = ContextVar("vesper_current_run", default=None)

ANNOUNCED_TRACE: ContextVar[str | None] = ContextVar("vesper_announced_trace", default=None)
"""Trace id that a server has announced to its client, for the root span of a request without a trace."""


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A parsed `traceparent`."""

    trace_id: int
    span_id: int
    is_sampled: bool

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.is_sampled:02x}"


def parse_traceparent(text: str | None) -> TraceParent | None:
    """Return the parts of a `traceparent`; None for an invalid one, which W3C lets a receiver ignore."""
    found = None if text is None else _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    return TraceParent(int(found[1], 16), int(found[2], 16), bool(int(found[3], 16) & 1))
