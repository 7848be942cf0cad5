"""The cost of a rollback to Python in `vesper status NODE`."""

from __future__ import annotations

from typing import Any

from vesper.journal.moments import number, took_text
from vesper.migration.stores.rollback import Rollback


def rollback_text(back: Rollback) -> str:
    answered = f"{number(back.requests, 'request')} that the direct engine answered in the busiest hour"
    if back.python_ns is None or back.processors is None:
        return f"{answered}; the time of Python is unknown, because too few calls were timed recently"
    return f"Python takes {back.processors:.2g} processors for the {answered}, {_time_text(back.python_ns)} each"


def _time_text(ns: float) -> str:
    if ns < 1_000:
        return f"{ns:.0f} ns"
    return f"{ns / 1_000:.3g} µs" if ns < 1_000_000 else took_text(round(ns / 1_000))


def rollback_json(back: Rollback | None) -> dict[str, Any] | None:
    if back is None:
        return None
    return {
        "requests_in_busiest_hour": back.requests,
        "python_ns": back.python_ns,
        "direct_ns": back.direct_ns,
        "processors": back.processors,
    }
