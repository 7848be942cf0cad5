"""Log lines of a service, as text or JSON, with trace and node, without secrets.

    vesper.observe.logs.configure("json", {"vesper.host": "debug"})

A library writes to the loggers of Python and configures nothing; `vesper serve` calls `configure`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO
from weakref import WeakMethod

from vesper.observe.context import CURRENT_RUN, parse_traceparent

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_GIVEN = ("node", "trace_id")
"""Facts that a line about a request without a run gives itself, as `extra`."""
_redactors: list[WeakMethod[Callable[[str], str]]] = []
_installed: logging.Handler | None = None


def redact_with(method: Callable[[str], str]) -> None:
    """Redact log lines with a bound method, as long as its object lives."""
    _redactors[:] = [each for each in _redactors if each() is not None]
    _redactors.append(WeakMethod(method))


def configure(form: str = "text", levels: Mapping[str, str] | None = None, stream: TextIO | None = None) -> None:
    """Write log lines of all packages to `stream`, by default stderr. It replaces an earlier configuration."""
    global _installed  # noqa: PLW0603  # the loggers of Python are global too
    root = logging.getLogger()
    if _installed is not None:
        root.removeHandler(_installed)
    _installed = logging.StreamHandler(stream or sys.stderr)
    _installed.setFormatter(JsonFormatter() if form == "json" else TextFormatter(_TEXT))
    root.addHandler(_installed)
    for name, level in {"": "info", **(levels or {})}.items():
        logging.getLogger(name or None).setLevel(level.upper())


class TextFormatter(logging.Formatter):
    """Lines for people, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return _redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the facts of the current run."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found: dict[str, Any] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_run_facts(),
            **{name: text for name in _GIVEN if (text := getattr(record, name, None)) is not None},
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: _redact(text) for name, text in found.items()}, ensure_ascii=False)


def _run_facts() -> dict[str, str]:
    """Return node, execution, trace and span of the current run or of the application's current span."""
    run = CURRENT_RUN.get()
    found = {} if run is None else {"node": run.node_id, "execution": run.execution}
    parent = None if run is None else parse_traceparent(run.traceparent)
    if parent is not None:
        return {**found, "trace_id": f"{parent.trace_id:032x}", "span_id": f"{parent.span_id:016x}"}
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is not None and (current := trace.get_current_span().get_span_context()).is_valid:
        return {**found, "trace_id": f"{current.trace_id:032x}", "span_id": f"{current.span_id:016x}"}
    return found


def _redact(text: str) -> str:
    for each in _redactors:
        redact = each()
        if redact is not None:
            text = redact(text)
    return text
