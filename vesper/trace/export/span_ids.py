"""Ids of traces and spans in the form of OpenTelemetry, the same in every export of a trace."""

from __future__ import annotations

import hashlib
import re

_OTLP_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


def otlp_trace_id(trace_id: str) -> str:
    """Return the id of a trace; a foreign one is hashed to the form that OpenTelemetry requires."""
    found = trace_id.replace("-", "")
    return found if _OTLP_ID.fullmatch(found) else hashlib.sha256(trace_id.encode()).hexdigest()[:32]


def span_id(trace_id: str, path: str) -> str:
    """Return the id of the span of a request; the empty path is that of the execution."""
    return hashlib.sha256(f"{trace_id} {path}".encode()).hexdigest()[:16]
