"""The cost of a rollback to Python in `vesper status NODE --format json`."""

from __future__ import annotations

from typing import Any

from vesper.migration.stores.rollback import Rollback


def rollback_json(back: Rollback | None) -> dict[str, Any] | None:
    if back is None:
        return None
    return {
        "requests_in_busiest_hour": back.requests,
        "python_ns": back.python_ns,
        "direct_ns": back.direct_ns,
        "processors": back.processors,
    }
