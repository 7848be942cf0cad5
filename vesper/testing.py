"""Testing nodes with effects, without servers: what `vesper.api.testing` has, under the name that users write."""

from __future__ import annotations

from vesper.api.testing import (
    NOON,
    Asked,
    NotRecorded,
    Recorder,
    Replay,
    ReplayMismatch,
    StubError,
    StubMismatch,
    Stubs,
    Unanswered,
)

__all__ = [
    "NOON", "Asked", "NotRecorded", "Recorder", "Replay", "ReplayMismatch", "StubError", "StubMismatch", "Stubs",
    "Unanswered",
]  # fmt: skip
